"""A campaign killed ten times at random moments, compared with an uninterrupted one.

    python -m experiments.evolution.kills flexibert --out runs/kills --preset paper

Options after --out go to `lpzero discover`. Exits with code 1 if a file differs.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path

from experiments.measured import prints_measured
from lpzero.runs import layout

COMPARED = (
    layout.JOURNAL,
    layout.CHECKPOINT,
    layout.HALL,
    layout.HALL_CSV,
    layout.HISTORY,
    layout.CONFIG,
    layout.RESULT,
)
KILLS = 10


@prints_measured
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--out", type=Path, default=Path("runs/kills"))
    given, options = parser.parse_known_args()
    command = [sys.executable, "-m", "lpzero.cli.main", "discover", given.table, "--quiet"]
    command += [*options, "--resume", "--out"]
    whole, killed = given.out / "whole", given.out / "killed"
    subprocess.run([*command, str(whole)], check=True, stdout=subprocess.DEVNULL)
    n_lines, rng = _lines(whole), random.Random(0)
    print(f"uninterrupted: {n_lines:,} journal lines")
    for kill, threshold in enumerate(sorted(rng.sample(range(n_lines), KILLS)), 1):
        process = subprocess.Popen([*command, str(killed)], stdout=subprocess.DEVNULL)
        while _lines(killed) < threshold and process.poll() is None:
            time.sleep(rng.uniform(0, 0.02))
        time.sleep(rng.uniform(0, 0.05))
        is_running = process.poll() is None
        process.kill()
        process.wait()
        print(f"kill {kill} at {_lines(killed):,} lines" + ("" if is_running else ": too late"))
    subprocess.run([*command, str(killed)], check=True, stdout=subprocess.DEVNULL)
    for name in COMPARED:
        if (whole / name).read_bytes() != (killed / name).read_bytes():
            sys.exit(f"{name} differs after {KILLS} kills")
    print(f"{KILLS} kills, {len(COMPARED)} files byte-identical: {', '.join(COMPARED)}")


def _lines(out: Path) -> int:
    path = out / layout.JOURNAL
    return path.read_bytes().count(b"\n") if path.exists() else 0


if __name__ == "__main__":
    main()

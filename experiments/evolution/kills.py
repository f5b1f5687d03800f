"""A campaign killed ten times at random moments, against the same one left alone.

    python -m experiments.evolution.kills flexibert --out runs/kills --preset paper

Options after --out go to `lpzero discover`. Ends with an error unless every file is equal.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path

from lpzero.campaign import folder

COMPARED = (folder.JOURNAL, folder.STATE, folder.HALL, folder.HALL_CSV, folder.HISTORY,
            folder.CONFIG, folder.RESULT)  # fmt: skip
KILLS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--out", type=Path, default=Path("runs/kills"))
    given, options = parser.parse_known_args()
    command = [sys.executable, "-m", "lpzero.cli.main", "discover", given.table, "--quiet"]
    command += [*options, "--resume", "--out"]
    whole, killed = given.out / "whole", given.out / "killed"
    start = time.monotonic()
    subprocess.run([*command, str(whole)], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - start
    print(f"left alone: {seconds:.1f} s, {_lines(whole):,} journal lines")
    kills, rng = 0, random.Random(0)
    while kills < KILLS:
        process = subprocess.Popen([*command, str(killed)], stdout=subprocess.DEVNULL)
        try:
            # Each process gets a little further than what it takes to start.
            process.wait(seconds * rng.uniform(0.1, 0.6))
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            print(f"kill {kills}: {_lines(killed):,} journal lines")
    subprocess.run([*command, str(killed)], check=True, stdout=subprocess.DEVNULL)
    for name in COMPARED:
        if (whole / name).read_bytes() != (killed / name).read_bytes():
            sys.exit(f"{name} differs after {kills} kills")
    print(f"{kills} kills, {len(COMPARED)} files byte-identical: {', '.join(COMPARED)}")


def _lines(out: Path) -> int:
    path = out / folder.JOURNAL
    return path.read_bytes().count(b"\n") if path.exists() else 0


if __name__ == "__main__":
    main()

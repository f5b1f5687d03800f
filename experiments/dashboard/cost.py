"""What an open dashboard costs a campaign: its processor time with and without, in turn.

    python -m experiments.dashboard.cost --pairs 7

Each pair is the same campaign on nano-gpt2, once alone and once while a dashboard shows its page
and the list, asked as often as an open browser asks. The campaign's own processor time (user and
system) is compared, not seconds of the clock, because other programs may work on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

_CAMPAIGN = ("discover", "nano-gpt2", "--permutations", "0", "--choose", "valid", "--quiet")


def lpzero(*words: str, **options: int) -> subprocess.Popen[str]:
    """A running command."""
    command = [sys.executable, "-m", "lpzero.cli.main", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def processor_seconds(out: Path, generations: int) -> float:
    """User and system time of a campaign that runs now."""
    running = lpzero(
        *_CAMPAIGN, "--generations", str(generations), "--out", str(out), stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(running.pid, 0)
    if status:
        raise SystemExit("the campaign failed")
    return used.ru_utime + used.ru_stime


class OpenPages(threading.Thread):
    """Asks as an open list and an open page of the run do."""

    def __init__(self, address: str, name: str) -> None:
        super().__init__(daemon=True)
        self.address, self.run_name = address, name
        self.is_over, self.answers = threading.Event(), 0

    def run(self) -> None:
        versions: dict[str, str] = {}
        while not self.is_over.wait(1.0):
            runs = json.loads(self._ask("api/runs"))["runs"]
            for run in runs:
                if run["name"] == self.run_name:
                    seen = versions.get(run["id"], "")
                    body = self._ask(f"api/run/{run['id']}?seen={seen}")
                    if body:
                        versions[run["id"]] = json.loads(body)["version"]
                        self.answers += 1

    def _ask(self, path: str) -> bytes:
        with urllib.request.urlopen(f"{self.address}{path}") as answer:
            return bytes(answer.read())


def watched_seconds(folder: Path, name: str, generations: int) -> tuple[float, int]:
    """Processor time of a campaign whose page is open, and how often the page changed."""
    server = lpzero("dashboard", str(folder), stderr=subprocess.DEVNULL)
    try:
        assert server.stdout is not None
        pages = OpenPages(server.stdout.readline().strip(), name)
        pages.start()
        seconds = processor_seconds(folder / name, generations)
        pages.is_over.set()
        pages.join()
    finally:
        server.terminate()
        server.wait()
    return seconds, pages.answers


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--generations", type=int, default=60)
    given = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        processor_seconds(folder / "first", given.generations)  # fills the caches
        for pair in range(given.pairs):
            start = time.monotonic()
            alone = processor_seconds(folder / f"alone-{pair}", given.generations)
            watched, answers = watched_seconds(folder, f"watched-{pair}", given.generations)
            ratios.append(watched / alone)
            print(
                f"pair {pair + 1}: alone {alone:.2f} s, watched {watched:.2f} s"
                f" ({answers} newer pages), ratio {ratios[-1]:.3f},"
                f" {time.monotonic() - start:.0f} s of the clock",
                flush=True,
            )
    print(f"median ratio of {given.pairs} pairs: {statistics.median(ratios):.4f}")


if __name__ == "__main__":
    main()

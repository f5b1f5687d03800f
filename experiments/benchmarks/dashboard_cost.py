"""What an open dashboard costs a campaign: its processor time with and without, in turn.

    OMP_NUM_THREADS=1 python -m experiments.benchmarks.dashboard_cost --pairs 15

Each pair is the same campaign on nano-gpt2, once with the dashboard halted and once while it shows
the list and the campaign's page, asked as often as an open browser asks; every second pair the
other way round. Compared is the campaign's own processor time (user and system), not seconds of the
clock, because other programs may work on the machine. As many pairs without any dashboard show the
noise.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from experiments.measured import prints_measured
from lpzero.discover.discovery import Campaign

_PAUSE = 0.5  # seconds, as in lpzero/dashboard/live.js


def processor_seconds(out: Path, generations: int) -> float:
    """User and system time of the search of a campaign in this process."""
    campaign = Campaign(
        "nano-gpt2", out=out, generations=generations, terms=1, choose="valid", permutations=0
    )
    start = time.process_time()
    campaign.search()
    return time.process_time() - start


def ask_forever(address: str) -> None:
    """Ask as an open list and an open page of every running campaign do."""
    versions: dict[str, str] = {}
    while True:
        runs = json.loads(_ask(f"{address}api/runs"))["runs"]
        for id in [run["id"] for run in runs if run["state"] == "running"]:
            body = _ask(f"{address}api/run/{id}?seen={versions.get(id, '')}")
            if body:
                versions[id] = json.loads(body)["version"]
                print(id, flush=True)
        time.sleep(_PAUSE)


def _ask(address: str) -> bytes:
    with urllib.request.urlopen(address) as answer:
        return bytes(answer.read())


class OpenDashboard:
    """A dashboard and what asks it, each a process, halted until they are wanted."""

    def __init__(self, folder: Path, answers: Path) -> None:
        command = [sys.executable, "-m", "lpzero.cli.main", "dashboard", str(folder)]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout is not None
        address = self.server.stdout.readline().strip()
        asking = [sys.executable, "-m", "experiments.benchmarks.dashboard_cost", "--ask", address]
        self.browser = subprocess.Popen(asking, stdout=answers.open("w"))
        time.sleep(3)  # both have imported what they need
        self.show(False)

    def show(self, is_shown: bool) -> None:
        """Let both work, or halt them."""
        for process in (self.server, self.browser):
            process.send_signal(signal.SIGCONT if is_shown else signal.SIGSTOP)

    def close(self) -> None:
        """End both."""
        for process in (self.server, self.browser):
            process.kill()
            process.wait()


def measure(pairs: int, generations: int, is_shown: bool) -> list[float]:
    """Watched by alone, of each pair; with `is_shown` false both campaigns of a pair are alone."""
    ratios = []
    with tempfile.TemporaryDirectory() as made:
        folder, answers = Path(made, "runs"), Path(made, "answers")
        folder.mkdir()
        dashboard = OpenDashboard(folder, answers)
        try:
            processor_seconds(folder / "first", generations)  # fills the caches
            for pair in range(pairs):
                found = {}
                for watched in (pair % 2 == 0, pair % 2 != 0):
                    dashboard.show(watched and is_shown)
                    name = f"{pair}-{'watched' if watched else 'alone'}"
                    found[watched] = processor_seconds(folder / name, generations)
                dashboard.show(False)
                ratios.append(found[True] / found[False])
            n_answers = len(answers.read_text().splitlines())
        finally:
            dashboard.close()
    low, high = min(ratios), max(ratios)
    print(
        f"{'watched' if is_shown else 'alone'} against alone, {pairs} pairs, {found[False]:.1f} s"
        f" each, {n_answers} newer pages: median ratio {statistics.median(ratios):.4f}"
        f" [{low:.3f}, {high:.3f}]",
        flush=True,
    )
    return ratios


@prints_measured
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--generations", type=int, default=25)
    parser.add_argument("--ask", metavar="ADDRESS", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ask:
        ask_forever(given.ask)
    for is_shown in (True, False):
        measure(given.pairs, given.generations, is_shown)


if __name__ == "__main__":
    main()

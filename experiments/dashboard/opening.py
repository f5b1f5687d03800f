"""How long the list of many runs and the page of a very long campaign take to open in Chromium.

    python -m experiments.dashboard.opening FOLDER

FOLDER is what `experiments.dashboard.many_runs` wrote. The dashboard is started anew for each
opening, so that nothing is in its memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from experiments.measured import prints_measured
from tests.lpzero.report.headless_browser import Browser, Tab, find

_PAGE = "document.querySelector('.tiles')?.innerText ?? ''"
_ROWS = "document.querySelectorAll('#runs tbody tr').length"


def opened(tab: Tab, address: str, is_there: str) -> float:
    """Seconds until the expression is true on the page."""
    start = time.monotonic()
    tab.call("Page.navigate", url=address)
    while not tab.run(is_there):
        if time.monotonic() - start > 60:
            raise SystemExit(f"{address} did not open")
        time.sleep(0.02)
    return time.monotonic() - start


@prints_measured
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    path = find()
    if path is None:
        raise SystemExit("no Chromium was found")
    with tempfile.TemporaryDirectory() as profile, Browser(path, Path(profile)) as browser:
        for _ in range(given.times):
            command = [sys.executable, "-m", "lpzero.cli.main", "dashboard", str(given.folder)]
            server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            try:
                assert server.stdout is not None
                address = server.stdout.readline().strip()
                time.sleep(1.0)  # a person needs that long to open it
                tab = Tab(browser)
                listed = opened(tab, address, f"{_ROWS} > 0")
                n_runs = tab.run(_ROWS)
                link = tab.run(
                    "[...document.querySelectorAll('#runs a')].find((a) =>"
                    " a.textContent === 'large').href"
                )
                first = opened(tab, link, f"({_PAGE}).includes('evaluated')")
                start = time.monotonic()
                while not tab.run(
                    "document.querySelector('#figure-convergence .main-svg') !== null"
                ):
                    time.sleep(0.02)
                figures = first + time.monotonic() - start
                while "journal" in tab.run(_PAGE):  # shows how much of it was read so far
                    time.sleep(0.02)
                whole = first + time.monotonic() - start
                print(
                    f"{n_runs} runs listed in {listed:.2f} s; the long campaign's page opened in"
                    f" {first:.2f} s, its figures drawn after {figures:.2f} s, its journal read"
                    f" after {whole:.2f} s",
                    flush=True,
                )
                tab.close()
            finally:
                server.terminate()
                server.wait()


if __name__ == "__main__":
    main()

"""How long pages take to open in Chromium: a report, or the dashboard of many runs.

    python -m experiments.benchmarks.dashboard_opening FOLDER
    python -m experiments.benchmarks.dashboard_opening runs/nano-gpt2/report/index.html

FOLDER is what `dashboard_runs` wrote: the list of runs and the page of a very long campaign are
opened, and the dashboard is started anew for each opening, so that nothing is in its memory. Of a
page in a file the size is printed, and the seconds until it is loaded and until every figure that
it draws by itself is drawn; each opening has a browser of its own.
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
# Figures are drawn when they come near the window.
_FIGURES_IN_VIEW = """[...document.querySelectorAll('figure[data-figure]')]
  .filter((figure) => figure.getBoundingClientRect().top < innerHeight)
  .every((figure) => figure.querySelector('.plot').dataset.drawn === 'yes')"""


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
    parser.add_argument("path", type=Path, metavar="FOLDER_OR_PAGE")
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    path = find()
    if path is None:
        raise SystemExit("no Chromium was found")
    for _ in range(given.times):
        with tempfile.TemporaryDirectory() as profile, Browser(path, Path(profile)) as browser:
            if given.path.is_file():
                open_page(browser, given.path)
            else:
                open_dashboard(browser, given.path)


def open_page(browser: Browser, page: Path) -> None:
    """Print how long the page in the file takes, and its size."""
    tab = Tab(browser, 1280)
    start = time.monotonic()
    tab.open(page)
    loaded = time.monotonic() - start
    tab.wait(_FIGURES_IN_VIEW)
    first = time.monotonic() - start
    tab.draw_all()
    every = time.monotonic() - start
    print(
        f"{page.stat().st_size / 1e6:.2f} MB, loaded in {loaded:.2f} s, the figures in view drawn"
        f" after {first:.2f} s; all figures, one after the other, after {every:.2f} s",
        flush=True,
    )
    tab.close()


def open_dashboard(browser: Browser, folder: Path) -> None:
    """Print how long the list of runs and the page of the long campaign take."""
    command = [sys.executable, "-m", "lpzero.cli.main", "dashboard", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        time.sleep(1.0)  # a person needs that long to open it
        tab = Tab(browser)
        listed = opened(tab, address, f"{_ROWS} > 0")
        n_runs = tab.run(_ROWS)
        link = tab.run(
            "[...document.querySelectorAll('#runs a')].find((a) => a.textContent === 'large').href"
        )
        first = opened(tab, link, f"({_PAGE}).includes('evaluated')")
        start = time.monotonic()
        tab.wait("document.querySelector('#figure-convergence .main-svg') !== null")
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

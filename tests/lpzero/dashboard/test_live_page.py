"""A campaign watched in a real browser while it runs, is killed with kill -9 and is resumed."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.lpzero.small_campaign import run_or_resume

pytest.importorskip("starlette", reason="the extra lpzero[dashboard] is not installed")
pytest.importorskip("uvicorn", reason="the extra lpzero[dashboard] is not installed")

from tests.lpzero.dashboard.served import serving
from tests.lpzero.report.headless_browser import Browser, Tab
from tests.lpzero.report.test_report import HOSTILE, poison
from tests.lpzero.small_campaign import discovery

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
GENERATION = (
    "Number([...document.querySelectorAll('.tiles dt')].find((name) =>"
    " name.textContent === 'generation')?.nextElementSibling.textContent.split(' ')[0]"
    ".replace(/,/g, '')) || -1"
)
STATE = "document.querySelector('.tiles .state').textContent"


def start(folder: Path, generations: int) -> BaseProcess:
    return forks.start(run_or_resume, folder, generations, 0.1)  # so that the page has a core


def wait(is_so: Callable[[], Any], seconds: float = 600) -> None:
    """Wait until it is so; the limit is only for what never happens, on however busy a machine."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def latest(folder: Path) -> int:
    """The last generation in the journal."""
    line = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)[-2]
    return int(json.loads(line)["generation"])


def go(tab: Tab, address: str) -> None:
    tab.call("Page.navigate", url=address)
    tab.browser.wait_for("Page.loadEventFired", tab.session)


def test_a_campaign_is_watched_through_kill_and_resume(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "watched"
    working = start(folder, 100_000)
    try:
        wait(lambda: (folder / "journal.jsonl").exists())
        with serving(tmp_path / "runs") as served:
            line = served.runs()["watched"]
            assert line["state"] == "running"
            tab = Tab(browser)
            go(tab, f"{served.address}run/{line['id']}")
            tab.run("window.sameDocument = true")
            for _ in range(3):  # the page follows: what is written now is shown later
                written = latest(folder)
                wait(lambda least=written: tab.run(GENERATION) >= least)
                wait(lambda least=written: latest(folder) > least)
            wait(lambda: tab.run("document.querySelector('#figure-convergence .plot .main-svg')"
                                 " !== null"))  # fmt: skip
            working.kill()
            working.join()
            wait(lambda: tab.run(STATE) == "stopped")
            stopped = tab.run(GENERATION)
            assert served.runs()["watched"]["state"] == "stopped"
            working = start(folder, 100_000)
            wait(lambda: tab.run(STATE) == "running")
            wait(lambda: tab.run(GENERATION) > stopped)
            assert tab.run("window.sameDocument") is True  # the page was never loaded again
            assert tab.complaints() == []
            assert all(url.startswith(served.address) for url in tab.requests())
            tab.close()
    finally:
        working.kill()
        working.join()


def test_a_hostile_run_runs_nothing_in_the_page(
    browser: Browser, campaign: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "runs" / "<img src=x onerror=alert(1)>\x1b[31m"
    shutil.copytree(campaign, folder, ignore=shutil.ignore_patterns("report"))
    poison(folder)
    with serving(tmp_path / "runs") as served:
        (line,) = served.runs().values()
        assert line["state"] == "finished"
        tab = Tab(browser)
        for page in ("", f"run/{line['id']}", f"compare?run={line['id']}"):
            go(tab, f"{served.address}{page}")
            wait(lambda: tab.run("document.body.innerText").count("onerror=alert(1)"))
            asked = len(tab.requests())  # the page asks again twice, and shows the first answer
            wait(lambda least=asked + 2: tab.run("true") and len(tab.requests()) >= least)
            assert (
                tab.run("document.querySelectorAll('img, body script:not([src],[type])').length")
                == 0
            )
        go(tab, f"{served.address}run/{line['id']}")
        assert HOSTILE in tab.run("document.body.textContent")
        assert tab.complaints() == []
        assert all(url.startswith((served.address, "data:")) for url in tab.requests())
        tab.close()


def test_two_runs_are_chosen_in_the_list_and_shown_beside_each_other(
    browser: Browser, campaign: Path, tmp_path: Path
) -> None:
    shutil.copytree(campaign, tmp_path / "runs" / "first", ignore=shutil.ignore_patterns("report"))
    discovery(tmp_path / "runs" / "second", seed=4).run()
    with serving(tmp_path / "runs") as served:
        tab = Tab(browser, 320)
        go(tab, served.address)
        wait(lambda: tab.run("document.querySelectorAll('#runs tbody tr').length") == 2)
        assert tab.run("document.documentElement.scrollWidth") <= 320
        tab.run("document.querySelector('#filter').focus()")
        tab.type("second")
        shown = "[...document.querySelectorAll('#runs tbody tr')].filter((r) => !r.hidden).length"
        wait(lambda: tab.run(shown) == 1)
        tab.run("document.querySelector('#filter').value = ''")
        for row in (1, 2):
            tab.click(f"#runs tbody tr:nth-child({row}) input")
        tab.click("#compare")
        wait(lambda: tab.run("document.querySelectorAll('#beside thead a').length") == 2)
        wait(lambda: tab.run("document.querySelectorAll('.plot .legendtext').length") == 2)
        rows = tab.run(
            "[...document.querySelectorAll('#settings tbody th')].map((c) => c.innerText)"
        )
        assert rows == ["seed"]
        assert tab.run("document.documentElement.scrollWidth") <= 320
        assert tab.complaints() == []
        tab.close()

"""What several folders of tests share."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpzero.discover import levels, record, table_fitness
from lpzero.exhaust import record as exhaust_record
from lpzero.judgement import table as judged_table
from lpzero.report import page, style
from lpzero.scores import branch_table, weighted_sums
from lpzero.scores.chains import ChainSet
from lpzero.scores.products import Beam
from lpzero.scores.tabulation import Tabulated
from lpzero.search import comparison
from lpzero.sketches.sketch import Sketch
from primitives import space_size
from tests.lpzero.report import headless_browser
from tests.lpzero.report.headless_browser import Browser
from tests.lpzero.small_campaign import discovery

_EMPTY = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'
Drawing = Callable[[], AbstractContextManager[None]]
WholeSearch = Callable[[], AbstractContextManager[None]]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = headless_browser.find()
    if path is None:
        pytest.skip("no Chromium at hand: install it (make tools) or set LPZERO_BROWSER")
    with Browser(path, tmp_path_factory.mktemp("profile")) as running:
        try:
            running.call("Browser.getVersion")
        except (OSError, RuntimeError) as error:
            pytest.skip(f"{path} does not start: {error}")
        yield running


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign on the made-up table; whoever changes a file of it makes a copy."""
    out = tmp_path_factory.mktemp("finished") / "campaign"
    discovery(out).run()
    return out


@pytest.fixture(scope="session", autouse=True)
def _tabulated_once() -> Iterator[None]:
    """Tabulate a made-up sketch once in a process: it was two thirds of a small campaign's time."""
    tabulate, most = branch_table.tabulate, 400
    tables: dict[tuple[str, bytes, str], Tabulated] = {}

    def tabulate_once(sketches: Sequence[Sketch], chains: ChainSet) -> list[Tabulated]:
        if len(sketches) > 1:  # as the workers of stored sketches do
            return tabulate(sketches, chains)
        [sketch] = sketches
        header = json.dumps(sketch.header, sort_keys=True, default=str)
        key = header, sketch.numbers.tobytes(), chains.digest
        if key not in tables:
            while len(tables) >= most:
                del tables[next(iter(tables))]
            [tables[key]] = tabulate(sketches, chains)
        return [tables[key]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branch_table, "tabulate", tabulate_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _cached_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sketches are kept in a folder of this run of the tests, which all of its processes share."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LPZERO_CACHE", str(shared / "cache"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _measured_once() -> Iterator[None]:
    """What a page states of its run's language, and the judgement of equal scores on equal
    rows, as those of the counters are, are computed once in a process."""
    with pytest.MonkeyPatch.context() as patch:
        measure = lru_cache(space_size.measure)
        for module in (space_size, record, exhaust_record, sys.modules["lpzero.exhaust.report"]):
            patch.setattr(module, "measure", measure)
        for name in ("judge", "paired_difference"):
            patch.setattr(judged_table, name, _once(getattr(judged_table, name)))
        yield


def _once(function: Callable[..., Any], most: int = 4000) -> Callable[..., Any]:
    """The function of arrays, which answers from memory what it was asked before."""
    known: dict[tuple[Any, ...], Any] = {}

    def answer(*given: Any) -> Any:
        key = tuple(
            (value.dtype.str, value.tobytes()) if isinstance(value, np.ndarray) else value
            for value in given
        )
        if key not in known:
            if len(known) >= most:
                del known[next(iter(known))]
            known[key] = function(*given)
        return known[key]

    return answer


@pytest.fixture(scope="session", autouse=True)
def whole_search() -> Iterator[WholeSearch]:
    """Campaigns of this process search little, but for those run `with whole_search():`.

    A comparison draws few networks to know how many are better.

    Folds are drawn once, the learning curve has one subset, beams and populations of sums are
    narrow: the searches of every level on every fold were most of a campaign's time. Worker
    processes search as users do, so a test that compares them with this process needs the whole.
    """
    narrow = partial(Beam, width=8, exact=40)
    patched = [
        (comparison, "N_REFERENCE", 200),
        (levels, "TWICE_BELOW", 0),
        (levels, "_SIZES", (20,)),
        (levels, "Beam", narrow),
        (table_fitness, "Beam", narrow),
        (weighted_sums, "_EXACT", 16),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in patched]

    @contextmanager
    def whole() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as inner:
            for module, name, value in before:
                inner.setattr(module, name, value)
            yield

    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in patched:
            patch.setattr(module, name, value)
        yield whole


@pytest.fixture(scope="module")
def _searched_whole(whole_search: WholeSearch) -> Iterator[None]:
    """The campaigns of a file of tests search as users' do."""
    with whole_search():
        yield


@pytest.fixture(scope="session", autouse=True)
def drawing() -> Iterator[Drawing]:
    """Pages have empty pictures, but for those written `with drawing():`.

    To draw them was most of a page's time.
    """
    draw = page._encoded

    @contextmanager
    def drawn() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(page, "_encoded", draw)
            yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "_encoded", lambda chart: dict.fromkeys(style.FORMATS, _EMPTY))
        yield drawn

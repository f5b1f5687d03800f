"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# Tensors of tests are tiny: a second thread only waits, and where cores are scarce it waits busily.
# Before anything imports torch or NumPy.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell that runs tests in the background has them and their children ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A busy machine must not fail a test. Every run draws other examples, so that a few are enough.
settings.register_profile("lpzero", deadline=None, max_examples=30)
settings.load_profile("lpzero")


N_SLOWEST = 10
ALL_SLOW = re.compile(r"^pytestmark = \[?pytest\.mark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the files whose tests are all slow, if slow tests are not asked for."""
    if config.option.markexpr != "not slow" or collection_path.suffix != ".py":
        return None
    return True if ALL_SLOW.search(collection_path.read_text(encoding="utf-8")) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what reads the released tables as slow, and begin with the files that have slow tests.

    The files at the end are then short ones, and no core waits long for another.
    """
    for item in items:
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """What was imported stays: the collector of garbage need not go through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show where the time went, and what the tests of clusters did to them."""
    reports = [
        report
        for outcome in ("", "passed", "failed", "error", "skipped")  # "" is set-up and tear-down
        for report in terminalreporter.stats.get(outcome, ())
        if isinstance(report, pytest.TestReport)
    ]
    by_test, by_package = Counter[str](), Counter[str]()
    for report in reports:
        by_test[report.nodeid] += report.duration
        by_package["/".join(report.nodeid.split("::")[0].split("/")[1:-1][:2])] += report.duration
    if len(by_test) > N_SLOWEST:
        for title, seconds in (
            (f"the {N_SLOWEST} slowest tests, seconds", by_test.most_common(N_SLOWEST)),
            ("seconds of each package", by_package.most_common()),
        ):
            terminalreporter.section(title)
            for name, value in seconds:
                terminalreporter.write_line(f"{value:8.1f} {name or 'tests'}")
    told = {
        text for report in reports for name, text in report.user_properties if name == "cluster"
    }
    if told:
        terminalreporter.section("clusters")
        for line in sorted(told):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The data root with the released tables; tests that need it are skipped without."""
    root = os.environ.get("LPZERO_DATA")
    if not root:
        pytest.skip("LPZERO_DATA is not set: the released tables are not at hand")
    return Path(root)

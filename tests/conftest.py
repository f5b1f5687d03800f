"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# Tensors of tests are tiny: a second thread only waits, and where cores are scarce it waits busily.
# Before anything imports torch or NumPy.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell that runs tests in the background has them and their children ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A busy machine must not fail a test.
settings.register_profile("lpzero", deadline=None)
settings.load_profile("lpzero")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what reads the released tables as slow: they are large."""
    for item in items:
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what the tests of clusters did to them: who was killed, who joined, what was equal."""
    done = [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]
    told = [text for one in done for name, text in one.user_properties if name == "cluster"]
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

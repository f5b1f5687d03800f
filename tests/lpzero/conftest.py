"""What several folders of tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lpzero.report import headless_browser
from tests.lpzero.report.headless_browser import Browser


@pytest.fixture(scope="module")
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

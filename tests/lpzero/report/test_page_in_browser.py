"""The page in a real browser: sorting, filtering, keyboard, phone, print, and no network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lpzero.report import write
from lpzero.runs.run import open_run
from tests.lpzero.report import headless_browser
from tests.lpzero.report.headless_browser import Browser, Tab
from tests.lpzero.report.test_report import HOSTILE, poison
from tests.lpzero.small_campaign import discovery

pytestmark = pytest.mark.slow
ROWS = "[...document.querySelector('#hall').tBodies[0].rows]"


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


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "campaign"
    discovery(out).run()
    return out


@pytest.fixture(scope="module")
def page(campaign: Path) -> Path:
    return write(open_run(campaign)).page


@pytest.fixture
def tab(browser: Browser, page: Path) -> Iterator[Tab]:
    found = Tab(browser).open(page)
    yield found
    assert found.complaints() == []
    assert found.requests() == []
    found.close()


def column(tab: Tab, index: int) -> list[float | str]:
    found: list[float | str] = tab.run(
        f"{ROWS}.filter((row) => !row.hidden).map((row) => {{"
        f" const key = row.cells[{index}].dataset.sort;"
        f" return key === undefined ? row.cells[{index}].textContent : Number(key) || key; }})"
    )
    return found


def direction(tab: Tab, index: int) -> str | None:
    found: str | None = tab.run(
        f"document.querySelector('#hall').tHead.rows[0].cells[{index}].getAttribute('aria-sort')"
    )
    return found


def test_the_page_and_its_figures_are_there(tab: Tab) -> None:
    sizes = tab.run("[...document.images].map((image) => image.naturalWidth)")
    assert len(sizes) == 5
    assert min(sizes) > 100
    assert tab.run("document.title") == "made-up: campaign"


def test_a_click_sorts_and_another_turns_it_round(tab: Tab) -> None:
    button = "#hall thead th:nth-child(2) button"
    before = column(tab, 1)
    tab.click(button)
    assert direction(tab, 1) == "descending"
    assert column(tab, 1) == sorted(before, reverse=True)
    tab.click(button)
    assert direction(tab, 1) == "ascending"
    assert column(tab, 1) == sorted(before)
    tab.click("#hall thead th:nth-child(3) button")
    assert direction(tab, 1) is None


def test_the_keyboard_sorts_as_well(tab: Tab) -> None:
    tab.run("document.querySelector('#hall thead th:nth-child(3) button').focus()")
    tab.press("Enter", 13, "\r")
    first = column(tab, 2)
    assert first == sorted(first, reverse=True)
    tab.press(" ", 32, " ")
    assert column(tab, 2) == first[::-1]
    outline = tab.run("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus is visible"


def test_tab_reaches_the_skip_link_first_and_it_leads_to_the_result(tab: Tab) -> None:
    tab.press("Tab", 9)
    assert tab.run("document.activeElement.className") == "skip"
    assert tab.run("document.activeElement.getBoundingClientRect().x") >= 0
    tab.press("Enter", 13, "\r")
    assert tab.run("location.hash") == "#result"


def test_what_is_not_known_comes_last_either_way(tab: Tab) -> None:
    index = tab.run(
        "[...document.querySelector('#hall').tHead.rows[0].cells]"
        ".findIndex((cell) => cell.textContent.startsWith('ρ test'))"
    )
    for _ in range(2):
        tab.click(f"#hall thead th:nth-child({index + 1}) button")
        shown = tab.run(f"{ROWS}.map((row) => row.cells[{index}].textContent)")
        empty = [text == "–" for text in shown]
        assert True in empty
        assert empty == sorted(empty)


def test_the_filter_shows_the_formulas_it_names(tab: Tab) -> None:
    total = len(column(tab, 1))
    assert tab.run("document.querySelector('label').htmlFor") == "filter"
    tab.click("#filter")
    tab.type("Matmul(")
    shown = tab.run(
        f"{ROWS}.filter((r) => r.offsetHeight).map((r) => r.querySelector('code').textContent)"
    )
    everyone = tab.run(f"{ROWS}.map((row) => row.querySelector('code').textContent)")
    assert shown == [text for text in everyone if "matmul(" in text]
    assert 0 < len(shown) < total
    assert tab.run("document.getElementById('filtered').textContent") == f"{len(shown)} of {total}"


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_narrow_page_does_not_scroll_sideways(tab: Tab, width: int) -> None:
    tab.resize(width)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run(
        "[...document.querySelectorAll('.scroll')].some((box) => box.scrollWidth > box.clientWidth)"
    ), "wide tables scroll in their own box"


def test_mathematics_has_a_size(tab: Tab) -> None:
    boxes = tab.run(
        "[...document.querySelectorAll('math')].map((m) => m.getBoundingClientRect())"
        ".map((r) => [r.width, r.height])"
    )
    assert len(boxes) > 10
    assert all(width > 20 and height > 8 for width, height in boxes)


def test_print_shows_every_row_and_no_control(tab: Tab) -> None:
    tab.click("#filter")
    tab.type("matmul")
    tab.call("Emulation.setEmulatedMedia", media="print")
    for selector in (".control", ".skip"):
        display = f"getComputedStyle(document.querySelector('{selector}')).display"
        assert tab.run(display) == "none"
    assert tab.run(f"{ROWS}.every((row) => row.offsetHeight > 0)")
    data = tab.pdf()
    assert data.startswith(b"%PDF")
    assert len(data) > 20_000


def test_dark_mode_turns_the_colours_round(tab: Tab) -> None:
    def lightness() -> int:
        colour = tab.run("getComputedStyle(document.documentElement).backgroundColor")
        return sum(int(part) for part in colour[4:-1].split(","))

    light = lightness()
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    tab.call("Emulation.setEmulatedMedia", features=features)
    assert lightness() < light / 3


def test_without_script_everything_is_shown(browser: Browser, page: Path) -> None:
    tab = Tab(browser)
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(page)
    assert tab.run("document.querySelectorAll('button').length") == 0
    assert tab.run("document.querySelector('.control').offsetHeight") == 0
    assert tab.run(f"{ROWS}.every((row) => row.offsetHeight > 0)")
    tab.close()


def test_the_policy_stops_what_is_not_ours(browser: Browser, page: Path, tmp_path: Path) -> None:
    """The test of the tests above: a script or picture that is put in is refused and heard of."""
    text = page.read_text(encoding="utf-8")
    foreign = "<script>window.stolen = 1</script><img src='http://example.invalid/x.png'>"
    altered = tmp_path / "altered.html"
    altered.write_text(text.replace("<main>", f"<main>{foreign}"), encoding="utf-8")
    tab = Tab(browser).open(altered)
    assert tab.run("window.stolen") is None
    assert len([line for line in tab.complaints() if "Content Security Policy" in line]) == 2
    tab.close()


def test_hostile_labels_stay_text(browser: Browser, campaign: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(campaign, tmp_path / "copy", ignore=shutil.ignore_patterns("report"))
    poison(copy)
    tab = Tab(browser).open(write(open_run(copy)).page)
    assert tab.run("document.body.textContent").count(HOSTILE) >= 6
    assert tab.run("document.querySelectorAll('[onerror]').length") == 0
    tab.click("#hall thead th:nth-child(1) button")
    assert direction(tab, 0) == "ascending"
    assert tab.complaints() == []
    assert tab.requests() == []
    tab.close()

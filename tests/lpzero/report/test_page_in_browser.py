"""The page in a real browser: sorting, filtering, keyboard, phone, print, and no network."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lpzero.report import style, write
from lpzero.report.page import content_of
from lpzero.runs.directory import RunDirectory
from lpzero.runs.run import open_run
from lpzero.training.table_build import build_config, is_training
from primitives.latex import to_latex
from primitives.parser import parse
from spaces.training.recipes import plan_named
from tests.lpzero.conftest import Drawing
from tests.lpzero.report.headless_browser import Browser, Tab
from tests.lpzero.report.test_report import HOSTILE, poison

pytestmark = pytest.mark.slow
ROWS = "[...document.querySelector('#hall').tBodies[0].rows]"


@pytest.fixture(scope="module")
def page(campaign: Path, drawing: Drawing) -> Path:
    with drawing(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "FORMATS", ("svg",))  # the page has no other
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


def test_the_page_and_its_figures_are_there(tab: Tab, page: Path) -> None:
    tab.draw_all()
    drawn = tab.run(
        "[...document.querySelectorAll('figure')].map((f) => [f.dataset.figure,"
        " f.querySelectorAll('.plot svg .trace, .plot svg .hm').length])"
    )
    names = [name for name, _ in drawn]
    assert names == ["rivals-made-up", "scores-made-up", "ranks-made-up", "front", "convergence",
                     "pairs"]  # fmt: skip
    assert all(n_traces > 0 for _, n_traces in drawn)
    assert tab.run("document.title") == "made-up: campaign"
    assert page.stat().st_size < 6_000_000
    assert tab.run("[...document.images].every((picture) => picture.offsetHeight === 0)")


def test_pointing_at_a_dot_shows_its_architecture(tab: Tab, campaign: Path) -> None:
    column = open_run(campaign).scores["tables"]["made-up"]  # type: ignore[attr-defined]
    rows = [i for i, part in enumerate(column["part"]) if part == "test"]
    for name in ("scores-made-up", "ranks-made-up"):
        place = max(range(len(rows)), key=lambda i: column["target"][rows[i]])  # apart from others
        tab.point_at(name, -1, place)
        said, row = tab.hovered(name), rows[place]
        assert f"architecture {column['id'][row]}," in said
        assert f"depth {column['sizes']['depth'][row]}" in said
        assert f"width {column['sizes']['width'][row]}" in said
        assert f"parameters {column['sizes']['parameters'][row]:,}" in said
        assert json.dumps(column["arch"][row]).replace(" ", "") in said.replace(" ", "")


def test_pointing_at_a_learning_curve_shows_its_architecture(
    browser: Browser, tmp_path: Path
) -> None:
    lines = [
        {"index": i, "seed": 0, "target": -1.0 - i, "seconds": 1.0, "steps": 9,
         "arch": {"width": [i + 40]}, "curve": [[4, 5.0 + i], [9, 3.0 + i]]}
        for i in range(2)
    ]  # fmt: skip
    config = build_config(plan_named("nano-gpt2"))
    with RunDirectory(tmp_path / "build", config, False, is_training) as directory:
        directory.journal.append(lines)
    tab = Tab(browser).open(write(open_run(tmp_path / "build")).page)
    tab.point_at("learning-curves", 0, 1)
    said = tab.hovered("learning-curves")
    assert 'architecture 0: {"width": [40]}' in said
    assert "training loss 3 after 9" in said
    assert tab.complaints() == []
    tab.close()


def test_pointing_at_a_rival_tells_the_paired_difference(tab: Tab, campaign: Path) -> None:
    column = open_run(campaign).scores["tables"]["made-up"]  # type: ignore[attr-defined]
    line = next(line for line in column["rivals"] if line["proxy"] == "parameters")
    tab.draw("rivals-made-up")
    traces = tab.run(
        "document.querySelector('#figure-rivals-made-up .plot').data.map((t) => t.customdata)"
    )
    ((trace, point),) = [
        (i, place)
        for i, texts in enumerate(traces)
        for place, text in enumerate(texts)
        if text.startswith("parameters (")
    ]
    tab.point_at("rivals-made-up", trace, point)
    low, high = line["difference"]["rho_ci"]
    told = f"winner − this: {line['difference']['rho']:.3f} [{low:.3f}, {high:.3f}]"
    assert told in tab.hovered("rivals-made-up")


def test_arrow_keys_go_from_point_to_point(tab: Tab) -> None:
    tab.draw("scores-made-up")
    tab.run("document.querySelector('#figure-scores-made-up .plot').focus()")
    tab.press("ArrowRight", 39)
    first = tab.hovered("scores-made-up")
    tab.press("ArrowRight", 39)
    assert first.startswith("train: architecture 1,"), "the first point of the first trace"
    words = "document.querySelector('#figure-scores-made-up .hoverlayer').textContent"
    tab.wait(f"{words}.includes('architecture') && !{words}.includes('architecture 1,')")


def test_ten_rows_are_shown_and_all_on_demand(tab: Tab) -> None:
    total = tab.run(f"{ROWS}.length")
    assert total > 10
    assert len(column(tab, 1)) == 10
    tab.click("[data-all]")
    assert len(column(tab, 1)) == total
    tab.click("[data-all]")
    assert len(column(tab, 1)) == 10


@pytest.mark.parametrize("form", ["text", "latex", "json"])
def test_the_rows_that_are_shown_are_copied(tab: Tab, browser: Browser, form: str) -> None:
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    tab.click("#filter")
    tab.type("matmul")
    shown = tab.run(
        f"{ROWS}.filter((r) => r.offsetHeight).map((r) => r.querySelector('code').textContent)"
    )
    tab.click(f"[data-controls] [data-copy={form}]")
    copied = tab.wait("navigator.clipboard.readText()")
    expected = {
        "text": lambda: copied.split("\n"),
        "latex": lambda: copied.split("\n"),
        "json": lambda: [row["formula"] for row in json.loads(copied)],
    }[form]()
    latex = [to_latex(parse(text)) for text in shown]
    assert expected == (latex if form == "latex" else shown)
    assert tab.run("document.getElementById('filtered').textContent") == f"{len(shown)} copied"


def test_the_winner_is_copied(tab: Tab, browser: Browser, campaign: Path) -> None:
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    tab.click("[data-copied] [data-copy=text]")
    best = open_run(campaign).best  # type: ignore[attr-defined]
    assert tab.wait("navigator.clipboard.readText()") == best["formula"]


CONTRASTS = """(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.getClientRects().length) continue;
    if (element.closest("script, .hoverlayer, .heatmap-label")) continue;
    const style = getComputedStyle(element);
    const ink = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(numbers(ink)), light(ground(element))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), element.tagName, element.textContent.slice(0, 40)]);
  }
  return found;
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(tab: Tab, scheme: str) -> None:
    tab.scheme(scheme)
    tab.draw_all()
    tab.run("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
    found = tab.run(CONTRASTS)
    assert len(found) > 200
    assert any(tag == "text" for _, tag, _ in found), "the figures' own texts are among them"
    assert [line for line in found if line[0] < 4.5] == []


def test_figures_take_the_colours_of_their_page(tab: Tab) -> None:
    tab.draw("front")
    ink = "getComputedStyle(document.querySelector('#figure-front .xtick text')).fill"
    before = tab.run(ink)
    tab.scheme("dark")
    assert tab.wait(f"{ink} !== '{before}' && {ink}") == "rgb(232, 232, 232)"


def test_tab_reaches_every_control(tab: Tab) -> None:
    tab.draw_all()
    tab.run("scrollTo(0, 0)")
    wanted = (
        "[...document.querySelectorAll('a[href], button, input, summary, [tabindex=\"0\"]')]"
        ".filter((e) => e.checkVisibility())"
    )
    n_wanted = tab.run(f"(window.wanted = {wanted}).length")
    tab.run("window.reached = new Set(); document.activeElement.blur()")
    for _ in range(n_wanted + 2):
        tab.press("Tab", 9)
        tab.run("window.reached.add(document.activeElement)")
    missed = tab.run(
        "window.wanted.filter((e) => !window.reached.has(e)).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert n_wanted > 20
    assert missed == []


def test_the_contents_follow_the_reader(tab: Tab) -> None:
    current = "document.querySelector('.contents [aria-current]').hash"
    assert tab.run(current) == "#found"
    for name in ("holds", "others", "search", "reproduce", "found"):
        tab.run(f"document.getElementById('{name}').scrollIntoView()")
        assert tab.wait(f"{current} === '#{name}'")
        assert tab.run("document.querySelector('.contents').getBoundingClientRect().top") >= 0


def test_a_click_sorts_and_another_turns_it_round(tab: Tab) -> None:
    button = "#hall thead th:nth-child(2) button"
    tab.click("[data-all]")
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
    tab.click("[data-all]")
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
    assert tab.run("location.hash") == "#found"


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
    total = tab.run(f"{ROWS}.length")
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


def test_a_newer_state_keeps_the_order_the_filter_and_the_keyboard(
    tab: Tab, campaign: Path
) -> None:
    newer = content_of(open_run(campaign)).to_json()
    name = next(name for name, markup in newer["sections"].items() if 'id="hall"' in markup)
    shown = column(tab, 0)
    tab.click("#hall thead th:nth-child(2) button")
    tab.click("#hall thead th:nth-child(2) button")
    tab.click("button[data-all]")
    tab.run("document.querySelector('#filter').focus()")
    tab.type("a")
    kept = [text for text in column(tab, 0) if text != shown[0]]
    assert 2 < len(kept) <= len(column(tab, 0))
    row = re.search(r"<tr data-row.*?</tr>", newer["sections"][name], re.DOTALL)
    assert row is not None
    newer["sections"][name] = newer["sections"][name].replace(row[0], "")  # the first one is gone
    tab.run(f"window.lpzero.update({json.dumps(newer)})")
    assert column(tab, 0) == kept
    sizes = column(tab, 1)
    assert sizes == sorted(sizes, key=float)
    assert direction(tab, 1) == "ascending"
    assert tab.run("document.activeElement.id") == "filter"
    tab.type("zzz")
    assert column(tab, 0) == []
    tab.run("document.querySelector('#filter').value = ''")
    tab.run("document.querySelector('#filter').dispatchEvent(new Event('input'))")
    assert len(column(tab, 0)) == tab.run(f"{ROWS}.length") > 10, "all rows were asked for"


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1920])
def test_nothing_is_cut_at_any_width(tab: Tab, width: int) -> None:
    tab.draw("rivals-made-up")  # of the wide page: it is arranged anew
    tab.resize(width)
    for _ in range(2):  # until the page knows its width
        tab.run("new Promise((done) => requestAnimationFrame(() => done(true)))")
    tab.draw_all()
    tab.run("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
    assert tab.run("document.documentElement.scrollWidth") <= width
    # What is wider than its place is inside a box that scrolls; figures fit as they are.
    outside = tab.run(
        "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll, .winner'))"
        ".filter((e) => e.getClientRects().length && !e.closest('svg, .plot'))"
        f".filter((e) => e.getBoundingClientRect().right > {width} + 1).map((e) => e.outerHTML)"
    )
    assert outside == []
    cut = tab.run(
        "[...document.querySelectorAll('.plot')].flatMap((plot) => {"
        " const box = plot.getBoundingClientRect();"
        " return [...plot.querySelectorAll('svg text')].filter((t) => t.textContent.trim())"
        "  .map((t) => [t.textContent, t.getBoundingClientRect()])"
        "  .filter(([, r]) => r.width && (r.left < box.left - 2 || r.right > box.right + 2))"
        "  .map(([text]) => text); })"
    )
    assert cut == []
    if width > 768:
        return
    assert tab.run(
        "[...document.querySelectorAll('.scroll')].some((box) => box.scrollWidth > box.clientWidth)"
    ), "wide tables scroll in their own box"


def test_mathematics_has_a_size(tab: Tab) -> None:
    boxes = tab.run(
        "[...document.querySelectorAll('math')].filter((m) => m.checkVisibility())"
        ".map((m) => m.getBoundingClientRect())"
        ".map((r) => [r.width, r.height])"
    )
    assert len(boxes) > 10
    assert all(width > 20 and height > 8 for width, height in boxes)


def test_print_shows_every_row_and_no_control(tab: Tab) -> None:
    tab.click("#filter")
    tab.type("matmul")
    tab.draw("rivals-made-up")
    tab.call("Emulation.setEmulatedMedia", media="print")
    for selector in (".control", ".skip", ".contents", "figure.live .plot"):
        display = f"getComputedStyle(document.querySelector('{selector}')).display"
        assert tab.run(display) == "none"
    assert tab.run("[...document.images].every((picture) => picture.offsetHeight > 100)")
    assert tab.run(f"{ROWS}.every((row) => row.offsetHeight > 0)")
    data = tab.pdf()
    assert data.startswith(b"%PDF")
    assert len(data) > 20_000


def test_dark_mode_turns_the_colours_round(tab: Tab) -> None:
    def lightness() -> int:
        colour = tab.run("getComputedStyle(document.documentElement).backgroundColor")
        return sum(int(part) for part in colour[4:-1].split(","))

    light = lightness()
    tab.scheme("dark")
    assert lightness() < light / 3


def test_without_script_everything_is_shown(browser: Browser, page: Path) -> None:
    tab = Tab(browser)
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(page)
    assert tab.run(
        "[...document.querySelectorAll('button')].every((b) => !b.getClientRects().length)"
    )
    assert tab.run("document.querySelector('.control').offsetHeight") == 0
    assert tab.run(f"{ROWS}.every((row) => row.offsetHeight > 0)")
    pictures = tab.run("[...document.images].map((i) => [i.naturalWidth, i.offsetHeight, i.alt])")
    assert len(pictures) == 6
    assert all(width > 100 and height > 100 and alt for width, height, alt in pictures)
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
    # The browser draws from the page's data; the files beside it have a test in test_report.py.
    copy = shutil.copytree(campaign, tmp_path / "copy", ignore=shutil.ignore_patterns("report"))
    poison(copy)
    tab = Tab(browser).open(write(open_run(copy)).page)
    assert tab.run("document.body.textContent").count(HOSTILE) >= 6
    assert tab.run("document.querySelectorAll('[onerror]').length") == 0
    tab.click("#hall thead th:nth-child(1) button")
    assert direction(tab, 0) == "ascending"
    tab.draw_all()
    names = tab.run("[...document.querySelectorAll('figure')].map((f) => f.dataset.figure)")
    for name in names:
        tab.run(f"document.getElementById('figure-{name}').scrollIntoView()")
        tab.run(
            f"(() => {{ const plot = document.querySelector('#figure-{name} .plot');"
            " plot.focus(); })()"
        )
        tab.press("ArrowRight", 39)
    assert tab.run("document.querySelectorAll('img:not([src^=\"data:\"])').length") == 0
    assert tab.run("document.querySelectorAll('.plot a, .plot script').length") == 0
    assert tab.run("window.stolen") is None
    assert tab.complaints() == []
    assert tab.requests() == []
    tab.close()

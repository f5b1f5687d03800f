"""The page and its figures, from whole, unfinished, torn and hostile directories."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpzero.cli.main import run as command
from lpzero.errors import InputError
from lpzero.exhaust import ExhaustSettings, exhaust
from lpzero.exhaust import report as exhaust_report
from lpzero.exhaust import scores as exhaust_scores
from lpzero.exhaust.run import exhaustive_config
from lpzero.judgement.correlation import spearman
from lpzero.judgement.measures import Measures
from lpzero.proxies.formula import FormulaProxy
from lpzero.report import search_page, style, write
from lpzero.report.chart import Line
from lpzero.report.figures import convergence, trained
from lpzero.report.figures import transfer as transferring
from lpzero.report.markup import Markup, element
from lpzero.report.page import content_of
from lpzero.runs import layout
from lpzero.runs.config import RunConfig, read_config
from lpzero.runs.directory import RunDirectory
from lpzero.runs.run import Run, open_run
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.values import Values
from lpzero.search import Constraints, Request
from lpzero.search import run as run_search
from lpzero.search.search_run import SearchRun
from spaces.tables import split
from tests.lpzero.column_file import write_csv
from tests.lpzero.conftest import Drawing
from tests.lpzero.sealed_runs import content, rewrite, rewrite_hall, rewrite_journal
from tests.lpzero.small_campaign import discovery, sketches, table

pytestmark = pytest.mark.slow

EARLIER = '{"schema": 1, "version": "0.1.0"}'
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&$\\frac$"


@pytest.fixture
def copy(campaign: Path, tmp_path: Path) -> Path:
    return shutil.copytree(campaign, tmp_path / "copy", ignore=shutil.ignore_patterns("report"))


class _Checker(HTMLParser):
    """Every element closed in order, the text of every cell, every address."""

    void = frozenset({"meta", "link", "img", "br", "input", "col"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read(path: Path) -> _Checker:
    found = _Checker(path.read_text(encoding="utf-8"))
    assert not found.open
    return found


def test_the_page_is_well_formed_and_has_every_section(campaign: Path) -> None:
    written = write(open_run(campaign))
    assert len(written.figures) == 6 * len(style.FORMATS) == 18
    found = read(written.page)
    titles = ["Did it find something?", "Does it hold?", "What else?", "How was it searched?"]
    places = [found.text.index(title) for title in (*titles, "Reproduce The command")]
    assert places == sorted(places)
    linked = [at["href"] for tag, at in found.tags if tag == "a" and at.get("class") != "skip"]
    assert linked == ["#found", "#holds", "#others", "#search", "#reproduce"]
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_page_asks_for_nothing(campaign: Path) -> None:
    page = write(open_run(campaign)).page
    for _, attributes in read(page).tags:
        for key in ("src", "href", "action", "srcset"):
            assert (attributes.get(key) or "#").startswith(("data:", "#"))
    text = page.read_text()
    assert "default-src &#x27;none&#x27;" in text
    assert "url(" not in text
    assert "@import" not in text


def test_the_winner_and_every_counter_stand_with_all_their_numbers(campaign: Path) -> None:
    result = json.loads((campaign / layout.RESULT).read_text())
    text = read(write(open_run(campaign)).page).text.replace("−", "-")
    lines = [result["best"]["judged"]["made-up"], *(c["judged"] for c in result["counters"])]
    for judged in lines:
        for part in ("train", "valid", "test", "all"):
            for name in ("rho", "tau"):
                low, high = judged[part][f"{name}_ci"]
                assert f"{judged[part][name]:.3f} [{low:.3f}, {high:.3f}]" in text
    assert "whole table, n = 40 (in sample for the winner)" in text
    assert "test, n = 11 (in sample" not in text
    for counter in result["counters"]:
        assert counter["proxy"] in text


def test_equal_campaigns_give_equal_pages_and_figures(
    campaign: Path, copy: Path, drawing: Drawing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(style, "FORMATS", ("svg",))  # test_figures.py has the others
    with drawing():
        first, second = write(open_run(campaign)), write(open_run(copy))
    shown = [path.read_text().replace(str(folder), "DIR")
             for path, folder in ((first.page, campaign), (second.page, copy))]  # fmt: skip
    assert shown[0] == shown[1]
    assert len(first.figures) == len(second.figures) == 6
    for one, other in zip(first.figures, second.figures, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_an_unfinished_campaign_is_reported_as_far_as_it_is(copy: Path) -> None:
    for name in (layout.RESULT, layout.HALL, layout.HISTORY, "scores.json"):
        (copy / name).unlink()
    written = write(open_run(copy))
    found = read(written.page)
    assert "not finished" in found.text
    assert "There is no winner" in found.text
    assert f"--out {copy} --resume" in " ".join(written.remarks)
    assert {path.stem for path in written.figures} == {"convergence", "front", "pairs"}
    hall = json.loads((copy.parent / "copy" / layout.CONFIG).read_text())
    assert hall["request"]["tables"][0]["name"] in found.text


def test_a_result_older_than_its_journal_is_said(copy: Path) -> None:
    assert open_run(copy).remarks == []
    path = copy / layout.JOURNAL
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:-5]))
    (remark,) = open_run(copy).remarks
    assert f"counts {len(whole)} formulas, but journal.jsonl has {len(whole) - 5}" in remark


def test_the_page_holds_the_verdict_of_the_result(campaign: Path) -> None:
    result = json.loads((campaign / layout.RESULT).read_text())
    text = read(write(open_run(campaign)).page).text
    assert result["verdict"] in text
    assert f"The best count: {result['count']['formula']}." in text


def test_the_best_count_stands_beside_the_winner(copy: Path) -> None:
    result = content(copy, layout.RESULT)
    judged = {"made-up": result["counters"][0]["judged"]}
    result["count"] = {"formula": HOSTILE, "rho": result["counters"][0]["rho"], "judged": judged}
    rewrite(copy, layout.RESULT, result)
    page = write(open_run(copy)).page
    assert f"The best count: {HOSTILE}." in read(page).text
    assert HOSTILE not in page.read_text()
    low, high = judged["made-up"]["train"]["rho_ci"]
    row = f"the best count {judged['made-up']['train']['rho']:.3f} [{low:.3f}, {high:.3f}]"
    assert row in read(page).text.replace("−", "-")


def test_a_result_without_a_verdict_says_how_to_get_one(copy: Path) -> None:
    result = content(copy, layout.RESULT)
    for field in ("count", "difference", "differences", "stability", "verdict"):
        del result[field]
    rewrite(copy, layout.RESULT, result)
    assert "run the same command again" in read(write(open_run(copy)).page).text


def test_counters_that_were_not_judged_leave_their_cells_empty(copy: Path) -> None:
    result = content(copy, layout.RESULT)
    for line in result["counters"]:
        del line["judged"]
    rewrite(copy, layout.RESULT, result)
    assert "depth-sqrt-width – – – –" in read(write(open_run(copy)).page).text


@pytest.fixture(scope="module")
def exhausted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "exhausted"
    made, parts, asked = table(), split(table(), 0), ExhaustSettings(1)
    run = exhaust(made, sketches(), parts, out, asked)
    result = exhaust_report(made, parts, run, asked)
    scores = exhaust_scores(made, parts, run[1], result)
    with RunDirectory(out, exhaustive_config(made, parts, asked), resume=True) as directory:
        directory.write_result(result, 0.0, scores)
    return out


def test_an_exhaustive_run_has_a_page(exhausted: Path) -> None:
    written = write(open_run(exhausted))
    assert written.remarks == ()
    result = json.loads((exhausted / "result.json").read_text())
    text = read(written.page).text
    assert "made-up: exhaustive run" in text
    assert f"{result['evaluated']:,}" in text
    assert all(line["formula"] in text for line in result["top"])
    low, high = result["best"]["judged"]["made-up"]["test"]["rho_ci"]
    assert f"{result['best']['rho']['test']:.3f} [{low:.3f}, {high:.3f}]" in text
    assert {path.stem for path in written.figures} == {
        "scores-made-up",
        "ranks-made-up",
        "rivals-made-up",
        "front",
        "pairs",
    }


def test_an_unfinished_exhaustive_run_says_so(exhausted: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(exhausted, tmp_path / "copy", ignore=shutil.ignore_patterns("report"))
    (copy / "result.json").unlink()
    (copy / "scores.json").unlink()
    assert "nothing is computed again" in open_run(copy).remarks[0]
    next((copy / "shards").iterdir()).unlink()
    written = write(open_run(copy))
    assert "The run is not finished: 1 of " in written.remarks[0]
    assert written.figures == ()
    assert "There is no winner" in read(written.page).text


def test_the_hall_made_from_the_journal_is_the_one_that_was_written(copy: Path) -> None:
    written = open_run(copy).hall
    (copy / layout.HALL).unlink()
    assert open_run(copy).hall == written


def test_nothing_but_the_report_is_written(copy: Path) -> None:
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    write(open_run(copy))
    after = {path.name: path.read_bytes() for path in copy.iterdir() if path.is_file()}
    assert after == before


def test_a_torn_journal_is_said_and_left_alone(copy: Path) -> None:
    path = copy / layout.JOURNAL
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"id": 99999, "gen')
    written = write(open_run(copy))
    assert "are torn and were ignored" in written.remarks[0]
    assert path.read_bytes().endswith(b'"gen')


@pytest.mark.parametrize("name", [layout.RESULT, layout.HALL, layout.HISTORY, layout.SCORES])
@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff\xfe", b'{"a": 1}'])
def test_a_broken_file_gives_a_page_or_one_line(
    copy: Path, name: str, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy / name).write_bytes(data)
    code = command(["report", str(copy)])
    lines = capsys.readouterr().err.strip().splitlines()
    if code == 0:
        read(copy / "report" / "index.html")
    else:
        assert code == 2
        assert len(lines) == 1
        assert str(copy) in lines[0]
    assert not any(line.startswith("error: unexpected") for line in lines)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda d: d / "nowhere", "is not a directory"),
        (lambda d: d, "has no run"),
        (lambda d: (d / "config.json").write_text("{") and d, "is broken"),
        (
            lambda d: (d / "config.json").write_text('{"schema": 99}') and d,
            "schema 99, but this version reads schema 3",
        ),
        (
            lambda d: (d / "run.json").write_text(EARLIER) and d,
            "written by lpzero 0.1.0 with schema 1",
        ),
    ],
)
def test_what_is_no_run_is_refused_in_one_line(
    tmp_path: Path, make: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["report", str(make(tmp_path))]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert "\n" not in error


def test_a_folder_that_takes_no_files_is_refused_before_anything_is_drawn(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The mode of a directory does not stop root, as whom tests may run.
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    before = sorted(copy.rglob("*"))
    assert command(["report", str(copy)]) == 2
    assert f"{copy} is not writable" in capsys.readouterr().err
    assert sorted(copy.rglob("*")) == before


def poison(folder: Path) -> None:
    """Put markup wherever a file of the campaign holds text."""
    config = content(folder, layout.CONFIG)
    config["request"]["tables"][0]["target"] = config["versions"]["numpy"] = HOSTILE
    config["request"]["settings"]["start"] = [HOSTILE]
    rewrite(folder, layout.CONFIG, config)
    hall = json.loads((folder / layout.HALL).read_text())
    hall[0]["formula"] = hall[0]["operator"] = HOSTILE
    rewrite_hall(folder, hall)
    result = content(folder, layout.RESULT)
    result["counters"][0]["proxy"] = result["tables"][0]["licence"] = HOSTILE
    result["stopped"] = result["verdict"] = HOSTILE
    rewrite(folder, layout.RESULT, result)
    sheet = content(folder, layout.SCORES)
    sheet["tables"][f"../../{HOSTILE}"] = sheet["tables"]["made-up"]
    rewrite(folder, layout.SCORES, sheet)


def test_names_from_files_lead_nowhere_and_are_drawn_as_they_are(
    copy: Path, monkeypatch: pytest.MonkeyPatch, drawing: Drawing
) -> None:
    monkeypatch.setattr(style, "FORMATS", ("svg",))  # enough: all draw the same labels
    poison(copy)
    before = {path for path in copy.parent.rglob("*") if path.is_file()}
    with drawing():
        written = write(open_run(copy))
    assert all(path.parent == copy / "report" / "figures" for path in written.figures)
    after = {path for path in copy.parent.rglob("*") if path.is_file()}
    assert after - before == {written.page, *written.figures}


_LINE = {
    "id": 0, "generation": 0, "operator": "random", "parents": [], "formula": "sum(W)",
    "fitness": [0.5], "complexity": 2, "train": {"made-up": dict.fromkeys(Measures._fields, 0.5)},
}  # fmt: skip


@pytest.mark.parametrize("line", [{"train": {"made-up": {}}}, {"train": 3}, {"formula": 7}])
@pytest.mark.parametrize("number", [0, 1])
def test_a_journal_of_something_else_is_one_line(
    copy: Path, line: dict[str, Any], number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = _LINE | line | {"id": number}
    rewrite_journal(copy, [*([_LINE] if number else []), wrong, _LINE | {"id": number + 1}])
    assert command(["report", str(copy)]) == 2
    error = capsys.readouterr().err.strip()
    assert (
        f"line {number + 1} of {copy / layout.JOURNAL} was changed or is not of this run" in error
    )
    assert "\n" not in error
    assert not (copy / "report").exists()


def test_a_journal_with_a_formula_of_another_language_is_one_line(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite_journal(copy, [_LINE | {"formula": "sum(nothing(W))"}])
    assert command(["report", str(copy)]) == 2
    error = capsys.readouterr().err.strip()
    assert "are not those of a run of this version" in error
    assert "\n" not in error


def test_the_page_is_opened_on_request(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda uri: bool(shown.append(uri)))
    assert command(["report", str(copy), "--open"]) == 0
    assert shown == [(copy / "report" / "index.html").as_uri()]


def test_markup_in_a_file_stays_text(copy: Path) -> None:
    poison(copy)
    found = read(write(open_run(copy)).page)
    assert not [attributes for _, attributes in found.tags if "onerror" in attributes]
    assert {attributes["src"][:5] for tag, attributes in found.tags if tag == "img"} == {"data:"}
    assert found.text.count(HOSTILE) >= 6
    kinds = [attributes.get("type") for tag, attributes in found.tags if tag == "script"]
    assert kinds == ["application/json", "text/plain", None], "one script of ours runs"


def test_campaigns_of_other_seeds_are_one_arm(campaign: Path, tmp_path: Path) -> None:
    discovery(tmp_path / "seed", seed=4).run()
    discovery(tmp_path / "other", method="random").run()
    others = [open_run(tmp_path / name) for name in ("seed", "other")]
    content = content_of(open_run(campaign), others)
    (chart,) = [chart for chart in content.figures if chart.name == "convergence"]
    names = [series.name for series in chart.panels[0].series if isinstance(series, Line)]
    assert names == ["method front (2 runs)", "method random"]
    assert "3 campaigns" in read(write(open_run(campaign), None, others).page).text


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("search") / "search"
    words = "search nano-gpt2 --loop random --proxy depth --samples 40 --max-parameters 400000"
    words += " --evaluator proxy --quiet --format json"
    assert command([*words.split(), "--out", str(out)]) == 0
    return out


def test_a_search_has_a_page_with_its_best_and_its_trace(searched: Path) -> None:
    result = json.loads((searched / layout.RESULT).read_text())
    written = write(open_run(searched))
    text = read(written.page).text
    assert json.dumps(result["best"]["arch"]) in text
    assert f"{result['best']['parameters']:,}" in text
    assert "Nothing was evaluated" in text
    assert {path.stem for path in written.figures} == {"convergence"}


def test_what_the_loop_remarked_is_on_the_page_of_a_search(searched: Path, tmp_path: Path) -> None:
    # So few architectures are within the bounds that a step finds no new one.
    bounds = Constraints({"parameters": (None, 20_000.0)})
    constants = {"population": 8, "mutations": 4, "crossovers": 4, "steps": 6, "shape_moves": 0.0}
    asked = Request("nano-gpt2", "trazor", "sum(params)", constants=constants, constraints=bounds)
    outcome = run_search(asked, out=tmp_path / "trazor")
    (remark,) = outcome.result["remarks"]
    assert remark in read(write(open_run(tmp_path / "trazor")).page).text
    assert "remarks" not in json.loads((searched / layout.RESULT).read_text())
    run = open_run(searched)
    assert isinstance(run, SearchRun)
    assert search_page.content(run).remarks == []


def test_the_page_of_a_budget_says_what_was_trained_and_why(tmp_path: Path) -> None:
    constants = {"budget": 8, "samples": 60, "front": "flops"}
    asked = Request("nano-gpt2", "budget", evaluator="table", constants=constants)
    result = run_search(asked, out=tmp_path / "budget").result
    run = open_run(tmp_path / "budget")
    assert isinstance(run, SearchRun)
    charts = {chart.name: chart for chart in search_page.content(run).figures}
    assert set(charts) == {"trained", "convergence"}
    [panel] = charts["trained"].panels
    assert (panel.x.title, panel.y.title) == ("flops", "minus validation loss")
    *dots, edge = panel.series
    assert sum(len(points.x) for points in dots) == 8
    assert list(edge.y) == [entry["target"] for entry in result["front"]]
    names = charts["convergence"].names
    assert "without a search: random, the median" in names
    text = read(write(run).page).text
    for entry in result["trace"]:
        assert json.dumps(entry["arch"]) in text
    assert text.count("the largest expected improvement") >= 2
    failed = [{**entry, "target": None, "failure": "no memory"} for entry in result["trace"]]
    assert trained.chart(failed, "flops", "target") is None
    drawn = trained.chart([*failed[:2], *result["trace"]], "flops", "target")
    assert drawn is not None
    assert "2 failed trainings are not drawn" in drawn.caption


def test_the_printed_command_makes_the_same_search(searched: Path, tmp_path: Path) -> None:
    text = read(write(open_run(searched), tmp_path / "page.html").page).text
    line = text[text.index("lpzero search nano-gpt2") : text.index(" lpzero report")]
    words = shlex.split(line)
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert command([*words[1:], "--quiet"]) == 0
    assert (tmp_path / "again" / layout.RESULT).read_bytes() == (
        searched / layout.RESULT
    ).read_bytes()


def test_the_printed_command_has_the_networks_and_the_reach_of_the_search(tmp_path: Path) -> None:
    whole = ["--networks", "as-ranked", "--evaluator", "surrogate", "--beyond-table"]
    words = ["search", "nano-gpt2", "--loop", "random", "--proxy", "depth", "--samples", "20"]
    for name, given in (("usual", []), ("whole", whole)):
        folder = tmp_path / name
        assert command([*words, *given, "--evaluations", "2", "--out", str(folder), "--quiet"]) == 0
        text = read(write(open_run(folder)).page).text
        line = text[text.index("lpzero search nano-gpt2") : text.index(" lpzero report")]
        again = shlex.split(line)[1:]
        assert [word in again for word in ("--networks", "--beyond-table")] == [bool(given)] * 2
        again[again.index("--out") + 1] = str(tmp_path / f"{name}-again")
        assert command([*again, "--quiet"]) == 0
        results = [tmp_path / f"{name}{end}" / layout.RESULT for end in ("", "-again")]
        assert results[0].read_bytes() == results[1].read_bytes()


def test_an_unfinished_search_says_so(searched: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(searched, tmp_path / "copy")
    (copy / layout.RESULT).unlink()
    written = write(open_run(copy))
    assert written.figures == ()
    assert "--resume" in written.remarks[0]
    assert "There is no result" in read(written.page).text


def test_runs_of_two_kinds_do_not_stand_in_one_figure(campaign: Path, searched: Path) -> None:
    with pytest.raises(InputError, match="cannot be compared with"):
        write(open_run(campaign), None, [open_run(searched)])


def test_an_arm_is_named_by_no_more_than_it_needs() -> None:
    runs: list[Any] = [
        ({"loop": "a", "samples": 1, "same": 0}, ["1"]),
        ({"loop": "a", "samples": 2, "same": 0}, ["2"]),
        ({"loop": "b", "depth": 3, "same": 0}, ["3"]),
        ({"loop": "a", "samples": 1, "same": 0}, ["4"]),
    ]
    assert convergence.arms(runs) == {
        "loop a, samples 1": [["1"], ["4"]],
        "loop a, samples 2": [["2"]],
        "loop b": [["3"]],
    }
    assert convergence.arms(runs[:1]) == {"this run": [["1"]]}


def test_several_tables_have_a_transfer_matrix(tmp_path: Path) -> None:
    both = [table(), table(name="another made-up")]
    discovery(tmp_path / "both", table=both, generations=2).run()
    written = write(open_run(tmp_path / "both"))
    assert "transfer" in {path.stem for path in written.figures}
    text = read(written.page).text
    assert "another made-up: the winner and the counters" in text
    result = json.loads((tmp_path / "both" / layout.RESULT).read_text())
    assert all(verdict in text for verdict in result["verdict_by_table"].values())
    assert len(result["verdict_by_table"]) == 2


def test_tables_left_out_are_the_transfer_of_a_nested_choice(tmp_path: Path) -> None:
    both = [table(), table(30, name="another made-up")]
    asked = {"generations": 1, "choose": "nested", "terms": 2, "permutations": 0}
    discovery(tmp_path / "both", table=both, **asked).run()
    written = write(open_run(tmp_path / "both"))
    assert "transfer" in {path.stem for path in written.figures}
    lines = json.loads((tmp_path / "both" / layout.RESULT).read_text())["levels"]["tables_left_out"]
    assert [line["table"] for line in lines] == [of.name for of in both]
    text, raw = read(written.page).text, written.page.read_text(encoding="utf-8")
    for line in lines:
        assert line["rho"] == line["rho_by_table"][line["table"]]
        assert f"{line['table']}: {line['counter']} {line['counter_rho']:.3f}" in text
        for name, rho in line["rho_by_table"].items():
            assert f"chosen without {line['table']} on {name} {rho:.3f}" in raw


@pytest.fixture
def _made_up_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables by name are the made-up ones, and formulas are scored on their drawn sketches."""

    def score(self: FormulaProxy, space: Any, archs: Any, context: Any) -> Any:
        return Values(branch_table(sketches(len(archs)), surviving(1))).score(self.formula)

    monkeypatch.setattr("spaces.tables.load", lambda name, data, space: table(name=name))
    monkeypatch.setattr(FormulaProxy, "score", score)


@pytest.mark.usefixtures("_made_up_tables")
def test_winners_are_scored_on_each_others_test_rows(
    campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = table(name="another made-up")
    discovery(tmp_path / "other", table=other, split_seed=1, seed=8).run()
    runs: list[Any] = [open_run(campaign), open_run(tmp_path / "other")]
    found = transferring.measure(runs)
    assert found.tables == ("made-up", "another made-up")
    for i, run in enumerate(runs):
        assert found.rho[i, i] == run.result["best"]["rho"]["test"]
    rows = split(other, 1).open_test()
    scores = np.array(runs[0].scores["tables"]["made-up"]["score"])  # the same architectures
    assert found.rho[0, 1] == spearman(scores[rows], other.targets[rows])
    page = write(runs[0], tmp_path / "p.html", runs[1:], None, found).page
    assert "The winner of each run on the test rows of every table" in read(page).text
    _check_the_command(campaign, tmp_path / "other", tmp_path / "q.html", found.rho, capsys)


def _check_the_command(
    one: Path, other: Path, page: Path, rho: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """`report --transfer` draws these numbers, and without it nothing of them."""
    words = ["report", str(one), "--beside", str(other), "--out", str(page), "--format", "json"]
    for given, is_drawn in ((["--transfer"], True), ([], False)):
        capsys.readouterr()
        assert command([*words, *given]) == 0
        written = json.loads(capsys.readouterr().out)
        assert ("transfer" in {Path(name).stem for name in written["figures"]}) == is_drawn
        text = read(page).text
        assert ("The winner of each run on the test rows of every table" in text) == is_drawn
        assert all(f"{value:.3f}" in page.read_text() for value in rho.flat) or not is_drawn


@pytest.mark.usefixtures("_made_up_tables")
def test_transfer_says_what_it_cannot_do(campaign: Path, copy: Path, searched: Path) -> None:
    one: Any = open_run(campaign)
    with pytest.raises(InputError, match="two or more different tables"):
        transferring.measure([one, one])
    (copy / layout.RESULT).unlink()
    unfinished: Any = open_run(copy)
    with pytest.raises(InputError, match="no winner"):
        transferring.measure([one, unfinished])
    assert command(["report", str(campaign), "--beside", str(searched), "--transfer"]) == 2


def test_a_ranking_gives_a_figure_of_all_proxies(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"proxy": "snip", "rho": 0.5, "rho_ci": [0.4, 0.6]}]
    (tmp_path / "rank.json").write_text(json.dumps(rows))
    arguments = ["report", str(copy), "--ranking", str(tmp_path / "rank.json"), "--format", "json"]
    assert command(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert any(name.endswith("proxies.pdf") for name in found["figures"])
    (tmp_path / "rank.json").write_text("{}")
    assert command(arguments) == 2
    assert "lpzero rank TABLE --format json" in capsys.readouterr().err


_OPTIONS = (
    "discover nano-gpt2 nano-rnn --preset paper --unaries 1 --generations 2 --choose train --seed 5"
    " --statistics AH --objective rho,within --same-statistic --start sum(abs(A)) --split-seed 3"
    " --pool 0.2 --neighbours 0.25 --immigrants 0.3 --sketch-seed 4 --rules inverse-pair --batch 3"
    " --length 9 --definitions released --permutations 3 --upstream-dims --forward-only"
)


def test_the_printed_command_of_a_campaign_has_every_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    out = tmp_path / "a b"
    config = RunConfig("campaign", {"tables": [{"name": "nano-gpt2"}]})

    def configure(tables: list[str], **options: Any) -> None:
        del options["proxy_scores"], options["jobs"], options["callbacks"]
        given.append((tables, options))
        with RunDirectory(out, config, True):
            raise InputError("enough")

    monkeypatch.setattr("lpzero.discover.discovery.Campaign", configure)
    assert command([*_OPTIONS.split(), "--out", str(out), "--jobs", "2"]) == 2
    stored = read_config(out)
    assert stored is not None
    words = Run(stored, None, []).command
    assert words is not None
    assert "--jobs" not in words
    assert command(words[1:]) == 2
    assert given[0] == given[1]
    tables, options = given[0]
    assert tables == ["nano-gpt2", "nano-rnn"]
    assert (options["split_seed"], options["sketch_seed"]) == (3, 4)
    assert options["statistics"] == ("A", "H")
    assert options["objectives"] == ("rho", "within")
    assert options["start"] == ("sum(abs(A))",)


def test_the_page_of_a_campaign_shows_its_command(tmp_path: Path) -> None:
    path, out = write_csv(tmp_path), tmp_path / "run"
    words = f"discover {path} --target accuracy --columns-only --generations 1 --population 10"
    words += " --offspring 5 --permutations 0 --splits 0 --seed 7"
    assert command([*words.split(), "--quiet", "--out", str(out), "--format", "json"]) == 0
    text = read(write(open_run(out)).page).text
    printed = text[text.index("Reproduce lpzero discover") :]
    for part in (str(path), "--target accuracy", "--columns-only", "--seed 7", f"--out {out}"):
        assert part in printed
    assert "The command is not known" not in text


def test_elements_escape_all_but_markup() -> None:
    assert element("p", "<b>", Markup("<i></i>"), None, 3) == "<p>&lt;b&gt;<i></i>3</p>"
    assert element("a", title='"<', hidden=True, id=None) == '<a title="&quot;&lt;" hidden></a>'
    with pytest.raises(ValueError, match="not the name of an attribute"):
        element("a", **{"on click": "x"})


def test_every_rejecting_rule_has_its_reason(campaign: Path) -> None:
    run = open_run(campaign)
    result = json.loads((campaign / layout.RESULT).read_text())
    assert dict(run.rejected) == result["rejected"]
    assert run.counts["tried"] == result["tried"]
    assert run.counts["evaluated"] == result["evaluated"]
    text = write(run).page.read_text()
    for rule, count in run.rejected.items():
        assert re.search(rf">{rule}</th><td[^>]*>{count}</td><td[^>]*>[\d.]+</td><td>\w", text)

"""A page for every kind of run, and the same figures from Python objects."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpzero.cli.main import run as command
from lpzero.errors import InputError
from lpzero.judgement.bootstrap import paired_difference
from lpzero.proxies.ranking import RankingRun
from lpzero.report import notebook, plotly_chart, write
from lpzero.report.figures import front, rivals, trainings
from lpzero.report.page import content_of
from lpzero.report.ranking_page import compared
from lpzero.runs import layout
from lpzero.runs.directory import RunDirectory
from lpzero.runs.run import follow_run, line_of, open_run
from lpzero.training.table_build import build_config, is_training
from spaces.training.recipes import plan_named
from tests.lpzero.report.test_report import HOSTILE, read
from tests.lpzero.sealed_runs import content, rewrite
from tests.lpzero.small_campaign import discovery

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ranking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("kinds") / "ranking"
    words = ["rank", "nano-gpt2", "--proxy", "depth", "--proxy", "parameters", "--out", str(out)]
    assert command([*words, "--format", "json"]) == 0
    return out


def validated(figures: Any) -> int:
    """How many specifications Plotly's own schema accepts; an unknown field raises."""
    from plotly.graph_objects import Figure

    return len([Figure(plotly_chart.coloured(plotly_chart.spec(chart))) for chart in figures])


def test_a_ranking_has_a_page_with_every_row(ranking: Path) -> None:
    result = json.loads((ranking / layout.RESULT).read_text())
    page = ranking / "report" / "index.html"
    text = read(page).text.replace("−", "-")
    first, second = result["rows"]
    assert f"nano-gpt2: {first['proxy']} is first of 2" in text
    for row in (first, second):
        low, high = row["rho_ci"]
        assert f"{row['rho']:.3f} [{low:.3f}, {high:.3f}]" in text
    assert validated(content_of(open_run(ranking)).figures) == 3


def test_the_printed_command_makes_the_same_ranking(ranking: Path, tmp_path: Path) -> None:
    text = read(ranking / "report" / "index.html").text
    line = text[text.index("lpzero rank nano-gpt2") : text.index(" lpzero report")]
    words = shlex.split(line)
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert command([*words[1:], "--format", "json"]) == 0
    for name in (layout.CONFIG, layout.SCORES):
        assert (tmp_path / "again" / name).read_bytes() == (ranking / name).read_bytes()


def test_a_ranking_beside_a_winner_tells_paired_differences(
    campaign: Path, ranking: Path, tmp_path: Path
) -> None:
    run: Any = open_run(campaign)
    ranked: Any = open_run(ranking)
    assert isinstance(ranked, RankingRun)
    with pytest.raises(InputError, match="not the table of"):
        compared(ranked, run)
    column = run.scores["tables"]["made-up"]
    scores = np.linspace(0, 1, 40)
    scores[3] = np.nan
    row = {"proxy": "mine", "rho": 0.1, "rho_ci": [0, 1], "test": {"rho": 0.2, "rho_ci": [0, 1]}}
    about = {**ranked.request, "tables": [run.request["tables"][0]]}
    config = type(ranked.config)(tmp_path, "ranking", "0", {}, about)
    listed = [None if np.isnan(score) else float(score) for score in scores]
    columns = {"made-up": {**column, "scores": {"mine": listed}}}
    sheet = {"formula": "mine", "tables": columns}
    made = RankingRun(config, {"rows": [row]}, [], sheet)
    (found,) = compared(made, run)
    kept = [i for i, part in enumerate(column["part"]) if part == "test" and i != 3]
    targets, own = (np.array(column[key])[kept] for key in ("target", "score"))
    assert found["difference"] == paired_difference(own, scores[kept], targets).to_json()
    shown = rivals.of_run(run, "made-up", [found])
    assert shown is not None
    (mine,) = [rival for rival in shown.others if rival.proxy == "mine"]
    assert (mine.rho, mine.difference) == (0.2, found["difference"])


def test_a_comparison_has_a_page_with_its_curves(tmp_path: Path) -> None:
    out = tmp_path / "compared"
    words = ["search", "nano-gpt2", "--compare", "--loop", "random", "--proxy", "depth"]
    words += ["--proxy", "none", "--samples", "20", "--seeds", "2", "--out", str(out), "--quiet"]
    assert command([*words, "--format", "json"]) == 0
    run = open_run(out)
    assert run.kind == "comparison"
    text = read(write(run).page).text.replace("−", "-")
    for row in json.loads((out / layout.RESULT).read_text())["rows"]:
        low, high = row["best_ci"]
        assert f"{row['arm']} 2" in text
        assert f"{row['best']:.3f} [{low:.3f}, {high:.3f}]" in text
    assert "--loop random --proxy depth --proxy none" in text
    assert "--samples 20" in text
    assert validated(content_of(run).figures) == 1
    assert line_of(run.config).state == "finished"
    whole = json.loads((out / layout.RESULT).read_text())["rows"]

    # As if it had been killed in its last search: the page shows the others.
    (out / layout.RESULT).unlink()
    last = max(path.parent for path in (out / "runs").rglob(layout.RESULT))
    shutil.move(last / layout.RESULT, tmp_path / "kept.json")
    run, live = open_run(out), follow_run(run.config)
    assert live.update(1.0) is not None
    assert live.now().facts == {"searches": "3 of 4"}
    assert line_of(run.config).state == "stopped"
    assert "not finished: 3 of 4 searches are" in run.remarks[0]
    text = read(write(run).page).text
    assert run.remarks[0] in text
    assert sorted(row["seeds"] for row in run.result["rows"]) == [1, 2]
    assert validated(content_of(run).figures) == 1
    os.symlink(tmp_path / "kept.json", last / layout.RESULT)
    assert open_run(out).remarks == run.remarks, "a link out of the folder is not followed"

    # Resumed, it is as if it had never been killed.
    (last / layout.RESULT).unlink()
    assert command([*words, "--format", "json", "--resume"]) == 0
    assert open_run(out).remarks == []
    assert json.loads((out / layout.RESULT).read_text())["rows"] == whole


def test_a_table_build_has_a_page_that_tells_the_noise(tmp_path: Path) -> None:
    plan = plan_named("nano-gpt2")
    lines = [
        {"index": i, "seed": seed, "target": -2.0 - i + seed / 10, "seconds": 3.0, "steps": 5}
        for i, seed in ((0, 0), (0, 1), (0, 2), (1, 0), (2, 0))
    ]
    failed = {"index": 3, "seed": 0, "target": None, "seconds": 1.0, "steps": 2}
    with RunDirectory(tmp_path / "b", build_config(plan), False, is_training) as directory:
        directory.journal.go_to(0)
        directory.journal.append([*lines, {**failed, "failure": HOSTILE}])
    run = open_run(tmp_path / "b")
    page = write(run).page
    text = read(page).text
    assert HOSTILE in text
    assert HOSTILE not in page.read_text()
    data = trainings.trainings(lines)
    assert data.within == pytest.approx(0.1)
    assert data.repeated == [0]
    assert data.order == [2, 1, 0]
    assert "spread between seeds of one architecture 0.1000" in text
    assert "0 −2.000 −1.900 −1.800 0.1000" in text, "the targets of each seed"
    assert "No training has a learning curve" in text, "as in journals of earlier versions"
    assert validated(content_of(run).figures) == 1


def test_a_table_build_draws_its_learning_curves(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"index": i, "seed": seed, "target": -2.0 - i, "seconds": 3.0, "steps": 9,
         "arch": {"name": HOSTILE if i == 1 else f"net {i}"},
         "curve": [[4, 5.0 + i], [9, 3.0 + i + seed / 10]]}
        for i, seed in ((0, 0), (0, 1), (1, 0), (2, 0))
    ]  # fmt: skip
    config = build_config(plan_named("nano-gpt2"))
    with RunDirectory(tmp_path / "b", config, False, is_training) as directory:
        directory.journal.go_to(0)
        directory.journal.append(lines)
    run = open_run(tmp_path / "b")
    page = write(run).page
    assert HOSTILE not in page.read_text()
    charts = {chart.name: chart for chart in content_of(run).figures}
    assert validated(charts.values()) == 2
    by_name: dict[str, list[Any]] = {}
    for trace in plotly_chart.spec(charts["learning-curves"])["data"]:
        by_name.setdefault(trace["name"], []).append(trace)
    (best,), (worst,), (other,) = (
        by_name[name] for name in ("highest target", "lowest target", "the others")
    )
    assert (best["x"], best["y"]) == ([4, 9, None, 4, 9], [5.0, 3.0, None, 5.0, 3.1])
    assert "net 0" in best["meta"]
    assert worst["y"] == [7.0, 5.0]
    assert "&lt;" in other["meta"], "the hostile name"
    assert "between 3.000 and 5.000" in charts["learning-curves"].words


def test_hundreds_of_networks_are_drawn_from_end_to_end() -> None:
    lines = [{"index": i, "seed": 0, "target": float(i), "curve": [[1, 2.0]]} for i in range(999)]
    data = trainings.learning_curves(lines)
    assert (data.n, len(data.networks)) == (999, 200)
    assert [data.networks[0].index, data.networks[-1].index] == [0, 998]


@pytest.mark.parametrize(
    "curve",
    [None, [[1]], [[1, 2.0], [1, 2.0]], [[1.0, 2.0]], [[1, math.nan]], [[1, 2]], [[1, 2.0]] * 33],
)
def test_a_journal_line_with_another_curve_is_not_a_training(curve: Any) -> None:
    line = {"index": 0, "seed": 0, "target": 1.0, "seconds": 1.0, "steps": 5}
    assert is_training({**line, "curve": [[2, 2.0], [5, 1.5]]}, 0)
    assert is_training(line, 0), "of an earlier version"
    assert not is_training({**line, "curve": curve}, 0)


def test_every_figure_of_a_campaign_is_valid_for_plotly(campaign: Path) -> None:
    assert validated(content_of(open_run(campaign)).figures) == 6


def test_the_front_offers_the_simplest_inside_the_interval() -> None:
    tried = ((1, 0.1), (3, 0.85), (3, 0.7), (4, 0.6), (6, 0.93), (9, 0.95))
    points = [front.Point(f"f{size}", size, fitness) for size, fitness in tried]
    chosen = points[-2]
    data = front.front(points, chosen, 0.8, "train")
    assert [p.complexity for p in data.steps] == [1, 3, 6, 9]
    assert data.simplest == points[1]
    assert front.front(points, chosen, 0.9, "train").simplest is None, "the winner itself"
    assert front.front(points, None, None, "train").simplest is None


def test_rivals_of_an_older_run_are_its_counters(campaign: Path, tmp_path: Path) -> None:
    run: Any = open_run(campaign)
    now = rivals.of_run(run, "made-up")
    assert now is not None
    kinds = {one.kind for one in now.others}
    assert {"counter", "best count", "published formula"} <= kinds
    sheet = content(campaign, layout.SCORES)
    stored = sheet["tables"]["made-up"].pop("rivals")
    assert [one.proxy for one in now.others] == [line["proxy"] for line in stored]
    older = type(run)(*(
        sheet if name == "scores" else getattr(run, name) for name in run.__dataclass_fields__
    ))  # fmt: skip
    before = rivals.of_run(older, "made-up")
    assert before is not None
    assert {one.kind for one in before.others} == {"counter", "best count"}


@pytest.mark.parametrize("name", ["plain", "a\x1b[31mb\u202e", HOSTILE, "x" * 200])
def test_texts_of_files_are_never_markup(name: str) -> None:
    for shown in (plotly_chart.shown(name), plotly_chart.wrapped(name)):
        assert "<" not in shown.replace("<br>", "")
        assert "\x1b" not in shown
        assert "$" not in shown
        assert "\u202e" not in shown
    assert len(plotly_chart.shown("y" * 200)) == 80


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("palette", ["light", "dark"])
def test_numbers_on_a_heat_map_and_lines_stand_out(palette: str) -> None:
    colours = plotly_chart.PALETTES[palette]

    def contrast(one: str, other: str) -> float:
        low, high = sorted([luminance(one), luminance(other)])
        return (high + 0.05) / (low + 0.05)

    assert all(contrast(colours["ink"], colour) >= 4.5 for _, colour in colours["scale"])
    assert all(contrast(colours["paper"], colours[str(i)]) >= 3 for i in range(1, 8))
    assert contrast(colours["soft"], colours["paper"]) >= 4.5


def test_a_notebook_has_the_same_figures_without_a_directory(campaign: Path) -> None:
    found = discovery().run()
    names = notebook.figure_names(found)
    assert names == notebook.figure_names(campaign)
    plotted, stored = (notebook.plot(source, "scores") for source in (found, campaign))
    assert plotted.to_json() == stored.to_json()
    assert [trace.name.split(":")[0] for trace in plotted.data] == ["train", "valid", "test"]
    assert notebook.plot(found).data[0].name == "the winner"
    page = notebook.page(found)
    assert found.result_["verdict"].split(";")[0].split("'")[0] in page.html
    assert page._repr_html_().count("<iframe") == 1
    assert repr(page) == f"Page({len(page.html):,} characters of HTML; save(path) writes it)"
    with pytest.raises(InputError, match="there are: rivals-made-up"):
        notebook.plot(found, "nothing")
    with pytest.raises(InputError, match="run\\(\\) first"):
        notebook.plot(discovery())


def test_a_hostile_ranking_stays_text(ranking: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(ranking, tmp_path / "copy")
    result = content(copy, layout.RESULT)
    result["rows"][0]["proxy"] = result["rows"][0]["paper"] = HOSTILE
    rewrite(copy, layout.RESULT, result)
    page = write(open_run(copy)).page
    assert HOSTILE in read(page).text
    assert HOSTILE not in page.read_text()

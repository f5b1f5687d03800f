from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from PIL import Image

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from lpzero.report import plotly_chart, style
from lpzero.report.chart import Axis, Cells, Chart, Line, Panel, Points
from lpzero.report.drawn_chart import draw
from lpzero.report.figures import convergence, pairs, ranking, scores, transfer
from lpzero.runs.formula_run import pairs_in
from primitives.formula import Formula
from primitives.parser import parse
from primitives.statistics import STATISTICS


def points(n: int = 30) -> scores.Scores:
    rng = np.random.default_rng(0)
    targets = rng.normal(size=n)
    parts = ["train"] * (n // 2) + ["valid"] * (n // 5) + ["test"] * (n - n // 2 - n // 5)
    values = targets + rng.normal(size=n) / 3
    return scores.scores("p", "a table", "minus loss", list(values), list(targets), parts)


def history(seed: int) -> list[dict[str, Any]]:
    rise = np.maximum.accumulate(np.random.default_rng(seed).uniform(0.5, 0.95, 8))
    return [{"evaluated": str(100 * (i + 1)), "fitness": str(v)} for i, v in enumerate(rise)]


ROWS = [
    {"proxy": "parameters", "rho": 0.7, "rho_ci": [0.6, 0.8]},
    {"proxy": "snip", "rho": 0.9, "rho_ci": [0.85, 0.93]},
    {"proxy": "bad", "rho": -0.2, "rho_ci": [-0.4, 0.1]},
]


def of_formulas(scored: list[tuple[Formula, float]]) -> pairs.Best:
    return pairs.best(pair for formula, rho in scored for pair in pairs_in(formula, rho))


HISTORIES = {"a": [history(0), history(1)], "b": [history(2)]}
CHARTS: dict[str, Callable[[], Chart]] = {
    "scores": lambda: scores.scatter(points(), "scores", ""),
    "ranks": lambda: scores.rank_panels(points(), "ranks", ""),
    "convergence": lambda: convergence.chart(
        convergence.convergence(HISTORIES, {"best": 0.9}), "convergence", "", ""
    ),
    "ranking": lambda: ranking.chart(ranking.ranking(ROWS), ""),
    "pairs": lambda: pairs.chart(
        of_formulas([(parse("sum(add(W, G))"), 0.4), (parse("sum(mul(A, S))"), -0.8)]), "train"
    ),
    "transfer": lambda: transfer.chart(
        transfer.transfer("ab", "fg", [[0.9, 0.2], [-0.1, 0.8]]), ""
    ),
}


@pytest.mark.parametrize("name", CHARTS)
def test_both_renderings_show_the_same_panels_series_and_numbers(name: str) -> None:
    chart = CHARTS[name]()
    spec, figure = plotly_chart.spec(chart), draw(chart)
    axes = [one for one in figure.axes if one.get_visible()][: len(chart.panels)]
    for place, (panel, drawn) in enumerate(zip(chart.panels, axes, strict=True)):
        number = "" if place == 0 else str(place + 1)
        traces = [t for t in spec["data"] if t["xaxis"] == f"x{number}" and "fill" not in t]
        if isinstance(panel.series[0], Cells):
            (trace,), (image,) = traces, drawn.images
            shown = np.array(trace["z"], dtype=float)
            np.testing.assert_array_equal(shown, image.get_array().filled(np.nan))
            np.testing.assert_array_equal(shown, panel.series[0].values)
            continue
        plotted = [line.get_xydata().tolist() for line in drawn.get_lines()]
        for series in panel.series:
            pairs_ = [[float(x), float(y)] for x, y in zip(series.x, series.y, strict=True)]
            assert pairs_ in [list(map(list, zip(t["x"], t["y"], strict=True))) for t in traces]
            assert pairs_ in plotted
            if isinstance(series, Points) and series.intervals is not None:
                (trace,) = [t for t in traces if t["y"] == list(series.y)]
                sides = zip(trace["error_x"]["arrayminus"], trace["error_x"]["array"], strict=True)
                ends = [(x - low, x + high) for (low, high), x in zip(sides, series.x, strict=True)]
                np.testing.assert_allclose(ends, series.intervals)
                for (low, high), y in zip(series.intervals, series.y, strict=True):
                    assert [[low, y], [high, y]] in plotted
        for level in panel.levels:
            shapes = [[shape["x0"], shape["y0"]] for shape in spec["layout"]["shapes"]]
            side = 0 if level.is_vertical else 1
            assert level.at in [at[side] for at in shapes]
            assert level.at in [at[side] for line in plotted for at in line]
        x, y = (spec["layout"][f"{side}axis{number}"]["title"]["text"] for side in "xy")
        assert x.endswith(drawn.get_xlabel())
        assert y == drawn.get_ylabel()


def test_proxies_with_equal_beginnings_have_rows_of_their_own() -> None:
    rows = [{**ROWS[0], "proxy": "x" * 60 + end} for end in "ab"]
    (trace,) = plotly_chart.spec(ranking.chart(ranking.ranking(rows), ""))["data"]
    assert trace["y"] == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form"),  # what makes bytes differ is of a format, or of a chart in any format
    [*((name, "svg") for name in CHARTS), ("ranks", "pdf"), ("ranks", "png")],
)
def test_equal_data_give_equal_bytes(name: str, form: str) -> None:
    first, second = (style.encode(draw(CHARTS[name]()), form) for _ in range(2))
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("name", CHARTS)
def test_nothing_is_cut_off_and_axes_are_labelled(name: str) -> None:
    figure = draw(CHARTS[name]())
    with Image.open(io.BytesIO(style.encode(figure, "png"))) as image:
        pixels = np.asarray(image.convert("L"))
    edges = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
    assert all((edge == 255).all() for edge in edges), "ink at the border"
    assert pixels.min() < 100
    texts = [t.get_text() for axes in figure.axes for t in (axes.xaxis.label, axes.yaxis.label)]
    assert sum(map(bool, texts)) >= 1 + (name not in ("ranking", "pairs"))


@pytest.mark.slow
def test_drawing_leaves_matplotlib_as_it_was() -> None:
    before = dict(matplotlib.rcParams)
    style.encode(draw(CHARTS["scores"]()), "svg")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.slow
def test_a_figure_is_saved_by_the_end_of_its_name(tmp_path: Path) -> None:
    path = style.save(draw(CHARTS["ranking"]()), tmp_path / "new" / "bars.pdf")
    assert path.read_bytes().startswith(b"%PDF")
    with pytest.raises(InputError, match="pdf, png, svg, not 'gif'"):
        style.save(draw(CHARTS["ranking"]()), tmp_path / "bars.gif")


@pytest.mark.slow
def test_names_of_any_kind_and_length_can_be_drawn() -> None:
    name = "$x^{" + "sum(mul(W, " * 40 + "表\n"
    data = scores.scores(name, name, name, [1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    rows = [{"proxy": name, "rho": 0.5, "rho_ci": [0.4, 0.6]}]
    histories = {name: [history(0)], "other": [history(1)]}
    for chart in (
        scores.scatter(data, name, name),
        scores.rank_panels(data, name, name),
        ranking.chart(ranking.ranking(rows), name),
        convergence.chart(convergence.convergence(histories, measured=name), name, name, name),
        transfer.chart(transfer.transfer([name, "b"], [name, "g"], [[1, 0], [0, 1]]), name),
    ):
        assert style.encode(draw(chart), "png")


def test_scores_know_the_rho_of_each_part() -> None:
    data = points()
    rows = [i for i, part in enumerate(data.parts) if part == "test"]
    assert data.rho("test") == spearman(data.scores[rows], data.targets[rows])
    assert data.rho("nowhere") is None


def test_scores_over_many_magnitudes_are_drawn_on_a_logarithm() -> None:
    wide = scores.scores("p", "t", "y", [1e-3, 1.0, 1e3], [1, 2, 3])
    assert wide.is_wide
    chart = scores.scatter(wide, "", "")
    assert draw(chart).axes[0].get_xscale() == "log"
    assert plotly_chart.spec(chart)["layout"]["xaxis"]["type"] == "log"
    assert not scores.scores("p", "t", "y", [-1.0, 1.0, 1e3], [1, 2, 3]).is_wide


@pytest.mark.parametrize(
    ("values", "targets", "parts"),
    [
        ([], [], None),
        ([1.0], [1.0, 2.0], None),
        ([1.0, float("nan")], [1, 2], None),
        ([1.0, 2.0], [1, 2], ["train"]),
    ],
)
def test_scores_that_do_not_fit_are_refused(values: Any, targets: Any, parts: Any) -> None:
    with pytest.raises(InputError):
        scores.scores("p", "t", "y", values, targets, parts)


def test_the_best_has_rank_one_and_ties_share() -> None:
    data = scores.scores("p", "t", "y", [5.0, 7.0, 5.0, 1.0], [1.0, 4.0, 3.0, 2.0])
    by_score, by_target = scores.ranks(data)
    assert by_score.tolist() == [2.5, 1.0, 2.5, 4.0]
    assert by_target.tolist() == [4.0, 1.0, 2.0, 3.0]


def test_convergence_is_the_best_after_whole_generations() -> None:
    rows = [{"evaluated": 10, "fitness": 0.5}, {"evaluated": 20, "fitness": 0.7}]
    later = [{"evaluated": 15, "fitness": 0.3}, {"evaluated": 20, "fitness": 0.3}]
    grid = np.array([9.0, 10.0, 19.0, 20.0, 21.0])
    data = convergence.convergence({"a": [rows, later]}, evaluated=grid)
    np.testing.assert_equal(data.arms[0].fitness[0], [np.nan, 0.5, 0.5, 0.7, np.nan])
    np.testing.assert_equal(data.arms[0].fitness[1], [np.nan, np.nan, 0.3, 0.3, np.nan])
    np.testing.assert_equal(data.arms[0].mean, [np.nan, np.nan, 0.4, 0.5, np.nan])
    interval = data.arms[0].interval
    assert interval is not None
    low, high = interval
    assert 0.3 <= low[3] < high[3] <= 0.7


@pytest.mark.parametrize("histories", [{}, {"a": [[]]}, {"a": [[{"evaluated": "x"}]]}])
def test_histories_without_numbers_are_refused(histories: Any) -> None:
    with pytest.raises(InputError):
        convergence.convergence(histories)


def test_proxies_are_best_first_and_know_the_parameters() -> None:
    data = ranking.ranking(ROWS)
    assert [entry.proxy for entry in data.proxies] == ["snip", "parameters", "bad"]
    assert data.parameters == 0.7
    assert [entry.is_counter for entry in data.proxies] == [False, True, False]
    assert ranking.ranking(ROWS[1:]).parameters is None


@pytest.mark.parametrize("rows", [[], [{"proxy": "a"}], [{"proxy": "a", "rho": 1, "rho_ci": [1]}]])
def test_rows_of_something_else_are_refused(rows: Any) -> None:
    with pytest.raises(InputError):
        ranking.ranking(rows)


def place(data: pairs.Best, operation: str, one: str, other: str) -> float:
    names = list(STATISTICS)
    plane: FloatArray = data.rho[data.operations.index(operation)]
    return float(plane[names.index(one), names.index(other)])


def test_the_heat_map_holds_the_best_of_each_pair_either_way_round() -> None:
    data = of_formulas(
        (parse(text), rho)
        for text, rho in [
            ("sum(add(W, G))", 0.4),
            ("-mean(add(log(G), W))", -0.6),
            ("sum(add(A, disconnect(W)))", 0.3),
            ("sum(mul(add(A, H), S))", 0.9),
            ("sum(mul(W, W))", 0.2),
        ]
    )
    assert place(data, "add", "W", "G") == place(data, "add", "G", "W") == 0.6
    assert place(data, "one-sided", "A", "A") == 0.3
    assert place(data, "mul", "A", "S") == place(data, "mul", "A", "H") == 0.9
    assert place(data, "mul", "W", "W") == 0.2
    assert "sub" not in data.operations
    assert np.isnan(place(data, "add", "A", "H"))


def test_transfer_takes_the_best_formula_of_each_table() -> None:
    def line(formula: str, a: float, b: float) -> dict[str, Any]:
        return {
            "formula": formula,
            "rho_by_table": {"a": {"train": a, "test": a / 2}, "b": {"train": b, "test": b / 2}},
        }

    data = transfer.of_campaign([line("f", 0.9, 0.4), line("g", 0.6, 0.8)])
    assert data.formulas == ("f", "g")
    assert data.rho.tolist() == [[0.45, 0.2], [0.3, 0.4]]
    with pytest.raises(InputError, match="two tables"):
        transfer.of_campaign([{"formula": "f", "rho": {}}])


def test_numbers_of_a_chart_may_be_any_sequence() -> None:
    line = Line(x=range(3), y=(1.0, float("nan"), 2.0))
    made = Chart(name="a", caption="", words="", panels=[Panel(series=[line], x=Axis(), y=Axis())])
    [trace] = plotly_chart.spec(made)["data"]
    assert (trace["x"], trace["y"]) == ([0, 1, 2], [1.0, None, 2.0])

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from lpzero.report.figures import bars, convergence, heatmap, ranks, scatter, style, transfer
from lpzero.runs.formula_run import pairs_in
from primitives.formula import Formula
from primitives.parser import parse
from primitives.statistics import STATISTICS


def points(n: int = 30) -> scatter.Scores:
    rng = np.random.default_rng(0)
    targets = rng.normal(size=n)
    parts = ["train"] * (n // 2) + ["valid"] * (n // 5) + ["test"] * (n - n // 2 - n // 5)
    values = targets + rng.normal(size=n) / 3
    return scatter.scores("p", "a table", "minus loss", list(values), list(targets), parts)


def history(seed: int) -> list[dict[str, Any]]:
    rise = np.maximum.accumulate(np.random.default_rng(seed).uniform(0.5, 0.95, 8))
    return [{"evaluated": str(100 * (i + 1)), "fitness": str(v)} for i, v in enumerate(rise)]


ROWS = [
    {"proxy": "parameters", "rho": 0.7, "rho_ci": [0.6, 0.8]},
    {"proxy": "snip", "rho": 0.9, "rho_ci": [0.85, 0.93]},
    {"proxy": "bad", "rho": -0.2, "rho_ci": [-0.4, 0.1]},
]


def of_formulas(scored: list[tuple[Formula, float]]) -> heatmap.Best:
    return heatmap.best(pair for formula, rho in scored for pair in pairs_in(formula, rho))


DRAWINGS: dict[str, Callable[[], Figure]] = {
    "scatter": lambda: scatter.draw(points()),
    "ranks": lambda: ranks.draw(points()),
    "convergence": lambda: convergence.draw(
        convergence.convergence({"a": [history(0), history(1)], "b": [history(2)]}, {"best": 0.9})
    ),
    "bars": lambda: bars.draw(bars.bars(ROWS, "all")),
    "heatmap": lambda: heatmap.draw(
        of_formulas([(parse("sum(add(W, G))"), 0.4), (parse("sum(mul(A, S))"), -0.8)])
    ),
    "transfer": lambda: transfer.draw(transfer.transfer("ab", "fg", [[0.9, 0.2], [-0.1, 0.8]])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWINGS)
@pytest.mark.parametrize("form", style.FORMATS)
def test_equal_data_give_equal_bytes(name: str, form: str) -> None:
    first, second = (style.encode(DRAWINGS[name](), form) for _ in range(2))
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWINGS)
def test_nothing_is_cut_off_and_axes_are_labelled(name: str) -> None:
    figure = DRAWINGS[name]()
    with Image.open(io.BytesIO(style.encode(figure, "png"))) as image:
        pixels = np.asarray(image.convert("L"))
    edges = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
    assert all((edge == 255).all() for edge in edges), "ink at the border"
    assert pixels.min() < 100
    texts = [t.get_text() for axes in figure.axes for t in (axes.xaxis.label, axes.yaxis.label)]
    texts += [figure.get_supxlabel()]
    assert sum(map(bool, texts)) >= 1 + (name != "bars")


def test_drawing_leaves_matplotlib_as_it_was() -> None:
    before = dict(matplotlib.rcParams)
    style.encode(DRAWINGS["scatter"](), "svg")
    assert dict(matplotlib.rcParams) == before


def test_a_figure_is_saved_by_the_end_of_its_name(tmp_path: Path) -> None:
    path = style.save(DRAWINGS["bars"](), tmp_path / "new" / "bars.pdf")
    assert path.read_bytes().startswith(b"%PDF")
    with pytest.raises(InputError, match="pdf, png, svg, not 'gif'"):
        style.save(DRAWINGS["bars"](), tmp_path / "bars.gif")


def test_names_of_any_kind_and_length_can_be_drawn() -> None:
    name = "$x^{" + "sum(mul(W, " * 40 + "表\n"
    data = scatter.scores(name, name, name, [1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    rows = [{"proxy": name, "rho": 0.5, "rho_ci": [0.4, 0.6]}]
    histories = {name: [history(0)], "other": [history(1)]}
    for figure in (
        scatter.draw(data),
        ranks.draw(data),
        bars.draw(bars.bars(rows, name)),
        convergence.draw(convergence.convergence(histories, measured=name)),
        transfer.draw(transfer.transfer([name, "b"], [name, "g"], [[1, 0], [0, 1]])),
    ):
        assert style.encode(figure, "png")


def test_scores_know_the_rho_of_each_part() -> None:
    data = points()
    rows = [i for i, part in enumerate(data.parts) if part == "test"]
    assert data.rho("test") == spearman(data.scores[rows], data.targets[rows])
    assert data.rho("nowhere") is None


def test_scores_over_many_magnitudes_are_drawn_on_a_logarithm() -> None:
    wide = scatter.scores("p", "t", "y", [1e-3, 1.0, 1e3], [1, 2, 3])
    assert wide.is_wide
    assert scatter.draw(wide).axes[0].get_xscale() == "log"
    assert not scatter.scores("p", "t", "y", [-1.0, 1.0, 1e3], [1, 2, 3]).is_wide


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
        scatter.scores("p", "t", "y", values, targets, parts)


def test_the_best_has_rank_one_and_ties_share() -> None:
    data = scatter.scores("p", "t", "y", [5.0, 7.0, 5.0, 1.0], [1.0, 4.0, 3.0, 2.0])
    by_score, by_target = ranks.ranks(data)
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


def test_bars_are_best_first_and_know_the_parameters() -> None:
    data = bars.bars(ROWS)
    assert [bar.proxy for bar in data.bars] == ["snip", "parameters", "bad"]
    assert data.parameters == 0.7
    assert [bar.is_counter for bar in data.bars] == [False, True, False]
    assert bars.bars(ROWS[1:]).parameters is None


@pytest.mark.parametrize("rows", [[], [{"proxy": "a"}], [{"proxy": "a", "rho": 1, "rho_ci": [1]}]])
def test_rows_of_something_else_are_refused(rows: Any) -> None:
    with pytest.raises(InputError):
        bars.bars(rows)


def place(data: heatmap.Best, operation: str, one: str, other: str) -> float:
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

"""Names, combinations, files and formulas as proxies."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaces
from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.proxies import (
    Combined,
    Measurements,
    Needs,
    Proxy,
    find,
    get,
    names,
    proxy,
    rank_log,
    rank_mean,
    rank_sum,
)
from primitives.errors import FormulaError
from spaces.errors import UnknownNameError

SPACE = spaces.get("nano-gpt2")


class Fixed(Proxy):
    """A proxy of known scores."""

    def __init__(self, name: str, *scores: float) -> None:
        self.name, self.scores = name, np.array(scores)

    def score(self, space: Any, archs: Any, measurements: Measurements) -> FloatArray:
        return self.scores


ONE, TWO = Fixed("one", 5, 1, 3), Fixed("two", 10, 30, 20)


def scores(combined: Any) -> list[float]:
    return [float(value) for value in combined.score(SPACE, [None] * 3, Measurements())]


def test_ranks_are_combined_by_hand() -> None:
    assert scores(rank_sum(ONE, TWO)) == [4, 4, 4]  # ranks 3 1 2 and 1 3 2
    assert scores(rank_mean(ONE, TWO)) == [2, 2, 2]
    assert scores(rank_mean(ONE, TWO, weights=(3, 1))) == [2.5, 1.5, 2]
    assert rank_mean(ONE, TWO, weights=(3, 1)).name == "rank-mean(3 one, two)"


def test_a_low_rank_costs_more_than_a_high_one_gains() -> None:
    third, two_thirds = math.log(1 / 3), math.log(2 / 3)
    assert scores(rank_log(ONE, TWO)) == pytest.approx([third, third, 2 * two_thirds])
    assert find("rank-log(depth, 2 flops)").definition == "rank-log(depth, 2 flops)"


def test_a_product_multiplies_the_scores() -> None:
    product = Combined("both", (ONE, TWO), "product")
    assert scores(product) == [50, 30, 60]
    assert not product.is_of_ranks
    with pytest.raises(InputError, match="takes no weights"):
        Combined("both", (ONE, TWO), "product", (1.0, 2.0))


def test_a_missing_score_leaves_no_ranks() -> None:
    assert all(map(math.isnan, scores(rank_sum(ONE, Fixed("holes", 1, math.nan, 2)))))


def test_a_bad_combination_is_refused() -> None:
    with pytest.raises(InputError, match="1 weights for 2 proxies"):
        rank_mean(ONE, TWO, weights=(1,))
    with pytest.raises(InputError, match="at least one"):
        rank_sum()
    with pytest.raises(InputError, match="add up to zero"):
        rank_mean(ONE, TWO, weights=(1, -1))


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'snip'"):
        find("snipp")


def test_a_name_is_given_once() -> None:
    with pytest.raises(InputError, match="already"):
        proxy(needs=Needs.NOTHING, paper="")(_named("snip"))
    assert names().count("snip") == 1


def _named(name: str) -> Any:
    def function(_: Any) -> float:
        return 0.0

    function.__name__ = name
    return function


def test_text_means_a_proxy(tmp_path: Path) -> None:
    assert find("snip") is get("snip")
    combined: Any = find("rank-mean(0.3 ntkt, 0.7 sept)")
    assert [part.name for part in combined.parts] == ["ntkt", "sept"]
    assert combined.weights == (0.3, 0.7)
    nested: Any = find("rank-sum(sum(mul(G, W)), rank-mean(snip, depth))")
    assert [part.name for part in nested.parts] == ["sum(mul(G, W))", "rank-mean(snip, depth)"]
    assert find(" sum(mul( G,W))").name == "sum(mul(G, W))"
    file = tmp_path / "best.json"
    file.write_text(json.dumps({"schema": 1, "formula": "sum(fro(G))"}))
    assert (find(str(file)).name, find(str(file)).definition) == ("best", "sum(fro(G))")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "contains no formula"),
        ('{"formula": 3}', "contains no formula"),
    ],
)
def test_a_file_without_a_formula_is_named(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "odd.json"
    file.write_text(content)
    with pytest.raises(InputError, match=message):
        find(str(file))
    with pytest.raises(InputError, match="no file"):
        find(str(tmp_path / "none.json"))
    with pytest.raises(FormulaError):
        find("sum(nothing(G))")


def test_needs_of_formulas_and_combinations() -> None:
    assert Needs.GRADIENT not in find("sum(fro(W))").needs
    assert Needs.GRADIENT in find("sum(fro(G))").needs
    assert get("ntsr").needs == get("ntkt").needs
    assert str(get("sept").needs) == "nothing"
    assert str(get("grasp").needs) == "forward, gradient, second order, labels"


def test_the_papers_combinations() -> None:
    assert get("ntsr").definition == "rank-mean(ntkt, sept)"
    assert get("dss++").definition == "rank-sum(dss-diversity, dss-saliency)"
    assert get("dss").definition == "sum(dss-diversity, dss-saliency)"
    assert get("te-score").definition == "rank-sum(ntk-condition, linear-regions)"


@pytest.mark.slow
def test_ntsr_whose_scores_are_cached_needs_no_torch() -> None:
    code = (
        "import sys; from lpzero.proxies import get\n"
        "assert get('ntsr').definition == 'rank-mean(ntkt, sept)'\n"
        "print('torch' in sys.modules, end=' ')\n"
        "get('te-score')\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]

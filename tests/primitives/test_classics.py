"""The classics' formulas against the proxies' own definitions on hand-made tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primitives import parse, score
from primitives.canonical import key
from primitives.classics import CLASSICS, Fidelity

BY_NAME = {classic.name: classic for classic in CLASSICS}


@pytest.fixture
def blocks(make_architecture: Any) -> Any:
    return make_architecture(0, n_blocks=3, n_tensors=1)


def _pairs(blocks: Any) -> list[tuple[Any, Any]]:
    return [(block["W"][0].values, block["G"][0].values) for block in blocks]


@pytest.mark.parametrize(
    ("name", "definition"),
    [
        ("snip", lambda w, g: np.abs(g * w).sum()),
        ("grad-norm", lambda w, g: np.sqrt((g * g).sum())),
        ("synaptic-saliency", lambda w, g: (g * w).sum() / w.size),
        ("synflow", lambda w, g: (g * w).sum() / w.size),
        ("logsynflow", lambda w, g: (w * np.log(np.abs(g))).sum() / w.size),
    ],
)
def test_a_classic_is_its_definition(name: str, definition: Any, blocks: Any) -> None:
    formula = BY_NAME[name].formula
    assert formula is not None
    expected = sum(definition(w, g) for w, g in _pairs(blocks))
    assert score(formula, blocks) == pytest.approx(expected)


def test_the_released_gpt2_formula_is_its_definition(blocks: Any) -> None:
    def softmax(x: Any) -> Any:
        return np.exp(x) / np.exp(x).sum(axis=0)

    expected = -np.mean([(w * w + softmax(g) ** 2).mean() for w, g in _pairs(blocks)])
    assert score(parse(str(BY_NAME["lpzero-gpt2"].text)), blocks) == pytest.approx(expected)


def test_half_of_the_published_flexibert_formula_says_nothing() -> None:
    readings = {
        "lpzero-flexibert": "mean(square(H))",
        "lpzero-flexibert-typeset": "sum(square(inverse(H)))",
    }
    for name, rest in readings.items():
        formula = BY_NAME[name].formula
        assert formula is not None
        assert key(formula) == key(parse(rest))


def test_a_classic_has_a_formula_unless_it_says_why_not() -> None:
    assert len(BY_NAME) == len(CLASSICS)
    for classic in CLASSICS:
        assert (classic.formula is None) == (classic.fidelity is Fidelity.NONE)
        assert classic.note

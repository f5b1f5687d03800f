"""A product that a campaign meets again is looked up, and is what it was before."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from lpzero.discover import score_language, score_variation
from lpzero.discover.score_language import ScoreLanguage, of_factors
from lpzero.discover.score_variation import factors_of
from lpzero.discover.settings import preset
from primitives.formula import Formula

N = 50
LANGUAGE = ScoreLanguage(preset("default", terms=3))


def drawn(seed: int) -> list[Formula]:
    rng = random.Random(seed)
    return [LANGUAGE.draw(rng) for _ in range(N)]


def forget() -> None:
    score_language._of_factors.cache_clear()
    score_variation._factors_of.cache_clear()


def test_the_reason_outside_is_looked_up_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[Formula] = Counter()
    examine = ScoreLanguage._why_outside

    def counted(self: ScoreLanguage, formula: Formula) -> str | None:
        asked[formula] += 1
        return examine(self, formula)

    monkeypatch.setattr(ScoreLanguage, "_why_outside", counted)
    narrow = ScoreLanguage(preset("default", terms=2, unaries=1))
    formulas = drawn(1)
    first = [narrow.why_outside(formula) for formula in formulas]
    assert [narrow.why_outside(formula) for formula in formulas] == first
    assert None in first
    assert any(first)
    assert set(asked.values()) == {1}


def test_a_product_made_before_in_any_order_is_what_it_would_be() -> None:
    factors = [factors_of(formula) for formula in drawn(2)]
    known = [of_factors(of) for of in factors]
    assert all(of_factors(of[::-1]) is made for of, made in zip(factors, known, strict=True))
    forget()
    assert [of_factors(of) for of in factors] == known


def test_factors_that_a_caller_changes_are_not_those_that_are_kept() -> None:
    (formula, *_) = drawn(3)
    first = factors_of(formula)
    kept = list(first)
    first.clear()
    assert factors_of(formula) == kept

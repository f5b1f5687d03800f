"""The limits of a campaign's language, and products made in canonical form."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from lpzero.discover.evolution import Evolution, State
from lpzero.discover.language import Language, ScoredForm
from lpzero.discover.settings import preset
from lpzero.errors import InputError
from lpzero.judgement.measures import Measures
from lpzero.scores.columns import ColumnFacts
from primitives.canonical import as_product, product_of, ranking
from primitives.errors import Rejected
from primitives.formula import Column, Formula
from primitives.parser import parse
from primitives.pruning import check

COLUMNS = ColumnFacts(("size", "cost", "change"), frozenset({"size"}), frozenset({"size", "cost"}))
LANGUAGES = [Language(preset("default", terms=3)), Language(preset("default"), COLUMNS)]


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES, ids=["terms", "columns"])
def test_a_product_is_what_the_rules_and_the_canonical_form_make_of_its_factors(
    language: Language,
) -> None:
    """The naive way: multiply, check every rule, reduce."""
    rng, fates = random.Random(3), set()
    positive = language.columns.positive
    for _ in range(400):
        factors = [language.draw_factor(rng) for _ in range(rng.randint(1, 4))]
        made = language.product(factors)
        plain = product_of(factors, positive) if made is not None else None
        if made is None or plain is None:
            continue
        form = language.examine(made)
        expected = check(made, language.rules, max_factors=language.settings.terms)
        if isinstance(form, Rejected):
            assert expected is not None
            assert form.rule == expected.rule, str(made)
            fates.add(form.rule)
        else:
            assert expected is None, str(made)
            assert form == ScoredForm(made, 1, str(made))
            values = [ranking(as_product(f, positive), positive) for f in (made, plain)]
            assert values[0].factors == values[1].factors
            fates.add("kept")
    assert {"kept", "repeated-factor", "exponent"} <= fates


@pytest.mark.slow
def test_a_product_made_before_in_any_order_is_the_same() -> None:
    rng, language = random.Random(2), LANGUAGES[0]
    for _ in range(50):
        factors = [language.draw_factor(rng) for _ in range(3)]
        made = language.product(factors)
        assert language.product(factors[::-1]) == made
        fresh = Language(language.settings).product(factors)
        assert fresh == made


def test_factors_that_cancel_make_no_product() -> None:
    language, half = LANGUAGES[1], Fraction(1, 2)
    assert language.product([(Column("size"), half), (Column("size"), -half)]) is None
    term = parse("sum(disconnect(W))").term
    assert language.product([(term, half)]) is None


def test_the_factors_of_a_product_make_it_again() -> None:
    rng, language = random.Random(5), LANGUAGES[1]
    for _ in range(100):
        made = language.product([language.draw_factor(rng) for _ in range(3)])
        if made is None or isinstance(language.examine(made), Rejected):
            continue
        factors = language.factors_of(made)
        assert language.product(factors) == made
        kept = list(factors)
        factors.clear()
        assert language.factors_of(made) == kept
        assert len(as_product(made, COLUMNS.positive).factors) == len(kept)


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("mul(mean(log(log(square(ffn)))), sum(W))", {}, "3 unary operations in a row, 2"),
        ("mul(mean(log(square(ffn))), sum(W))", {"unaries": 1}, "2 unary operations in a row, 1"),
        ("mul(sum(mul(params, abs(G))), sum(W))", {"statistics": tuple("AHWS")}, "statistic G"),
        ("mul(sum(mul(params, abs(G))), sum(W))", {"depth": 0}, "1 binary operations deep, 0"),
        ("mul(sum(sqrt(mul(params, G))), sum(W))", {}, "a unary above the binary operation"),
        ("mul(sum(mul(params, sqrt(params))), sum(W))", {}, "paired with itself"),
    ],
)
def test_limits_hold_for_terms_that_read_sizes(
    text: str, options: dict[str, Any], reason: str
) -> None:
    language = Language(preset("default", **options))
    assert reason in str(language.why_outside(parse(text)))


def judge(formulas: list[Formula]) -> list[Any]:
    from lpzero.discover.candidate import Verdict

    rng = random.Random(len(formulas))
    values = [rng.random() for _ in formulas]
    return [Verdict(1, (Measures(value, 0.0, 0.0),), (value,)) for value in values]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"unaries": 1}, {"statistics": tuple("AHWS")}, {"depth": 0}, {}]
)
def test_no_formula_of_a_campaign_is_beyond_its_limits(options: dict[str, Any]) -> None:
    asked = preset("default", population=30, offspring=30, generations=4, **options)
    evolution, rng, state = Evolution(asked, judge), random.Random(1), State()  # type: ignore[arg-type]
    with_sizes = 0
    for _ in range(5):
        state = evolution.step(state, rng)
        for child in state.tried:
            for term in child.formula.terms:
                runs = [len(part.split("(")) - 1 for part in str(term.expression).split(",")]
                if "depth" in options:
                    assert max(runs) <= asked.unaries, str(term)
                assert set(term.statistics) <= set(asked.statistics)
                assert Language(asked).why_term_outside(term) is None
                with_sizes += bool(term.sizes)
    assert with_sizes > 10


def test_a_start_with_a_statistic_that_is_not_allowed_is_refused() -> None:
    text = "mul(sum(mul(params, abs(G))), inner(l1(A)))"
    asked = preset("default", statistics=tuple("AHWS"), start=(text,))
    with pytest.raises(InputError, match=r"statistic G, which is not allowed \(--statistics\)"):
        Evolution(asked, judge).step(State(), random.Random(0))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["inner(W)", "sum(params)", "mul(sum(W), depth)", "depth"])
def test_a_campaign_of_the_papers_form_starts_from_that_form_alone(text: str) -> None:
    language = Language(preset("paper"))
    with pytest.raises(InputError, match="of statistics alone"):
        language.read(text)

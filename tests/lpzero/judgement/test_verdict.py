"""The verdict: one sentence, its claims taken from the numbers alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lpzero.judgement.bootstrap import Difference
from lpzero.judgement.correlation import Stability, within_spearman
from lpzero.judgement.judgement import Judgement
from lpzero.judgement.rivals import chance_within, headline, verdict

SETTLED = Difference(150, 0.0204, (0.010, 0.0312), 1.0)
OPEN = Difference(150, 0.004, (-0.002, 0.011), 0.81)
BEHIND = Difference(150, -0.012, (-0.03, -0.0001), 0.02)


def judgement(**changes: Any) -> Judgement:
    known: dict[str, Any] = {
        "n": 150, "rho": 0.944, "rho_untied": 0.944, "rho_ci": (0.92, 0.96), "tau": 0.8,
        "tau_ci": (0.7, 0.9), "top_precision": 0.5, "rho_given_params": 0.9, "rho_within": 0.48,
        "n_within": 140,
    }  # fmt: skip
    return Judgement(**{**known, **changes})


def test_ahead_but_not_settled() -> None:
    assert verdict(judgement(), {"best count": OPEN}) == (
        "It is ahead of the best count by 0.004 [-0.002, 0.011] on 150 test rows (81% of draws"
        " above 0): not settled; within groups of equal depth and width it still ranks"
        " (rho 0.480 on 140 rows)."
    )


def test_ahead() -> None:
    assert verdict(judgement(), {"depth": SETTLED}).startswith(
        "It is ahead of depth (the best counter on train and valid) by 0.020 [0.010, 0.031]"
        " on 150 test rows (100% of draws above 0): ahead; within"
    )


def test_not_ahead() -> None:
    assert verdict(judgement(), {"depth": BEHIND}).startswith(
        "It does not beat depth (the best counter on train and valid): the difference is -0.012"
        " [-0.030, 0.000] on 150 test rows (2% of draws above 0); within"
    )


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (SETTLED, "It is ahead of the best count."),
        (OPEN, "It is above the best count, but the difference is not settled."),
        (BEHIND, "It does not beat the best count."),
    ],
)
def test_the_headline_is_the_first_thing_it_says(found: Difference, text: str) -> None:
    outcome = found.to_json()["outcome"]
    assert headline(judgement().to_json(), "best count", outcome) == text
    flawed = headline(judgement(flaw="constant").to_json(), "best count", outcome)
    assert flawed == "It ranks nothing: its scores on the 150 test rows are constant."


def test_every_rival_has_its_clause_and_so_has_the_stability() -> None:
    rivals = {"best count": BEHIND, "depth": SETTLED}
    text = verdict(judgement(), rivals, Stability(3, 0.9991, 0.998))
    assert [clause[:20] for clause in text.split("; ")] == [
        "It does not beat the", "it is ahead of depth", "within groups of equ",
        "over other weights a",
    ]  # fmt: skip
    assert text.endswith("repeat at a rank correlation of 0.999, at least 0.998.")


@pytest.mark.parametrize(
    ("rho", "n", "said"),
    [
        (0.48, 140, "it still ranks (rho 0.480 on 140 rows)"),
        (0.1, 140, "it says no more than chance would (rho 0.100 on 140 rows)"),
        (-0.1, 140, "it says no more than chance would (rho -0.100 on 140 rows)"),
        (-0.4, 140, "it ranks the wrong way round (rho -0.400 on 140 rows)"),
        (None, 0, "nothing can be said within groups of equal depth and width: none has 5 test"),
    ],
)
def test_what_it_says_within_groups(rho: float | None, n: int, said: str) -> None:
    assert said in verdict(judgement(rho_within=rho, n_within=n), {"depth": OPEN})


def test_without_rivals_it_says_what_was_reached() -> None:
    assert verdict(judgement(), {}).startswith("It reaches rho 0.944 on 150 test rows; within")


def test_scores_that_rank_nothing_win_nothing() -> None:
    text = verdict(judgement(rho=0.0, flaw="constant"), {"depth": OPEN})
    assert text == "It ranks nothing: its scores on the 150 test rows are constant."


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(5,) * 12, (5, 20, 40), (30, 30)])
def test_chance_stays_below_its_bound_in_95_percent_of_cases(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    n = len(groups)
    found = [within_spearman(*rng.random((2, n)), groups) for _ in range(400)]
    above = [abs(within.rho) > chance_within(n) for within in found if within is not None]
    assert len(above) == 400
    assert np.mean(above) < 0.075  # 0.05, and what 400 draws may miss it by

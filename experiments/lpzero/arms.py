"""The settings that are compared, by name, with one budget of evaluations for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BUDGET = 1080  # the paper's 80 formulas and 1,000 generations of one
BUDGET_ONE = 2600
# The page's figures: signs fitted, sum or mean searched, chains of up to so many operations.
WIDER = {"sign": "fitted", "reductions": ("sum", "mean"), "chains": "up-to"}


@dataclass(frozen=True, slots=True)
class Arm:
    """A name, the figure or table of the paper it belongs to, and the settings."""

    name: str
    figure: str
    preset: str
    settings: dict[str, Any]


def _paper(name: str, figure: str, population: int = 80, **settings: Any) -> Arm:
    asked = {"population": population, "generations": BUDGET - population, **WIDER, **settings}
    return Arm(name, figure, "paper", asked)


EVOLUTION = "evolution (80, 2 unaries)"
ARMS = [
    _paper(EVOLUTION, "6 7 13"),
    _paper("evolution, no pruning", "6", rules=()),
    _paper("random search", "6", method="random"),
    _paper("random search, no pruning", "6", method="random", rules=()),
    Arm(
        "front (ours)",
        "6",
        "default",
        {"population": 80, "offspring": 40, "generations": 25, "archs": 50},
    ),
    _paper("population 100", "7", 100),
    _paper("population 200", "7", 200),
    _paper("3 unaries", "13", unaries=3),
    _paper("4 unaries", "13", unaries=4),
    _paper("5 unaries", "13", unaries=5),
]

# Chains of one, on all training rows, where the optimum is known.
ARMS_ONE = [
    Arm("front (ours)", "", "default", {"unaries": 1, "generations": BUDGET_ONE // 100 - 1}),
    Arm(
        "random search",
        "",
        "default",
        {"unaries": 1, "generations": BUDGET_ONE // 100 - 1, "method": "random"},
    ),
]

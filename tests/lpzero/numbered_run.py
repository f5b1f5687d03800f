"""A campaign on two tables in which every number differs from every other.

Exports and pages made from it show which number they took.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero.runs.config import StoredConfig
from lpzero.runs.formula_run import FormulaRun, PairRho
from primitives.space_size import SpaceSize

TABLES = ("one", "two")
WINNER, OTHER, UNREPORTED = "sum(W)", "sum(add(W, A))", "mean(exp(G))"
_PARTS = {"train": 20, "valid": 8, "test": 12, "all": 40}


@dataclass(frozen=True, eq=False)
class NumberedRun(FormulaRun):
    """The run; only what is read from its fields is there."""

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"method": "front", "seed": 3, "choose": "valid"}

    @property
    def fitness_rows(self) -> str:
        return "train"

    def space_size(self) -> SpaceSize | None:
        return None

    def pairs(self) -> Iterator[PairRho]:
        return iter(())


def numbers() -> Iterator[float]:
    """0.101, 0.202, 0.303, ...: all different with three decimals."""
    return (round((101 * n) % 1000 / 1000 + 0.0, 3) for n in itertools.count(1))


def judgements(drawn: Iterator[float]) -> dict[str, Any]:
    """A judgement on each part, every number another one."""
    found = {}
    for part, n in _PARTS.items():
        names = ("rho", "tau", "rho_untied", "rho_given_params", "rho_within", "top_precision")
        line: dict[str, Any] = {name: next(drawn) for name in names}
        line |= {f"{name}_ci": [next(drawn), next(drawn)] for name in ("rho", "tau")}
        found[part] = line | {"n": n, "n_within": 5, "in_sample": part != "test", "flaw": None}
    return found


def reported(text: str, number: int, drawn: Iterator[float], sign: int = 1) -> dict[str, Any]:
    judged = {name: judgements(drawn) for name in TABLES}
    rhos = {
        name: {part: judged[name][part]["rho"] for part in ("train", "valid", "test")}
        for name in TABLES
    }
    lowest = {part: min(rho[part] for rho in rhos.values()) for part in rhos["one"]}
    return {
        "formula": text,
        "complexity": 7 + number,
        "sign": sign,
        "fitness": [next(drawn)],
        "id": number,
        "generation": 2,
        "rho": lowest,
        "rho_by_table": rhos,
        "judged": judged,
    }


def row(text: str, number: int, drawn: Iterator[float]) -> dict[str, Any]:
    """A row of the hall of fame."""
    made: dict[str, Any] = {
        "formula": text, "complexity": 7 + number, "front": number == 5, "fitness": next(drawn),
        "id": number, "generation": 2, "operator": "crossover",
    }  # fmt: skip
    for name in TABLES:
        measures = ("rho", "rho_given_params", "rho_within")
        made |= {f"{name} {measure}": next(drawn) for measure in measures}
    return made


def numbered_run(sign: int = 1) -> NumberedRun:
    """The campaign: a winner, another reported formula, and one in the hall alone."""
    drawn = numbers()
    best, other = reported(WINNER, 5, drawn, sign), reported(OTHER, 6, drawn)
    counters = [
        {
            "proxy": proxy,
            "table": table,
            "rho": {part: next(drawn) for part in ("train", "valid", "test")},
            "judged": judgements(drawn),
        }
        for table in TABLES
        for proxy in ("parameters", "depth")
    ]
    tables = [
        {"name": name, "space": "nano-gpt2", "target": "loss", "digest": "ab" * 32}
        for name in TABLES
    ]
    result = {
        "tables": [
            {"name": name, "n": {"train": 20, "valid": 8, "test": 12}, "n_fitness": 19}
            for name in TABLES
        ],
        "chosen_on": "valid",
        "best": best,
        "top": [best, other],
        "counters": counters,
        "verdict_by_table": {name: f"The verdict on {name}." for name in TABLES},
    }
    request = {"tables": tables, "split_seed": 4, "sketch": {
        "limit": 4096, "loss": "auto", "seed": 0, "batch_seed": 0}}  # fmt: skip
    config = StoredConfig(Path("campaign"), "campaign", "cd" * 32, {}, request)
    hall = [row(text, 5 + i, drawn) for i, text in enumerate((WINNER, OTHER, UNREPORTED))]
    return NumberedRun(config, result, [], tables, None, hall, [], {}, {})

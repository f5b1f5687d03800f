"""What a campaign is asked to do: method, budget, the space of formulas, and the objective.

`paper` is Algorithm 1 of LPZero with the settings of its section 4.1; `front`, the default, is a
generational search for the front of fitness against complexity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from lpzero.errors import InputError
from primitives.errors import did_you_mean
from primitives.pruning import DEFAULT_RULES, RULES
from primitives.statistics import STATISTICS

METHODS = ("paper", "front", "random")
# Names a user writes -> rows of a measures's measures.
OBJECTIVES = ("rho", "partial", "within")
ACROSS = ("min", "pareto")


def _check_names(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    names = list(given)
    for name in names:
        if name not in known:
            raise InputError(f"unknown {kind} {name!r}; {did_you_mean(str(name), known)}")
    if not names and kind != "pruning rule":
        raise InputError(f"no {kind} is given; {did_you_mean('', known)}")
    if len(set(names)) < len(names):
        raise InputError(f"a {kind} is given twice: {', '.join(names)}")


def _check_range(name: str, value: float, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise InputError(f"{name} is {value!r}; expected {least:,} to {most:,}")


@dataclass(frozen=True, slots=True)
class Settings:
    """`offspring` formulas are evaluated per generation; `archs` None takes all training rows.

    `unaries` limits the operations in a row, `depth` the binary operations on the way down (1 is
    the paper's form, where nothing stands above the binary). No `rules`: pruning is off. The
    first objective decides what is best; several of them, or `across` "pareto" over several
    tables, make a front.
    """

    method: str = "front"
    population: int = 100
    generations: int = 60
    offspring: int = 100
    pool: float = 0.1
    crossover: float = 0.5
    mutation: float = 0.5
    neighbours: float = 0.5
    immigrants: float = 0.1
    statistics: tuple[str, ...] = tuple(STATISTICS)
    unaries: int = 2
    depth: int = 1
    same_statistic: bool = False
    rules: tuple[str, ...] = tuple(sorted(DEFAULT_RULES))
    objectives: tuple[str, ...] = ("rho",)
    across: str = "min"
    archs: int | None = None
    choose: str = "valid"
    seed: int = 0
    start: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_names("method", [self.method], METHODS)
        _check_names("objective", self.objectives, OBJECTIVES)
        _check_names("way across tables", [self.across], ACROSS)
        _check_names("part to choose on", [self.choose], ("train", "valid"))
        _check_names("statistic", self.statistics, STATISTICS)
        _check_names("pruning rule", self.rules, RULES)
        _check_range("population", self.population, 2, 100_000)
        _check_range("generations", self.generations, 0, 10_000_000)
        _check_range("offspring", self.offspring, 1, 100_000)
        _check_range("unaries", self.unaries, 0, 10)
        _check_range("depth", self.depth, 0, 5)
        for name in ("pool", "crossover", "mutation", "neighbours", "immigrants"):
            _check_range(name, getattr(self, name), 0, 1)
        if self.archs is not None:
            _check_range("archs", self.archs, 10, 1_000_000)
        if self.crossover == self.mutation == 0 and self.method != "random":
            raise InputError("crossover and mutation are both 0: nothing new would ever come")

    def to_json(self) -> dict[str, Any]:
        """The settings as plain JSON values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Settings:
        """The settings that `to_json` gave."""
        known = {field.name for field in fields(cls)}
        if set(value) != known:
            odd = ", ".join(sorted(set(value) ^ known))
            raise InputError(f"settings do not have the fields this version knows: {odd}")
        plain: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in value.items()
        }
        return cls(**plain)


PRESETS = {
    "default": Settings(),
    "paper": Settings(
        method="paper",
        population=80,
        generations=1000,
        offspring=1,
        neighbours=0.0,
        immigrants=0.0,
        archs=50,
        choose="train",
        seed=42,
    ),
}


def preset(name: str, **changes: Any) -> Settings:
    """The preset of that name with these fields changed."""
    _check_names("preset", [name], PRESETS)
    known = [field.name for field in fields(Settings)]
    for given in changes:
        if given not in known:
            raise InputError(f"unknown option {given!r}; {did_you_mean(given, known)}")
    return replace(PRESETS[name], **changes)

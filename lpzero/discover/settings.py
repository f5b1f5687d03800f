"""The settings of a campaign: method, budget, the space of formulas, and the objective.

Method `paper` is Algorithm 1 of LPZero, and preset `paper` has the settings of its section 4.1;
preset `released` follows the authors' code where it differs from the paper. Method `front`, the
default, is a generational search for the front of fitness against complexity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lpzero.errors import InputError
from lpzero.judgement.measures import MEASURES, RHO, read_measure
from lpzero.options import (
    EVOLUTION,
    JUDGEMENT,
    LANGUAGE,
    PAPERS,
    SEED,
    SHARE,
    Names,
    OneOf,
    Repeated,
    SomeOf,
    Switch,
    Whole,
    check,
    from_json,
    option,
    options,
    to_json,
)
from lpzero.scores.columns import AS_LOG, AS_RANKS
from primitives.errors import did_you_mean
from primitives.pruning import DEFAULT_RULES, RULES
from primitives.reductions import PAPER_REDUCTIONS
from primitives.statistics import STATISTICS

METHODS = ("paper", "front", "random")
ACROSS = ("regret", "fisher", "min", "pareto")
NESTED = "nested"
GP, NO_PREDICTOR = PREDICTORS = ("gp", "none")
CHOOSE = (NESTED, "stable", "valid", "train")
STABLE = 0.998  # the least rank correlation of scores from two seeds
FITTED, AS_WRITTEN = SIGNS = ("fitted", "as-written")
UP_TO, EXACT = CHAINS = ("up-to", "exact")
BEST, REPLACE_WORST = SURVIVORS = ("best", "replace-worst")
EQUAL, RELEASED = BINARY_WEIGHTS = ("equal", "released")
# Left out of a stored campaign where they have their defaults, as in those that never had them.
_LATER = (
    "sign",
    "reductions",
    "chains",
    "survivors",
    "binary_weights",
    "whole_table",
    "weights_seeds",
    "predictor",
)


_RULES_ON = tuple(sorted(DEFAULT_RULES))


class _Objectives(SomeOf):
    """Names of measures, which a user may abbreviate: a stored command has them as given."""

    def check(self, name: str, value: Any) -> None:
        is_list = isinstance(value, (list, tuple))
        super().check(name, list(map(read_measure, value)) if is_list else value)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a campaign, each an option of `lpzero discover`.

    The first objective determines the best formula. Several objectives, or `across` "pareto" with
    several tables, make a front.
    """

    method: str = option(
        "front",
        "front searches for a front of fitness and size, paper is Algorithm 1 of LPZero, random"
        " draws formulas with the same budget.",
        OneOf("method", METHODS),
        panel=PAPERS,
    )
    population: int = option(
        100, "The number of formulas that survive a generation.", Whole(2, 100_000), panel=EVOLUTION
    )
    generations: int = option(
        60, "The number of generations after the first population.", Whole(0, 10_000_000)
    )
    offspring: int = option(
        100,
        "The number of new formulas evaluated per generation.",
        Whole(1, 100_000),
        panel=EVOLUTION,
    )
    pool: float = option(
        0.1,
        "Method paper: the share of the population that parents are drawn from.",
        SHARE,
        panel=EVOLUTION,
    )
    crossover: float = option(
        0.5, "The probability that two parents are crossed.", SHARE, panel=EVOLUTION
    )
    mutation: float = option(
        0.5, "The probability that a child is mutated.", SHARE, panel=EVOLUTION
    )
    neighbours: float = option(
        0.5,
        "Method front: the share of offspring that are neighbours of the best.",
        SHARE,
        panel=EVOLUTION,
    )
    immigrants: float = option(
        0.1,
        "Method front: the probability that any other child is drawn at random.",
        SHARE,
        panel=EVOLUTION,
    )
    statistics: tuple[str, ...] = option(
        tuple(STATISTICS),
        f"The statistics that may appear, of {' '.join(STATISTICS)}, as in AHWS.",
        SomeOf("statistic", STATISTICS, separator=""),
        panel=LANGUAGE,
    )
    unaries: int = option(2, "The most unary operations in a row.", Whole(0, 10), panel=LANGUAGE)
    depth: int = option(
        1,
        "The most binary operations from the root to a leaf; 1 is the paper's form.",
        Whole(0, 5),
        panel=LANGUAGE,
    )
    terms: int = option(
        4,
        "The most terms of a product; 1 searches single terms, as the paper does.",
        Whole(1, 4),
        panel=LANGUAGE,
    )
    columns: tuple[str, ...] = option(
        (),
        "Columns of the table that formulas may use as terms, separated by commas; of a table"
        " without networks all are used unless some are named.",
        Names("column"),
        panel=LANGUAGE,
    )
    terms_from: tuple[str, ...] = option(
        (),
        "Proxies, by name, whose scores formulas may use as terms, as in snip,ntkt,sept.",
        Names("proxy"),
        panel=LANGUAGE,
    )
    columns_only: bool = option(
        False, "Formulas of columns alone: no statistics and sizes, and no networks.", Switch()
    )
    columns_as: str = option(
        AS_LOG,
        "How columns enter sums: log is sgn(x) log(1 + |x|) where they change sign, ranks replaces"
        " every column by its ranks in the table, in products too.",
        OneOf("way to use columns", (AS_LOG, AS_RANKS)),
        panel=LANGUAGE,
    )
    same_statistic: bool = option(
        False,
        "Let a binary operation combine a statistic with itself.",
        Switch("--no-same-statistic"),
        panel=LANGUAGE,
    )
    sign: str = option(
        FITTED,
        "fitted gives every formula the sign that suits the fitness rows, as-written keeps it.",
        OneOf("way to sign", SIGNS),
        panel=PAPERS,
    )
    reductions: tuple[str, ...] = option(
        PAPER_REDUCTIONS,
        "With --terms 1: the reductions over blocks that may appear, sum, mean or both.",
        SomeOf("reduction", PAPER_REDUCTIONS),
        panel=PAPERS,
    )
    chains: str = option(
        UP_TO,
        "With --terms 1: whether chains have up to --unaries operations or exactly as many, of"
        " which identity may be one.",
        OneOf("length of chains", CHAINS),
        panel=PAPERS,
    )
    binary_weights: str = option(
        EQUAL,
        "How binary operations are drawn: equally often, or add .6, sub .3, matmul and mul .05 each"
        " as in the authors' code.",
        OneOf("way to draw binary operations", BINARY_WEIGHTS),
        panel=PAPERS,
    )
    survivors: str = option(
        BEST,
        "Method paper: the best of parents and offspring survive, or the offspring replaces the"
        " worst.",
        OneOf("way to survive", SURVIVORS),
        panel=PAPERS,
    )
    whole_table: bool = option(
        False,
        "Draw the --archs fitness rows from the whole table instead of train; they are train then,"
        " and test is what is left.",
        Switch(),
        panel=PAPERS,
    )
    rules: tuple[str, ...] = option(
        _RULES_ON,
        "Pruning rules: on, off, or names separated by commas (see `lpzero rules`).",
        SomeOf(
            "pruning rule",
            RULES,
            may_be_empty=True,
            shorthand=(("on", _RULES_ON), ("off", ())),
        ),
        panel=LANGUAGE,
    )
    objectives: tuple[str, ...] = option(
        (RHO,),
        "What to maximise: rho, given-params or within; several, with commas, make a front.",
        _Objectives("objective", MEASURES),
        flag="--objective",
        panel=JUDGEMENT,
    )
    across: str = option(
        "regret",
        "With several tables: regret maximises the lowest difference to the best that each table's"
        " own search finds, fisher the mean of Fisher's z, min the lowest value; pareto makes a"
        " front of the tables.",
        OneOf("way across tables", ACROSS),
        panel=JUDGEMENT,
    )
    archs: int | None = option(
        None,
        "The number of training rows that fitness is measured on.",
        Whole(10, 1_000_000, none="all"),
        panel=JUDGEMENT,
    )
    choose: str = option(
        NESTED,
        "How the winner is chosen: nested cross-validates how much of the networks to read,"
        " from a single counter to four reliable terms, and of columns how long a formula may"
        " be, from a single column to a weighted sum of 24 products; it takes the simplest"
        " level that is as good as the best; stable takes the best rho on train and valid among"
        " formulas whose scores repeat with other seeds (see --stable), valid the member of the"
        " front that is best on valid, train the formula with the best fitness. With --terms 1, a"
        " method other than front or several tables of columns, nested means stable.",
        OneOf("way to choose", CHOOSE),
        panel=JUDGEMENT,
    )
    weights_seeds: int = option(
        1,
        "With --choose nested: over how many seeds of weights and batches the values of networks"
        " are averaged. With 1, how far they repeat is read off 30 rows with a second seed.",
        Whole(1, 16),
        panel=JUDGEMENT,
    )
    stable: float = option(
        STABLE,
        "With --choose stable: the least rank correlation between the scores of two seeds.",
        SHARE,
        panel=JUDGEMENT,
    )
    predictor: str = option(
        GP,
        "With --choose nested: gp also fits a predictor, the mean of the winner's and a Gaussian"
        " process's normal scores, which ranks best but is not a formula; none does not.",
        OneOf("predictor", PREDICTORS),
        panel=JUDGEMENT,
    )
    seed: int = option(0, "The seed of the search.", SEED)
    start: tuple[str, ...] = option(
        (),
        "A formula to put into the first population; repeatable.",
        Repeated("FORMULA"),
        panel=EVOLUTION,
    )

    def __post_init__(self) -> None:
        # A user may abbreviate; the full names are stored, compared and hashed.
        object.__setattr__(self, "objectives", tuple(map(read_measure, self.objectives)))
        check(self)
        if self.crossover == self.mutation == 0 and self.method != "random":
            raise InputError("crossover and mutation are both 0: there would be no new formulas")
        if self.terms == 1 and (self.columns or self.terms_from or self.columns_only):
            raise InputError("columns are terms of products and sums: they need --terms 2 or more")
        if self.terms > 1:
            for name in ("sign", "reductions", "chains"):
                if getattr(self, name) != _DEFAULTS[name]:
                    raise InputError(f"--{name} is for single terms: it needs --terms 1")
        if self.whole_table and (self.archs is None or self.columns_only):
            raise InputError("--whole-table needs --archs, the number of rows, and networks")

    @property
    def starts_from_beam(self) -> bool:
        """Whether the first population comes from a beam search over products of terms."""
        return self.terms > 1 and self.method == "front"

    @property
    def reads_second_seed(self) -> bool:
        """Whether the choice looks at scores of other weights and another batch."""
        return self.choose in (NESTED, "stable")

    def for_tables(self, n_tables: int) -> Settings:
        """The settings of a campaign on so many tables: where there are no levels, `stable`."""
        has_levels = self.starts_from_beam and (n_tables == 1 or not self.columns_only)
        return self if has_levels or self.choose != NESTED else replace(self, choose="stable")

    def to_json(self) -> dict[str, Any]:
        """The settings as plain JSON values, later ones only where they are not the defaults."""
        values = to_json(self)
        usual = to_json(type(self)())
        return {k: v for k, v in values.items() if k not in _LATER or v != usual[k]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Settings:
        """The settings from the values of `to_json`."""
        usual = to_json(cls())
        return from_json(cls, {**{name: usual[name] for name in _LATER}, **value})


_DEFAULTS = {entry.name: entry.default for entry in options(Settings)}
_PAPER = Settings(
    method="paper",
    population=80,
    generations=1000,
    offspring=1,
    neighbours=0.0,
    immigrants=0.0,
    archs=50,
    terms=1,
    sign=AS_WRITTEN,
    reductions=("mean",),
    chains=EXACT,
    choose="train",
    seed=42,
)
PRESETS = {
    "default": Settings(),
    "paper": _PAPER,
    "released": replace(
        _PAPER,
        pool=0.5,
        survivors=REPLACE_WORST,
        binary_weights=RELEASED,
        same_statistic=True,
        rules=(),
    ),
}


def preset(name: str, **changes: Any) -> Settings:
    """The preset of that name with these fields changed."""
    OneOf("preset", PRESETS).check("preset", name)
    names = [entry.name for entry in options(Settings)]
    for given in changes:
        if given not in names:
            raise InputError(f"unknown option {given!r}; {did_you_mean(given, names)}")
    return replace(PRESETS[name], **changes)

"""Formulas as proxies: scored on sketches of the architectures, which are built once.

A formula that reads only sizes and columns needs no sketches. The published formulas are
registered as `lpzero-flexibert` (equation 2 as its text and code have it, and
`lpzero-flexibert-typeset` as it is printed) and `lpzero-gpt2`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.proxies.combined import RankShare
from lpzero.proxies.context import Context
from lpzero.proxies.formula_terms import (
    BlockValues,
    TermValues,
    column_values,
    size_network,
)
from lpzero.proxies.registry import Measure, Needs, NetworkProxy, Proxy, applies, get, register
from lpzero.scores.columns import RANK_OF
from lpzero.sketches.sketch import SketchOptions
from lpzero.statistics.definitions import OURS
from primitives.classics import CLASSICS
from primitives.errors import TensorError
from primitives.formula import Atom, Formula, Term
from primitives.naive import Axis, block_values, combine
from primitives.naive import score as naive_score
from primitives.reductions import PAPER_REDUCTIONS, POSITION_REDUCTIONS
from primitives.rejection import Rejected
from primitives.statistics import gradient_statistics
from spaces.base import Space
from spaces.errors import UnknownNameError

if TYPE_CHECKING:
    from lpzero.proxies.measurements import Measurements

_NO_COLUMN = Rejected("missing-column", "a column has no value for this architecture")


@dataclass(frozen=True, slots=True)
class FormulaProxy:
    """A formula, discovered or written by hand.

    An exported formula brings the `options` of its sketches and its `softmax_axis`, and is scored
    with them. The context's seeds are added to its own; a loss other than "auto" overrides its own.
    `chosen_on` lists the tables it was found on, each with the seed of the split, None where it was
    found on all rows. Its columns are counters and other proxies, by their registered names or by
    those of the proxies `beside` it; rank-of-NAME is the rank of one of them.
    """

    name: str
    formula: Formula
    paper: str = ""
    options: SketchOptions | None = None
    softmax_axis: Axis = "first"
    chosen_on: tuple[tuple[str, int | None], ...] = ()
    beside: tuple[Proxy, ...] = ()

    @property
    def needs(self) -> Needs:
        used = set(self.formula.statistics)
        own = Needs.FORWARD | Needs.TAPS if used else Needs.NOTHING
        if used & gradient_statistics():
            own |= Needs.GRADIENT | Needs.LABELS
        return reduce(or_, (column.needs for column in self.columns().values()), own)

    @property
    def direction(self) -> int:
        return self.formula.sign

    @property
    def has_blocks(self) -> bool:
        """Whether it is a sum or mean of values of single blocks."""
        return self.formula.is_term and self.formula.term.reduction in PAPER_REDUCTIONS

    @property
    def definition(self) -> str:
        return str(self.formula)

    @property
    def needs_sketches(self) -> bool:
        """Whether it has its own loss or seeds, which `on_networks` does not support."""
        own, usual = self.options or SketchOptions(), SketchOptions()
        return replace(own, limit=usual.limit, definitions=OURS) != usual

    def columns(self) -> dict[str, Proxy]:
        """The proxies that the columns name; raises InputError if one is unknown."""
        found: dict[str, Proxy] = {}
        todo = list(self.formula.columns)
        for name in todo:  # grows by the columns of columns
            if name not in found:
                found[name] = column = self._column(name)
                todo += column.formula.columns if isinstance(column, FormulaProxy) else ()
        if self in found.values():
            raise InputError(f"proxy {self.name} is a column of itself; remove it from the formula")
        return {name: found[name] for name in self.formula.columns}

    def applies_to(self, space: Space[Any]) -> bool:
        """Whether the space's networks have the statistics and ends it reads, and columns apply."""
        if set(self.formula.statistics) & space.absent_statistics:
            return False
        reductions = {term.reduction for term in self.formula.terms}
        read = {POSITION_REDUCTIONS[reduction].end for reduction in reductions} - {None}
        if read:
            sizes = space.end_sizes(space.sample(random.Random(0)))
            if any(not sizes[end]["params"] for end in read if end is not None):
                return False
        return all(applies(column, space) for column in self.columns().values())

    def exact(self) -> FormulaProxy:
        """The formula on whole tensors instead of cut ones."""
        return replace(self, options=replace(self.options or SketchOptions(), limit=None))

    def on_networks(self) -> Proxy:
        """The same scores, up to rounding, computed as each network runs: no sketch is stored."""
        own, usual = self.options or SketchOptions(), SketchOptions()
        if not self.formula.statistics:
            return self
        if self.needs_sketches:
            raise InputError(
                f"{self.name} was exported with its own loss or seeds, which cannot be used on"
                " single networks; score it on sketches, as `lpzero rank` does"
            )
        name = str(self.formula)
        if (own.limit, self.softmax_axis) != (usual.limit, "first"):
            name += f" limit {own.limit} axis {self.softmax_axis}"
        name += "" if own.definitions == OURS else f" definitions {own.definitions}"
        how = own.limit, self.softmax_axis, own.definitions
        if not self.has_blocks:
            terms = Measure(f"terms of {name}", TermValues(self.formula, *how))
            return _OnNetworks(self, terms)
        values = BlockValues(self.formula, *how)
        measure = Measure(name, values, by_block=True)
        is_mean = self.formula.term.reduction == "mean"
        known = self.name, self.needs, self.paper, self.definition
        return NetworkProxy(*known, measure, is_mean, self.direction)

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        columns = column_values(self.columns(), space, archs, measurements)
        if not self.formula.statistics:
            return self._from_sizes(space, archs, columns)
        options = self.sketching(measurements.context)
        evaluator, usable = measurements.evaluator(space, archs, options, self.softmax_axis)
        scores = np.full(len(archs), np.nan)
        beside = {name: _filled(values[usable]) for name, values in columns.items()}
        found = evaluator.score(self.formula, beside)
        if not isinstance(found, Rejected):
            scores[usable] = found
        for values in columns.values():
            scores[~np.isfinite(values)] = np.nan
        return scores

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> list[FloatArray]:
        """The values of each architecture's blocks, before the sum or mean over them."""
        if not self.has_blocks:
            raise InputError(f"proxy {self.name} has no values of single blocks")
        sign, expression = self.formula.sign, self.formula.term.expression
        if not self.formula.statistics:
            networks = [size_network(space, arch) for arch in archs]
            values = [block_values(expression, network.blocks) for network in networks]
            return [sign * np.array(of, dtype=np.float64) for of in values]
        options = self.sketching(measurements.context)
        evaluator, usable = measurements.evaluator(space, archs, options, self.softmax_axis)
        if len(usable) < len(archs):
            raise InputError("an architecture has no sketch; `lpzero stats` shows which and why")
        found = sign * evaluator.block_means(expression)
        return [found[row, : space.depth(arch)] for row, arch in enumerate(archs)]

    def sketching(self, context: Context) -> SketchOptions:
        """The options of the sketches that the formula is scored on in this context."""
        own = self.options or SketchOptions()
        return SketchOptions(
            own.limit,
            own.loss if context.loss == "auto" else context.loss,
            own.seed + context.seed,
            own.batch_seed + context.batch_seed,
            own.batch if context.batch is None else context.batch,
            own.definitions if context.definitions == OURS else context.definitions,
        )

    def _column(self, name: str) -> Proxy:
        if name.startswith(RANK_OF):
            return RankShare(self._column(name.removeprefix(RANK_OF)))
        own = next((proxy for proxy in self.beside if proxy.name == name), None)
        if own is not None:
            return own
        try:
            return get(name)
        except UnknownNameError:
            raise InputError(
                f"the formula {self.formula} has a column {name!r}, and no counter or proxy is"
                " called so; `lpzero counters` and `lpzero rank` list those there are"
            ) from None

    def _from_sizes(
        self, space: Space[Any], archs: Sequence[Any], columns: dict[str, FloatArray]
    ) -> FloatArray:
        """The scores of a formula that reads no network."""
        scores = np.full(len(archs), np.nan)
        for row, arch in enumerate(archs):
            beside = {name: float(values[row]) for name, values in columns.items()}
            try:
                found = naive_score(self.formula, size_network(space, arch), columns=beside)
            except TensorError:  # an end without parameters, as the head of an encoder
                continue
            if not isinstance(found, Rejected):
                scores[row] = found
        return scores


@dataclass(frozen=True, slots=True)
class _OnNetworks:
    """A formula whose terms are measured on each network as it is run."""

    proxy: FormulaProxy
    measure: Measure

    @property
    def name(self) -> str:
        return self.proxy.name

    @property
    def needs(self) -> Needs:
        return self.proxy.needs

    @property
    def paper(self) -> str:
        return self.proxy.paper

    @property
    def definition(self) -> str:
        return self.proxy.definition

    @property
    def direction(self) -> int:
        return self.proxy.direction

    @property
    def has_blocks(self) -> bool:
        return False

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        formula = self.proxy.formula
        records = measurements.records(space, archs, [self.measure])[self.measure.name]
        columns = column_values(self.proxy.columns(), space, archs, measurements)
        scores = np.full(len(archs), np.nan)
        for row, record in enumerate(records):
            if record.blocks is None:  # some term has no value
                continue
            values = dict(zip(formula.terms, record.blocks, strict=True))
            beside = {name: float(of[row]) for name, of in columns.items()}
            found = combine(formula, partial(_known, values, beside))
            if not isinstance(found, Rejected):
                scores[row] = found
        return scores


def _filled(values: FloatArray) -> FloatArray:
    """The column with missing values replaced, lest they reject the formula on every row."""
    known = np.isfinite(values)
    return np.where(known, values, values[known][0]) if known.any() else values


def _known(
    terms: Mapping[Term, float], columns: Mapping[str, float], atom: Atom
) -> float | Rejected:
    value = terms[atom] if isinstance(atom, Term) else columns[atom.name]
    return value if math.isfinite(value) else _NO_COLUMN


for _classic in CLASSICS:
    if _classic.name.startswith("lpzero-") and _classic.formula is not None:
        register(FormulaProxy(_classic.name, _classic.formula, "LPZero"))

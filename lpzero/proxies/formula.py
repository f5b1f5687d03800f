"""Formulas as proxies: scored on sketches of the architectures, which are built once.

A formula that reads only sizes and columns needs no sketches.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.proxies.base import Measure, Needs, NetworkProxy, Proxy, Terms
from lpzero.proxies.combined import rank_share
from lpzero.proxies.registry import get
from lpzero.scores.columns import RANK_OF
from lpzero.sketches.sketch import SketchOptions
from lpzero.statistics import OURS
from primitives import tensors as formulas
from primitives.errors import Rejected, TensorError
from primitives.formula import Atom, Column, Formula, Term
from primitives.naive import block_values, combine
from primitives.naive import score as naive_score
from primitives.reductions import PAPER_REDUCTIONS, POSITION_REDUCTIONS
from primitives.statistics import gradient_statistics
from primitives.tensors import Matrix, number
from spaces.base import EMBEDDING, HEAD, Space
from spaces.errors import UnknownNameError

if TYPE_CHECKING:
    from lpzero.proxies.measurements import Context, Measurements
    from lpzero.proxies.network import Network
    from lpzero.statistics.extraction import PositionStatistics


_NO_COLUMN = Rejected("missing-column", "a column has no value for this architecture")


@dataclass(frozen=True, slots=True)
class FormulaProxy(Proxy):
    """A formula, discovered or written by hand.

    An exported formula brings the `options` of its sketches and is scored with them. The context's
    seeds are added to its own; a loss other than "auto" overrides its own.
    `chosen_on` lists the tables it was found on, each with the seed of the split, None where it was
    found on all rows. Its columns are counters and other proxies, by the names of those `beside` it
    or by their registered names; rank-of-NAME is the rank of one of them.
    """

    name: str
    formula: Formula
    paper: str = ""
    options: SketchOptions | None = None
    chosen_on: tuple[tuple[str, int | None], ...] = ()
    beside: tuple[Proxy, ...] = ()

    @property
    def parts(self) -> tuple[Proxy, ...]:
        """The proxies of its columns, in their order."""
        return tuple(self.columns().values())

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(self.formula.statistics)

    @property
    def ends(self) -> frozenset[str]:
        ends = {term.positions.end for term in self.formula.terms if term.statistics}
        return frozenset(end for end in ends if end is not None)

    @property
    def reads_sketches(self) -> bool:
        return bool(self.formula.statistics)

    @property
    def is_measured(self) -> bool:
        return not self.reads_sketches and all(part.is_measured for part in self.parts)

    @property
    def needs(self) -> Needs:
        used = set(self.formula.statistics)
        own = Needs.FORWARD | Needs.TAPS if used else Needs.NOTHING
        if used & gradient_statistics():
            own |= Needs.GRADIENT | Needs.LABELS
        return reduce(or_, (part.needs for part in self.parts), own)

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
        return all(part.applies_to(space) for part in self.parts)

    def map_leaves(self, change: Callable[[Proxy], Proxy]) -> Proxy:
        """The change of the formula; of its terms and columns if some of them are ranks."""
        if not self.is_relative:
            return change(self)
        terms = [
            FormulaProxy(str(t), Formula.of_base(t), options=self.options)
            for t in self.formula.terms
        ]
        return _OfParts(self.name, self.formula, (*terms, *self.parts)).map_leaves(change)

    def exact(self) -> FormulaProxy:
        """The formula on whole tensors instead of cut ones."""
        return replace(self, options=replace(self.options or SketchOptions(), limit=None))

    def on_networks(self) -> Proxy:
        """The same scores, up to rounding, computed as each network runs: no sketch is stored."""
        own, usual = self.options or SketchOptions(), SketchOptions()
        if not self.reads_sketches:
            return self
        if self.needs_sketches:
            raise InputError(
                f"{self.name} was exported with its own loss or seeds, which cannot be used on"
                " single networks; score it on sketches, as `lpzero rank` does"
            )
        name = str(self.formula)
        if own.limit != usual.limit:
            name += f" limit {own.limit}"
        name += "" if own.definitions == OURS else f" definitions {own.definitions}"
        how = own.limit, own.definitions
        if not self.has_blocks:
            terms = Measure(f"terms of {name}", TermValues(self.formula, *how))
            return _OnNetworks(self.name, self, terms)
        values = BlockValues(self.formula, *how)
        measure = Measure(name, values, by_block=True)
        is_mean = self.formula.term.reduction == "mean"
        about = self.needs, self.paper, self.definition
        return NetworkProxy(self.name, measure, *about, is_mean, self.direction)

    def on_models(self, definitions: str) -> Proxy:
        stated = self.options or SketchOptions()
        # Seeds and loss of an exported formula are those of its sketches; here they are given.
        as_asked = stated.definitions if definitions == OURS else definitions
        options = SketchOptions(limit=stated.limit, definitions=as_asked)
        columns = [part.map_leaves(lambda leaf: leaf.on_models(definitions)) for part in self.parts]
        return replace(self, options=options, beside=tuple(columns)).on_networks()

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        columns = column_values(self.columns(), space, archs, measurements)
        if not self.reads_sketches:
            return self._from_sizes(space, archs, columns)
        options = self.sketching(measurements.context)
        values_of, usable = measurements.values(space, archs, options)
        scores = np.full(len(archs), np.nan)
        beside = {name: filled(values[usable]) for name, values in columns.items()}
        found = values_of.beside(beside).score(self.formula)
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
        values_of, usable = measurements.values(space, archs, options)
        if len(usable) < len(archs):
            raise InputError("an architecture has no sketch; `lpzero stats` shows which and why")
        found = sign * values_of.block_means(expression)
        return [found[row, : space.depth(arch)] for row, arch in enumerate(archs)]

    def all_sketching(self, context: Context) -> tuple[SketchOptions, ...]:
        own = (self.sketching(context),) if self.reads_sketches else ()
        return tuple(dict.fromkeys((*own, *Proxy.all_sketching(self, context))))

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
        own = next((proxy for proxy in self.beside if proxy.name == name), None)
        if own is not None:
            return own
        if name.startswith(RANK_OF):
            return rank_share(self._column(name.removeprefix(RANK_OF)))
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
class _OnNetworks(Proxy):
    """A formula whose terms are measured on each network as it is run."""

    name: str
    proxy: FormulaProxy
    measure: Measure

    @property
    def parts(self) -> tuple[Proxy, ...]:
        return self.proxy.parts

    @property
    def needs(self) -> Needs:
        return self.proxy.needs

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.measure, *self.proxy.measures)

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        formula = self.proxy.formula
        records = measurements.records(space, archs, [self.measure])[self.measure.name]
        columns = column_values(self.proxy.columns(), space, archs, measurements)
        missing = (math.nan,) * len(formula.terms)  # where some term has no value
        values = np.array([record.blocks or missing for record in records])
        return _joined(formula, [*values.T, *columns.values()], len(archs))


@dataclass(frozen=True, slots=True)
class _OfParts(Proxy):
    """A formula joined from the scores of its parts: its terms, then its columns."""

    name: str
    formula: Formula
    parts: tuple[Proxy, ...] = ()

    def map_leaves(self, change: Callable[[Proxy], Proxy]) -> Proxy:
        return replace(self, parts=tuple(part.map_leaves(change) for part in self.parts))

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        values = [part.score(space, archs, measurements) for part in self.parts]
        return _joined(self.formula, values, len(archs))


def _joined(formula: Formula, values: Sequence[FloatArray], n: int) -> FloatArray:
    """The scores (n,) from those (n,) of the formula's terms, and then of its columns."""
    leaves: list[Atom] = [*formula.terms, *map(Column, formula.columns)]
    scores = np.full(n, np.nan)
    for row in range(n):
        known = {leaf: float(of[row]) for leaf, of in zip(leaves, values, strict=True)}
        score = combine(formula, partial(_known, known))
        if not isinstance(score, Rejected):
            scores[row] = score
    return scores


def filled(values: FloatArray) -> FloatArray:
    """The column with missing values replaced, lest they reject the formula on every row."""
    known = np.isfinite(values)
    return np.where(known, values, values[known][0]) if known.any() else values


def _known(values: Mapping[Atom, float], atom: Atom) -> float | Rejected:
    return values[atom] if math.isfinite(values[atom]) else _NO_COLUMN


def column_values(
    columns: Mapping[str, Proxy],
    space: Space[Any],
    archs: Sequence[Any],
    measurements: Measurements,
) -> dict[str, FloatArray]:
    """The scores (n,) of the architectures under each proxy."""
    return {name: proxy.score(space, archs, measurements) for name, proxy in columns.items()}


def size_network(space: Space[Any], arch: Any) -> formulas.NetworkValues:
    """The architecture as a network that has sizes and no statistics."""
    blocks = [_sizes(of) for of in space.block_sizes(arch)]
    ends = {end: _sizes(of) for end, of in space.end_sizes(arch).items()}
    return formulas.NetworkValues(blocks, ends.get(EMBEDDING), ends.get(HEAD))


@dataclass(frozen=True, slots=True)
class BlockValues:
    """A measure: the formula's value on each block, on tensors cut as in sketches."""

    formula: Formula
    limit: int | None
    definitions: str = OURS

    def __call__(self, network: Network) -> Terms:
        found = _positions(network, self.formula, self.limit, False, self.definitions)
        blocks = found.blocks
        values = block_values(self.formula.term.expression, blocks)
        if isinstance(values, Rejected):
            return [[np.nan] for _ in blocks]
        return [[value] for value in values]


@dataclass(frozen=True, slots=True)
class TermValues:
    """A measure: the value of each of the formula's terms, in their order."""

    formula: Formula
    limit: int | None
    definitions: str = OURS

    def __call__(self, network: Network) -> Terms:
        with_ends = any(term.positions.end is not None for term in self.formula.terms)
        positions = _positions(network, self.formula, self.limit, with_ends, self.definitions)
        return [[self._value(term, positions)] for term in self.formula.terms]

    def _value(self, term: Term, positions: formulas.NetworkValues) -> float:
        try:
            found = naive_score(Formula.of_base(term), positions)
        except TensorError:  # a position has not what the term reads there: the head of an encoder
            return math.nan
        return math.nan if isinstance(found, Rejected) else found


def _positions(
    network: Network, formula: Formula, limit: int | None, with_ends: bool, definitions: str
) -> formulas.NetworkValues:
    """The formula's statistics of a network, which runs once, and its sizes if they are known."""
    from lpzero.statistics.extraction import extract  # imports torch

    names = set(formula.statistics)
    if network.has_passed(names) and not with_ends and definitions == OURS:
        found = network.passed_statistics(names, limit)
    else:
        found = extract(
            network.model,
            network.tokens,
            loss=network.loss,
            seed=network.seed,
            chunk=network.chunk,
            limit=limit,
            with_ends=with_ends,
            layout=network.layout if network.has_layout else None,
            names=names,
            definitions=definitions,
        )
    sizes = network.sizes or {"blocks": [{}] * len(found.blocks), "ends": {}}
    pairs = zip(found.blocks, sizes["blocks"], strict=True)
    blocks = [_matrices(block) | _sizes(of) for block, of in pairs]
    ends = {
        end: _matrices(of) | _sizes(sizes["ends"].get(end, {})) for end, of in found.ends.items()
    }
    return formulas.NetworkValues(blocks, ends.get(EMBEDDING), ends.get(HEAD))


def _matrices(position: PositionStatistics) -> dict[str, list[Matrix]]:
    return {
        name: [
            Matrix(piece.values.float().cpu().numpy().astype(np.float64), piece.true_columns)
            for piece in pieces
        ]
        for name, pieces in position.items()
    }


def _sizes(sizes: Mapping[str, float]) -> dict[str, list[Matrix]]:
    return {name: number(value) for name, value in sizes.items()}

"""Formulas as proxies: scored on sketches of the architectures, which are made once.

The two published ones are here under `lpzero-flexibert` and `lpzero-gpt2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.proxies.context import Context
from lpzero.proxies.network import Network
from lpzero.proxies.registry import Measure, Needs, NetworkProxy, Terms, register
from lpzero.sketches.sketch import SketchOptions
from lpzero.statistics.extraction import extract
from primitives.classics import CLASSICS
from primitives.expressions import Leaf, walk
from primitives.formula import Formula
from primitives.naive import Axis, block_values
from primitives.rejection import Rejected
from primitives.statistics import gradient_statistics
from primitives.tensors import Matrix
from spaces.base import Space

if TYPE_CHECKING:
    from lpzero.proxies.measurements import Measurements


@dataclass(frozen=True, slots=True)
class FormulaProxy:
    """A formula, discovered or written by hand.

    An exported one brings the `options` of its sketches and the `softmax_axis`, and is scored with
    them. Seeds asked for count from its own; a loss other than "auto" goes before its own. Its
    `chosen_on` are the tables it was found on, each with the seed of the split.
    """

    name: str
    formula: Formula
    paper: str = ""
    options: SketchOptions | None = None
    softmax_axis: Axis = "first"
    chosen_on: tuple[tuple[str, int], ...] = ()

    @property
    def needs(self) -> Needs:
        used = {n.statistic for n in walk(self.formula.expression) if isinstance(n, Leaf)}
        forward = Needs.FORWARD | Needs.TAPS
        return forward | Needs.GRADIENT | Needs.LABELS if used & gradient_statistics() else forward

    @property
    def direction(self) -> int:
        return self.formula.sign

    @property
    def has_blocks(self) -> bool:
        return True

    @property
    def definition(self) -> str:
        return str(self.formula)

    @property
    def needs_sketches(self) -> bool:
        """Whether it has a loss or seeds of its own, with which single networks are not run."""
        own, usual = self.options or SketchOptions(), SketchOptions()
        return replace(own, limit=usual.limit) != usual

    def exact(self) -> FormulaProxy:
        """The formula on whole tensors instead of cut ones."""
        return replace(self, options=replace(self.options or SketchOptions(), limit=None))

    def on_networks(self) -> NetworkProxy:
        """The same scores, up to rounding, from each network as it is run: no sketch is kept."""
        own, usual = self.options or SketchOptions(), SketchOptions()
        if self.needs_sketches:
            raise InputError(
                f"{self.name} was exported with its own loss or seeds, and single networks are run"
                " with those asked for; score it on sketches, as `lpzero rank` does"
            )
        name = str(self.formula)
        if (own.limit, self.softmax_axis) != (usual.limit, "first"):
            name += f" limit {own.limit} axis {self.softmax_axis}"
        values = _BlockValues(self.formula, own.limit, self.softmax_axis)
        measure = Measure(name, values, by_block=True)
        is_mean = self.formula.reduction == "mean"
        known = self.name, self.needs, self.paper, self.definition
        return NetworkProxy(*known, measure, is_mean, self.direction)

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        options = self.sketching(measurements.context)
        evaluator, usable = measurements.evaluator(space, archs, options, self.softmax_axis)
        scores = np.full(len(archs), np.nan)
        found = evaluator.score(self.formula)
        if not isinstance(found, Rejected):
            scores[usable] = found
        return scores

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> list[FloatArray]:
        """Of each architecture the values of its blocks, before the sum or mean over them."""
        options = self.sketching(measurements.context)
        evaluator, usable = measurements.evaluator(space, archs, options, self.softmax_axis)
        if len(usable) < len(archs):
            raise InputError("some architecture has no sketch; `lpzero stats` says which and why")
        found = self.formula.sign * evaluator.block_means(self.formula.expression)
        return [found[row, : space.depth(arch)] for row, arch in enumerate(archs)]

    def sketching(self, context: Context) -> SketchOptions:
        """How the sketches are taken."""
        own = self.options or SketchOptions()
        return SketchOptions(
            own.limit,
            own.loss if context.loss == "auto" else context.loss,
            own.seed + context.seed,
            own.batch_seed + context.batch_seed,
        )


@dataclass(frozen=True, slots=True)
class _BlockValues:
    """The formula's value of each block of a network, on tensors cut as sketches are."""

    formula: Formula
    limit: int | None
    softmax_axis: Axis

    def __call__(self, network: Network) -> Terms:
        if callable(network.loss):
            raise InputError("formulas know the losses of our spaces only, not a function")
        found = extract(
            network.model,
            network.tokens,
            loss=network.loss,
            seed=network.seed,
            chunk=network.chunk,
            limit=self.limit,
        )
        blocks = [
            {
                name: [
                    Matrix(p.values.float().cpu().numpy().astype(np.float64), p.true_columns)
                    for p in pieces
                ]
                for name, pieces in block.items()
            }
            for block in found.blocks
        ]
        values = block_values(self.formula, blocks, self.softmax_axis)
        if isinstance(values, Rejected):
            return [[np.nan] for _ in blocks]
        return [[value] for value in values]


for _classic in CLASSICS:
    if _classic.name.startswith("lpzero-") and _classic.formula is not None:
        register(FormulaProxy(_classic.name, _classic.formula, "LPZero"))

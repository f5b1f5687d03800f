"""Formula -> scores of every architecture, or the reason why it has none.

Means in the branch table are looked up; anything deeper is computed on the sketches, piece by
piece, each sub-expression once. A formula's score depends on the formula, the sketches and the
chain set only: not on other formulas, their order, or the number of threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lpzero.arrays import BoolArray, FloatArray
from lpzero.errors import InputError
from lpzero.parallel import Workers
from lpzero.scores.branch_table import BranchTable, branch_table, over_blocks, over_tensors
from lpzero.scores.byte_cache import ByteCache
from lpzero.scores.chains import ChainSet, surviving
from lpzero.scores.column_evaluator import known_column
from lpzero.scores.matrices import Matrices
from lpzero.scores.score_trees import formula_values
from lpzero.scores.stacks import NonFiniteError, apply, finite
from lpzero.scores.terms import divisors, reduce_blocks
from lpzero.sketches.sketch import Sketch
from primitives.expressions import Apply, Combine, Expression, Leaf, chain_of, drop_dead, walk
from primitives.facts import facts
from primitives.formula import Atom, Formula, Term
from primitives.naive import block_values
from primitives.properties import Kind
from primitives.registry import get_binary, get_unary
from primitives.rejection import NON_FINITE, Rejected
from primitives.statistics import STATISTICS
from primitives.tensors import Block, Matrix, number

_OVERFLOW = Rejected(NON_FINITE, "an operation overflowed float64 on these tensors")
_DISCONNECTED = Rejected("both-disconnected", "every branch is disconnected")
_PRODUCTS = ("mul", "matmul")
MISSING_STATISTIC = "missing-statistic"
MEMORY = 1 << 30


class _MissingError(Exception):
    """A formula reads something that these architectures do not have."""

    def __init__(self, rejected: Rejected) -> None:
        super().__init__(rejected.rule)
        self.rejected = rejected


class FormulaEvaluator:
    """Scores of formulas on the architectures `rows` of the sketches (all if None).

    `memory` limits the bytes cached between formulas, `jobs` is the number of threads that compute
    deep formulas; neither changes a score. `columns` (A,) by name are what formulas may name beside
    statistics, sizes and `depth`. Unless it is given, the branch table is built first (and
    stored next to the sketches if they come from a store).
    """

    def __init__(
        self,
        sketches: Sequence[Sketch],
        chains: ChainSet | None = None,
        *,
        rows: Sequence[int] | None = None,
        table: BranchTable | None = None,
        workers: Workers | None = None,
        memory: int = MEMORY,
        jobs: int = 1,
        label: str | None = None,
        columns: Mapping[str, FloatArray] | None = None,
    ) -> None:
        chains = table.chains if table is not None else chains or surviving(2)
        picked = range(len(sketches)) if rows is None else rows
        if table is not None and table.n_archs != len(picked):
            raise InputError(
                f"the branch table has {table.n_archs} architectures, expected {len(picked)}"
            )
        self.table = table or branch_table(sketches, chains, picked, workers, label)
        self.n_archs = self.table.n_archs
        self.sketches, self.rows = sketches, picked
        # A product of counts may name the depth, which every network has.
        self._columns = {"depth": self.table.n_blocks.astype(np.float64), **(columns or {})}
        self._has_block = self.table.has_block
        # Aligned statistics have one number of tensors, so any of them tells it.
        self._example = {STATISTICS[name].group: name for name in chains.chains}
        self._small: ByteCache[FloatArray] = ByteCache(memory // 4)
        self._matrices = Matrices(self, sketches, picked, memory - memory // 4, jobs)

    def score(
        self, formula: Formula, columns: Mapping[str, FloatArray] | None = None
    ) -> FloatArray | Rejected:
        """The formula's scores (A,), or why it has none."""
        return self.scores([formula], columns)[0]

    def scores(
        self, formulas: Sequence[Formula], columns: Mapping[str, FloatArray] | None = None
    ) -> list[FloatArray | Rejected]:
        """The scores of each formula; sub-expressions they share are computed once.

        `columns` (A,) by name, if given, take the place of the evaluator's own.
        """
        if len(formulas) > 1:
            live = [drop_dead(term.expression) for formula in formulas for term in formula.terms]
            common = Counter(n for e in live if e is not None for n in set(walk(e)))
            self._matrices.expect(node for node, count in common.items() if count > 1)
        return [self._score(formula, self._columns | dict(columns or {})) for formula in formulas]

    def _score(self, formula: Formula, columns: Mapping[str, FloatArray]) -> FloatArray | Rejected:
        def value_of(atom: Atom) -> FloatArray:
            if isinstance(atom, Term):
                return self._term(atom)
            return known_column(atom.name, columns)

        with np.errstate(all="ignore"):  # overflow is answered, not warned about
            try:
                return finite(formula.sign * formula_values(formula, value_of))
            except NonFiniteError:
                return _OVERFLOW
            except _MissingError as missing:
                return missing.rejected

    def _term(self, term: Term) -> FloatArray:
        """The term's values (A,)."""
        expression = drop_dead(term.expression)
        if expression is None:
            raise _MissingError(_DISCONNECTED)
        end = term.positions.end
        if end is not None:
            return self._cached(end, expression, lambda e: self._at_end(e, end))
        self._check_leaves(expression)
        if term.positions.reads_all:  # linear operations act on totals over blocks
            return self.total(expression) / divisors(term.positions, self.table.n_blocks)
        means = self.block_means(expression)
        return reduce_blocks(means, self.table.n_blocks, term.reduction)

    def _check_leaves(self, expression: Expression) -> None:
        for node in walk(expression):
            if not isinstance(node, Leaf):
                continue
            if node.is_size and node.name not in self.table.sizes:
                raise _MissingError(
                    Rejected("missing-size", f"these sketches do not state the size {node.name}")
                )
            if node.name in self.table.absent:
                raise _MissingError(
                    Rejected(MISSING_STATISTIC, f"these networks have no statistic {node.name}")
                )

    def _at_end(self, expression: Expression, end: str) -> FloatArray:
        """The expression's value at an end (A,): looked up, or computed on the sketches."""
        found = chain_of(expression)
        if found is not None:
            row = self.table.chains.rows.get(found)
            if row is not None and (end, found[0]) in self.table.ends:
                values_of_chain: FloatArray = self.table.ends[end, found[0]][row]
                return values_of_chain
            if not found[1] and (end, found[0]) in self.table.end_sizes:
                return self.table.end_sizes[end, found[0]]
        values = []
        for place, row in enumerate(self.rows):
            block = self._end_block(self.sketches[row], end, place, expression)
            value = block_values(expression, [block])
            if isinstance(value, Rejected):
                raise _MissingError(value)
            values.append(value[0])
        return np.array(values)

    def _end_block(self, sketch: Sketch, end: str, arch: int, expression: Expression) -> Block:
        """What the expression reads at the end of one architecture."""
        block: dict[str, Sequence[Matrix]] = {}
        for leaf in walk(expression):
            if not isinstance(leaf, Leaf):
                continue
            if leaf.is_size:
                known = self.table.end_sizes.get((end, leaf.name))
                if known is not None and known[arch] >= 1:  # an encoder's head has no parameters
                    block[leaf.name] = number(float(known[arch]))
            elif end in sketch.ends and STATISTICS[leaf.name].at_ends:
                block[leaf.name] = sketch.matrices(end, leaf.name)
            if not block.get(leaf.name):
                raise _MissingError(
                    Rejected("missing-end", f"an architecture has no {leaf.name} at its {end}")
                )
        return block

    def total(self, expression: Expression) -> FloatArray:
        """The sum over blocks (A,) of each block's value; linear operations act on the totals."""
        return self._cached("total", expression, self._total)

    def block_means(self, expression: Expression) -> FloatArray:
        """The value of each block (A, B), padded with zeros."""
        return self._cached("blocks", expression, self._block_means)

    def tensor_means(self, expression: Expression) -> FloatArray:
        """The mean of each tensor (A, B, T) of a grouped expression, padded with zeros."""
        return self._cached("tensors", expression, self._tensor_means)

    def _cached(
        self, what: str, expression: Expression, compute: Callable[[Expression], FloatArray]
    ) -> FloatArray:
        found = self._small.get((what, expression))
        if found is None:
            found = finite(compute(expression))
            self._small.put((what, expression), found, found.nbytes + 500)
        return found

    def _total(self, expression: Expression) -> FloatArray:
        if isinstance(expression, Apply) and expression.operation == "neg":
            return -self.total(expression.operand)
        if isinstance(expression, Combine):
            primitive = get_binary(expression.operation)
            if primitive.is_linear:
                left, right = self.total(expression.left), self.total(expression.right)
                return np.asarray(primitive.body(left, right, np))
            left_chain, right_chain = chain_of(expression.left), chain_of(expression.right)
            if left_chain is not None and right_chain is not None:
                found = self.table.product(expression.operation, left_chain, right_chain)
                if found is None and primitive.commutes:
                    found = self.table.product(expression.operation, right_chain, left_chain)
                if found is not None:
                    return found
        return over_blocks(self.block_means(expression))

    def _block_means(self, expression: Expression) -> FloatArray:
        known = facts(expression)
        if known.group is not None:
            return over_tensors(
                self.tensor_means(expression), self.table.counts[self._example[known.group]]
            )
        if isinstance(expression, Leaf):
            return self.table.sizes[expression.name]
        if isinstance(expression, Apply):
            return self._unary(expression, self.block_means(expression.operand), self._has_block)
        assert isinstance(expression, Combine)
        left, right = self.block_means(expression.left), self.block_means(expression.right)
        return self._binary(expression.operation, left, right, self._has_block)

    def _tensor_means(self, expression: Expression) -> FloatArray:
        found = self._tabulated(expression)
        if found is not None:
            return found
        known = facts(expression)
        assert known.group is not None
        has_tensor = self.has_tensor(known.group)
        if isinstance(expression, Apply):
            if expression.operation == "mean":
                return self.tensor_means(expression.operand)
            if expression.operation == "neg":
                return -self.tensor_means(expression.operand)
            if facts(expression.operand).kind is Kind.SCALAR:
                return self._unary(expression, self.tensor_means(expression.operand), has_tensor)
        if isinstance(expression, Combine):
            sides = expression.left, expression.right
            is_product = expression.operation in _PRODUCTS
            scalar_involved = any(facts(side).kind is Kind.SCALAR for side in sides)
            if get_binary(expression.operation).is_linear or (is_product and scalar_involved):
                left, right = (self._spread(side) for side in sides)
                return self._binary(expression.operation, left, right, has_tensor)
        return self._matrices.means(expression)

    def _tabulated(self, expression: Expression) -> FloatArray | None:
        branch = chain_of(expression)
        row = None if branch is None else self.table.chains.rows.get(branch)
        return None if branch is None or row is None else self.table.means[branch[0]][row]

    def _spread(self, expression: Expression) -> FloatArray:
        """One number per tensor (A, B, T), or per block (A, B, 1) if the side has no tensors."""
        if facts(expression).group is None:
            return self.block_means(expression)[..., np.newaxis]
        return self.tensor_means(expression)

    def _unary(self, node: Apply, values: FloatArray, where: BoolArray) -> FloatArray:
        """The operation on the scalars selected by the mask `where`; zero elsewhere."""
        result = np.zeros(values.shape)
        given = values[where].reshape(-1, 1, 1)
        result[where] = apply(get_unary(node.operation), given, 1.0).reshape(-1)
        return result

    def _binary(
        self, operation: str, left: FloatArray, right: FloatArray, where: BoolArray
    ) -> FloatArray:
        primitive = get_binary(operation)
        result = left * right if primitive.contracts else primitive.body(left, right, np)
        return np.where(where, result, 0.0)

    def has_tensor(self, group: str) -> BoolArray:
        """Which tensors (A, B, T) exist."""
        name = self._example[group]
        return (
            np.arange(self.table.means[name].shape[-1]) < self.table.counts[name][..., np.newaxis]
        )

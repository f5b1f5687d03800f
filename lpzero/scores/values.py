"""Values: formula -> scores of every architecture, or the reason why it has none.

A formula is a product of powers, each computed once and cached. Means in the branch table are
looked up; anything deeper is computed on the sketches, piece by piece, each sub-expression once. A
score depends on the formula, the sketches, the chain set and the columns only: not on other
formulas, their order, or the number of threads. Operations above the terms have no guards: where
one is not defined (a root or logarithm of a negative, one over zero) there is no score, as in
`primitives.naive`.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lpzero.arrays import BoolArray, ByteCache, FloatArray
from lpzero.errors import InputError
from lpzero.scores.branch_table import BranchTable, over_blocks, over_tensors
from lpzero.scores.matrices import Matrices
from lpzero.scores.stacks import NonFiniteError, apply, finite
from lpzero.scores.terms import divisors, reduce_blocks
from lpzero.sketches.sketch import Sketch
from primitives.errors import NON_FINITE, Rejected
from primitives.expressions import Apply, Combine, Expression, Leaf, chain_of, drop_dead, walk
from primitives.facts import facts
from primitives.formula import (
    AtomOrConstant,
    Constant,
    Formula,
    Power,
    Term,
    chains,
    fold_base,
)
from primitives.naive import block_values
from primitives.outer import OUTER
from primitives.properties import Kind
from primitives.registry import get_binary, get_unary
from primitives.statistics import STATISTICS
from primitives.tensors import Block, Matrix, number

_OVERFLOW = Rejected(NON_FINITE, "an operation overflowed float64 on these tensors")
_UNDEFINED = Rejected(NON_FINITE, "an operation is not defined for a value of a column")
_NO_NETWORK = Rejected("missing-network", "the formula reads a network, and there is none")
_DISCONNECTED = Rejected("both-disconnected", "every branch is disconnected")
_PRODUCTS = ("mul", "matmul")
MISSING_STATISTIC = "missing-statistic"
MEMORY = 1 << 30
_OVERHEAD = 500  # bytes of a cached array beside its numbers


class _MissingError(Exception):
    """A formula reads something that these architectures do not have."""

    def __init__(self, rejected: Rejected) -> None:
        super().__init__(rejected.rule)
        self.rejected = rejected


class Values:
    """Scores of formulas on the architectures of a branch table, on columns (A,), or on both.

    `columns` are what formulas may name beside statistics, sizes and `depth`; without a table they
    are all there is. `memory` limits the bytes cached between formulas, `jobs` is the number of
    threads that compute deep formulas; neither changes a score.
    """

    def __init__(
        self,
        table: BranchTable | None = None,
        columns: Mapping[str, FloatArray] | None = None,
        *,
        memory: int = MEMORY,
        jobs: int = 1,
    ) -> None:
        self._table = table
        self.columns = dict(columns or {})
        self._powers: ByteCache[tuple[FloatArray, ...] | Rejected] = ByteCache(memory // 8)
        self._small: ByteCache[FloatArray] = ByteCache(memory // 8)
        if table is not None:
            self._has_block = table.has_block
            # Aligned statistics have one number of tensors, so any of them tells it.
            self._example = {STATISTICS[name].group: name for name in table.chains.chains}
            self._matrices = Matrices(self, table, memory - memory // 4, jobs)

    @property
    def table(self) -> BranchTable:
        """The branch table; raises InputError if there are columns alone."""
        if self._table is None:
            raise InputError("there are columns alone, and no branch table")
        return self._table

    @property
    def has_networks(self) -> bool:
        """Whether formulas may read statistics and sizes beside columns."""
        return self._table is not None

    @property
    def n_archs(self) -> int:
        if self._table is not None:
            return self._table.n_archs
        return len(next(iter(self.columns.values()), ()))

    def beside(self, columns: Mapping[str, FloatArray]) -> Values:
        """The values with more columns, or others of the same names; what is cached is shared."""
        other = copy.copy(self)
        other.columns = {**self.columns, **columns}
        other._powers = ByteCache(self._powers.limit)
        return other

    def score(self, formula: Formula) -> FloatArray | Rejected:
        """The formula's scores (A,), or why it has none."""
        return self.answers([formula])[0]

    def scores(self, formulas: Sequence[Formula]) -> FloatArray:
        """The scores (K, A) of each formula; NaN where it has none."""
        result = np.full((len(formulas), self.n_archs), np.nan)
        for row, scores in enumerate(self.answers(formulas)):
            if not isinstance(scores, Rejected):
                result[row] = scores
        return result

    def answers(self, formulas: Sequence[Formula]) -> list[FloatArray | Rejected]:
        """The scores (A,) of each formula, or why it has none."""
        self._expect(formulas)
        with np.errstate(all="ignore"):  # overflow is answered, not warned about
            return [self._answer(formula) for formula in formulas]

    def _expect(self, formulas: Sequence[Formula]) -> None:
        """Have matrices cached that several of the new powers are computed from."""
        if self._table is None:
            return
        new = {
            power.texts: power
            for formula in formulas
            for power in formula.powers
            if power.texts not in self._powers
        }
        if len(new) > 1:
            terms = {term for power in new.values() for term in Formula(1, (power,)).terms}
            live = [drop_dead(term.expression) for term in terms]
            common = Counter(n for e in live if e is not None for n in set(walk(e)))
            self._matrices.expect(node for node, count in common.items() if count > 1)

    def _answer(self, formula: Formula) -> FloatArray | Rejected:
        """The product of the powers in the order of the text, each a product of its factors."""
        total: FloatArray | None = None
        for power in formula.powers:
            factors = self._factors(power)
            if isinstance(factors, Rejected):
                return factors
            for factor in factors:
                total = factor if total is None else total * factor
        assert total is not None, "a formula has a power"
        if len(formula.powers) > 1 and not np.isfinite(total).all():
            return self._not_finite
        return formula.sign * total

    def _factors(self, power: Power) -> tuple[FloatArray, ...] | Rejected:
        """The power as the factors (A,) that its text multiplies: x^(3/2) is written x sqrt(x)."""
        cached = self._powers.get(power.texts)
        if cached is None:
            cached = self._computed(power)
            size = 0 if isinstance(cached, Rejected) else sum(of.nbytes for of in cached)
            self._powers.put(power.texts, cached, size + _OVERHEAD)
        return cached

    def _computed(self, power: Power) -> tuple[FloatArray, ...] | Rejected:
        try:
            base = fold_base(power.base, self._atom, _applied, _joined)
            factors = []
            for chain in chains(power.exponent):
                values = base
                for operation in chain:
                    values = _applied(operation, values)
                factors.append(values)
            finite(factors[0] if len(factors) == 1 else _joined("mul", factors))
            return tuple(factors)
        except NonFiniteError:
            return self._not_finite
        except _MissingError as missing:
            return missing.rejected

    @property
    def _not_finite(self) -> Rejected:
        return _UNDEFINED if self._table is None else _OVERFLOW

    def _atom(self, atom: AtomOrConstant) -> FloatArray:
        if isinstance(atom, Term):
            return self._term(atom)
        if isinstance(atom, Constant):
            return np.full(self.n_archs, atom.value)
        columns = self.columns
        if self._table is not None:  # every network has a depth
            columns = {"depth": self._table.n_blocks.astype(np.float64), **columns}
        if atom.name not in columns:
            given = ", ".join(sorted(columns)) or "none"
            raise InputError(f"the formula names column {atom.name!r}; columns given: {given}")
        return finite(np.asarray(columns[atom.name], dtype=np.float64))

    def _term(self, term: Term) -> FloatArray:
        """The term's values (A,)."""
        if self._table is None:
            raise _MissingError(_NO_NETWORK)
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
        branch = chain_of(expression)
        if branch is not None:
            row = self.table.chains.rows.get(branch)
            if row is not None and (end, branch[0]) in self.table.ends:
                values_of_chain: FloatArray = self.table.ends[end, branch[0]][row]
                return values_of_chain
            if not branch[1] and (end, branch[0]) in self.table.end_sizes:
                return self.table.end_sizes[end, branch[0]]
        values = []
        for place, row in enumerate(self.table.rows):
            block = self._end_block(self.table.sketches[row], end, place, expression)
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
                sizes = self.table.end_sizes.get((end, leaf.name))
                if sizes is not None and sizes[arch] >= 1:  # an encoder's head has no parameters
                    block[leaf.name] = number(float(sizes[arch]))
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
        values = self._small.get((what, expression))
        if values is None:
            values = finite(compute(expression))
            self._small.put((what, expression), values, values.nbytes + _OVERHEAD)
        return values

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
                product = self.table.product(expression.operation, left_chain, right_chain)
                if product is None and primitive.commutes:
                    product = self.table.product(expression.operation, right_chain, left_chain)
                if product is not None:
                    return product
        return over_blocks(self.block_means(expression))

    def _block_means(self, expression: Expression) -> FloatArray:
        group = facts(expression).group
        if group is not None:
            return over_tensors(
                self.tensor_means(expression), self.table.counts[self._example[group]]
            )
        if isinstance(expression, Leaf):
            return self.table.sizes[expression.name]
        if isinstance(expression, Apply):
            return self._unary(expression, self.block_means(expression.operand), self._has_block)
        assert isinstance(expression, Combine)
        left, right = self.block_means(expression.left), self.block_means(expression.right)
        return self._binary(expression.operation, left, right, self._has_block)

    def _tensor_means(self, expression: Expression) -> FloatArray:
        tabulated = self._tabulated(expression)
        if tabulated is not None:
            return tabulated
        group = facts(expression).group
        assert group is not None
        has_tensor = self.has_tensor(group)
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


def _applied(operation: str, values: FloatArray) -> FloatArray:
    return finite(OUTER[operation].body(values, np))


def _joined(operation: str, operands: Sequence[FloatArray]) -> FloatArray:
    total = operands[0]
    for values in operands[1:]:
        if operation == "sub":
            total = total - values
        else:
            total = total * values if operation == "mul" else total + values
    return finite(total)

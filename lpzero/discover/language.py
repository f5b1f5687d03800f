"""The space of formulas of a campaign: draws formulas, recognises those outside, prunes.

With `--terms 1` a formula is one term, in the paper's form; else a product of powers of terms and
columns, or a sum of columns. Products are made in canonical form (`Language.product`): what stays
the same for a term is looked up, so that a product that was met before costs a look-up too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

from lpzero.discover.settings import AS_WRITTEN, EQUAL, EXACT, Settings
from lpzero.errors import InputError
from lpzero.scores.columns import NO_COLUMNS, ColumnFacts, is_summand, parts_of, sum_of
from lpzero.scores.products import COLUMN_EXPONENTS, EXPONENTS
from primitives import pruning
from primitives.canonical import Factor, Product, as_product, canonical, product_of
from primitives.deap_set import build_set
from primitives.errors import FormulaError, Rejected
from primitives.expressions import (
    Apply,
    Combine,
    Expression,
    Leaf,
    branch,
    chain_of,
    drop_dead,
    walk,
)
from primitives.formula import (
    Atom,
    Column,
    Formula,
    Outer,
    Power,
    Sum,
    Term,
    chains,
    formulas_within,
)
from primitives.parser import parse
from primitives.reductions import PAPER_REDUCTIONS, POSITION_REDUCTIONS, Reduction
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import SIZES, STATISTICS

# How often the authors' code draws each binary operation; any other is never drawn.
_RELEASED_WEIGHTS = {"add": 0.6, "sub": 0.3, "matmul": 0.05, "mul": 0.05}
_EARLY_LEAF = 0.3  # the probability that a branch ends above the deepest level
_SIZE = 0.25  # the probability that a term reads a size instead of a statistic
_BINARY = 0.2  # the probability that a term has a binary operation, where the depth allows one
_COLUMN = 0.4  # the probability that a term is a column, where there are columns
_COUNTER = 0.1  # the same where the only columns are counters
_SUM = 0.3  # the probability that a formula is a sum, where there are columns
_SIZE_OPERATIONS = ("sqrt", "square", "log", "inverse")
_SIGNS = (1, -1)
_PRODUCT_RULES = ("repeated-factor", "too-many-factors", "exponent")  # in the order of pruning
_TRIES = 5000
_MOST_FORMS = 65_536  # the longer a campaign runs, the more of its formulas it has met before
_UNIT = 1 << 20  # exponents are whole multiples of 1/_UNIT, because roots halve them


T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
Factors = list[tuple[Atom, Fraction]]


class RandomSource(Protocol):
    """The methods used of a random generator; the module `random` has them too."""

    def random(self) -> float: ...
    def randint(self, a: int, b: int) -> int: ...
    def choice(self, seq: Sequence[T]) -> T: ...
    def choices(
        self, population: Sequence[T], weights: Sequence[float] | None = ..., *, k: int = ...
    ) -> list[T]: ...


class ScoredForm(NamedTuple):
    """The form that is scored for a formula: its canonical form without the sign, and that sign."""

    formula: Formula
    sign: int
    key: str


class Language:
    """The formulas that the settings allow; `columns` are what they may use beside networks."""

    def __init__(self, settings: Settings, columns: ColumnFacts = NO_COLUMNS) -> None:
        self.settings, self.columns = settings, columns
        self.summands = columns.summands
        self.column_factors = tuple([Column(name) for name in columns.factors])
        self._column = _COLUMN if set(columns.names) - columns.counters else _COUNTER
        self.has_products = settings.terms > 1
        self.statistics = [name for name in STATISTICS if name in settings.statistics]
        self.reductions: list[Reduction] = list(POSITION_REDUCTIONS)
        if not self.has_products:
            self.reductions = [name for name in PAPER_REDUCTIONS if name in settings.reductions]
        self.rules = frozenset(settings.rules)
        if self.rules:
            # A formula without a connected branch has no canonical form, whichever rules are on.
            around = frozenset(pruning.OUTER_RULES) if self.has_products else frozenset()
            self.rules |= around | {"both-disconnected"}
        sizes = SIZES if self.has_products else ()
        self.primitive_set: Any = build_set(self.statistics, self.reductions, sizes)
        self._forms: dict[Formula, ScoredForm | Rejected] = {}
        self._reasons: dict[Formula, str | None] = {}  # why a formula is outside, None if inside
        self._products: dict[tuple[tuple[str, int], ...], Formula | None] = {}
        self.why_term_outside = lru_cache(_MOST_FORMS)(self._why_term_outside)
        self._bases = lru_cache(_MOST_FORMS)(self._bases_of)
        self._factor = lru_cache(_MOST_FORMS)(self._factor_of)
        self._factors = lru_cache(1024)(self._factors_of)

    # Drawing

    def draw(self, rng: RandomSource) -> Formula:
        """A random formula of the space.

        The paper's chains have a fixed number of operations, which may be `identity`. The other
        methods draw any number up to the limit, which finds simple formulas sooner.
        """
        if not self.has_products:
            expression = self._draw(rng, self.settings.depth, True)
            return Formula.of_term(rng.choice(self.reductions), expression)
        while True:
            formula = self._draw_sum(rng) if self._draws_sum(rng) else self._draw_product(rng)
            if formula is not None:
                return formula

    def _draw(self, rng: RandomSource, depth: int, at_top: bool) -> Expression:
        if depth == 0 or (not at_top and rng.random() < _EARLY_LEAF):
            return branch(rng.choice(self.statistics), *self._chain(rng))
        below = [self._draw(rng, depth - 1, False) for _ in range(2)]
        expression: Expression = Combine(self.draw_binary(rng), below[0], below[1])
        if not at_top:
            for operation in self._chain(rng):
                expression = Apply(operation, expression)
        return expression

    def _chain(self, rng: RandomSource) -> list[str]:
        most = self.settings.unaries
        length = most if self.settings.method == "paper" else rng.randint(0, most)
        return rng.choices(list(UNARIES), k=length)

    def draw_binary(self, rng: RandomSource) -> str:
        """A binary operation, with the weights of the settings."""
        names = list(BINARIES)
        if self.settings.binary_weights == EQUAL:
            return rng.choice(names)
        return rng.choices(names, [_RELEASED_WEIGHTS.get(name, 0.0) for name in names], k=1)[0]

    def _draw_product(self, rng: RandomSource) -> Formula | None:
        n_factors = rng.randint(1, self.settings.terms)
        return self.product([self.draw_factor(rng) for _ in range(n_factors)])

    def draw_factor(self, rng: RandomSource) -> tuple[Atom, Fraction]:
        """A random term or column with a random exponent."""
        atom = self._draw_atom(rng)
        return atom, rng.choice(self.exponents(atom))

    def exponents(self, atom: Atom) -> tuple[Fraction, ...]:
        """The exponents that the term or column may have in a product."""
        return COLUMN_EXPONENTS if isinstance(atom, Column) else EXPONENTS

    def _draw_atom(self, rng: RandomSource) -> Atom:
        """A column, or a chain of a statistic or size, seldom a binary operation."""
        if self.column_factors and (self.settings.columns_only or rng.random() < self._column):
            return rng.choice(self.column_factors)
        reduction = rng.choice(self.reductions)
        at_end = POSITION_REDUCTIONS[reduction].end is not None
        if rng.random() < _SIZE:
            sizes = [name for name, size in SIZES.items() if size.at_ends or not at_end]
            has_chain = rng.random() < 0.5 and self.settings.unaries > 0
            chain = [rng.choice(_SIZE_OPERATIONS)] if has_chain else []
            return Term(reduction, branch(rng.choice(sizes), *chain))
        names = [n for n in self.statistics if STATISTICS[n].at_ends or not at_end]
        if not names:
            return self._draw_atom(rng)
        expression: Expression = branch(rng.choice(names), *self._chain(rng))
        if self.settings.depth and not at_end and rng.random() < _BINARY:
            expression = self._draw(rng, self.settings.depth, True)
        return Term(reduction, expression)

    def _draws_sum(self, rng: RandomSource) -> bool:
        if len(self.summands) < 2:
            return False
        no_product = self.settings.columns_only and not self.column_factors
        return no_product or rng.random() < _SUM

    def _draw_sum(self, rng: RandomSource) -> Formula | None:
        return sum_of([self.draw_summand(rng) for _ in range(rng.randint(2, self.settings.terms))])

    def draw_summand(self, rng: RandomSource) -> Formula:
        """A random column under operations on one number, with a random sign."""
        sign = rng.choice(_SIGNS)
        return rng.choice(self.summands).with_sign(sign)

    # Products

    def product(self, factors: Iterable[tuple[Atom, Fraction]]) -> Formula | None:
        """The product of powers of magnitudes in canonical form, whose sign is to be fitted.

        None if every factor cancels or one has no connected branch. A product with a term that a
        rule rejects is left as it is, so that the rule is named.
        """
        factors = list(factors)
        units: dict[str, int] = {}
        bases: dict[str, Atom] = {}
        for atom, exponent in factors:
            parts = self._bases(atom)
            if parts is None:
                return None
            if not parts:
                return self._unchanged(factors)
            for text, base, unit in parts:
                bases[text] = base
                unit *= exponent.numerator
                units[text] = units.get(text, 0) + unit // exponent.denominator
        left = [(text, units[text]) for text in sorted(units) if units[text]]
        if not left:
            return None
        # What only stretches the scale of the whole goes: a common factor of all exponents.
        of_all = [unit for _, unit in left]
        common = math.gcd(*of_all)
        if (sum(of_all), of_all[0]) < (0, 0):
            common = -common
        key = tuple([(text, unit // common) for text, unit in left])  # hashing atoms takes long
        if key not in self._products:
            product = self._make_product([(bases[text], unit) for text, unit in key])
            _keep(self._products, key, product)
        return self._products[key]

    def _unchanged(self, factors: Factors) -> Formula | None:
        if any(isinstance(a, Term) and drop_dead(a.expression) is None for a, _ in factors):
            return None
        is_ranked = any(isinstance(atom, Column) for atom, _ in factors)
        formula = product_of(factors, self.columns.positive, ranked=is_ranked)
        return None if formula is None else formula.with_sign(1)

    def _bases_of(self, atom: Atom) -> tuple[tuple[str, Atom, int], ...] | None:
        """(text, base, exponent in units) of the atom's magnitude in canonical form.

        None if no branch is connected, empty if a rule rejects the atom or there are no rules.
        """
        if isinstance(atom, Term) and drop_dead(atom.expression) is None:
            return None
        if not self.rules or pruning.check(Formula.of_base(atom), self.rules) is not None:
            return ()
        value = as_product(Formula.of_base(atom), self.columns.positive).magnitude()
        parts = []
        for factor in value.factors:
            assert isinstance(factor.base, Atom), "a term is a product of terms"
            if pruning.check(Formula.of_base(factor.base), self.rules) is not None:
                # log_softmax is kept, its canonical form log(softmax) is rejected.
                return ((str(atom), atom, _UNIT),)
            parts.append((str(factor.base), factor.base, int(factor.exponent * _UNIT)))
        return tuple(parts)

    def _make_product(self, powers: Sequence[tuple[Atom, int]]) -> Formula | None:
        """The product of bases to these exponents, of which the largest becomes 1 to below 2."""
        scale = 1 << (max([abs(unit) for _, unit in powers]).bit_length() - 1)
        factors = [self._factor(base, unit, scale) for base, unit in powers]
        try:
            formula = Formula(1, tuple([power for factor, _ in factors for power in factor]))
        except FormulaError:  # deeper than allowed
            return None
        # The first rule that a canonical product of sound terms breaks, as `pruning.check` has it.
        broken = {rule for _, rule in factors}
        if len(factors) > self.settings.terms:
            broken.add("too-many-factors")
        rule = next((rule for rule in _PRODUCT_RULES if rule in broken), None)
        form: ScoredForm | Rejected = ScoredForm(formula, 1, formula.text)
        if rule is not None and rule in self.rules:
            form = pruning.rejection(rule)
        _keep(self._forms, formula, form)
        _keep(self._reasons, formula, self._why_atoms_outside([base for base, _ in powers]))
        return formula

    def _factor_of(self, base: Atom, unit: int, scale: int) -> tuple[tuple[Power, ...], str | None]:
        """|base|^(unit / scale) as powers, and the rule that it breaks in a product."""
        factor = Factor(base, Fraction(unit, scale))
        rule = None
        if _is_repeated(factor):
            rule = "repeated-factor"
        elif not pruning.is_exponent(base, factor.exponent):
            rule = "exponent"
        return Product(1, (factor,)).formula(self.columns.positive).powers, rule

    def factors_of(self, formula: Formula) -> Factors:
        """The formula's terms and columns with their exponents."""
        return list(self._factors(formula))

    def _factors_of(self, formula: Formula) -> Factors:
        factors: Factors = []
        for power in formula.powers:
            base = power.base
            if isinstance(base, Outer) and base.operation == "abs":
                inner = base.operand.powers
                base = inner[0].base if len(inner) == 1 and inner[0].exponent == 1 else base
            if not isinstance(base, Atom):  # a root of a product, as a user may write it
                value = as_product(formula, self.columns.positive)
                return [(f.base, f.exponent) for f in value.factors if isinstance(f.base, Atom)]
            factors.append((base, power.exponent))
        return factors

    # Limits

    def why_outside(self, formula: Formula) -> str | None:
        """Why the formula is outside the space; None if it is inside."""
        if formula not in self._reasons:
            _keep(self._reasons, formula, self._why_outside(formula))
        return self._reasons[formula]

    def _why_outside(self, formula: Formula) -> str | None:
        if self.has_products:
            return self._why_product_outside(formula)
        if not formula.is_term:
            return f"{len(formula.terms)} terms, which need --terms 2 or more"
        if formula.term.reduction not in PAPER_REDUCTIONS:
            return f"reduction {formula.term.reduction}, which needs --terms 2 or more"
        if formula.term.reduction not in self.reductions:
            return f"reduction {formula.term.reduction}, which is not allowed (--reductions)"
        return self.why_term_outside(formula.term)

    def _why_product_outside(self, formula: Formula) -> str | None:
        parts = parts_of(formula)
        if parts is not None and all(map(is_summand, parts)):
            return self._why_atoms_outside(formula.atoms, len(parts))
        for part in formulas_within(formula):
            for power in part.powers:
                if isinstance(power.base, Sum):
                    operation = "sub" if power.base.signed(-1) else "add"
                    return f"{operation} of terms; a campaign searches products"
        return self._why_atoms_outside(formula.atoms)

    def _why_atoms_outside(self, atoms: Sequence[Atom], n_parts: int = 0) -> str | None:
        """Why a product of the atoms, or a sum of so many parts, is outside the space."""
        n, s = max(len(atoms), n_parts), self.settings
        if n > s.terms:
            return f"{n} terms, {s.terms} are allowed (--terms)"
        for atom in atoms:
            if isinstance(atom, Column):
                if atom.name not in self.columns.names:
                    return f"column {atom.name}, which a campaign does not know"
            elif s.columns_only:
                return f"term {atom}; with --columns-only there are columns alone"
            elif (reason := self.why_term_outside(atom)) is not None:
                return reason
        return None

    def _why_term_outside(self, term: Term) -> str | None:
        """Why the term is outside the space, whether it reads statistics or sizes."""
        s, expression = self.settings, term.expression
        run, levels = _shape(expression)
        if run > s.unaries:
            return f"{run} unary operations in a row, {s.unaries} are allowed (--unaries)"
        if levels > s.depth:
            return f"{levels} binary operations deep, {s.depth} are allowed (--depth)"
        if s.depth == 1 and levels == 1 and not isinstance(expression, Combine):
            return "a unary above the binary operation, which needs --depth 2"
        if s.chains == EXACT:
            if any(n != s.unaries for n in _chain_lengths(expression)):
                return f"chains that have not exactly {s.unaries} operations (--chains, --unaries)"
            if s.depth and not isinstance(expression, Combine):
                return "no binary operation, which --chains exact has"
        for node in walk(expression):
            if isinstance(node, Leaf):
                if node.is_size and not self.has_products:
                    return f"size {node.name}, which needs --terms 2 or more"
                if not node.is_size and node.name not in self.statistics:
                    return f"statistic {node.name}, which is not allowed (--statistics)"
            if not s.same_statistic and isinstance(node, Combine) and _is_same_pair(node):
                return "a statistic paired with itself, which needs --same-statistic"
        return None

    # Pruning

    def examine(self, formula: Formula) -> ScoredForm | Rejected:
        """The form to score for the formula, or the rule that rejects it.

        Without pruning, formulas count as equal only if their text is equal.
        """
        form = self._forms.get(formula)
        if form is None:
            form = self._examine(formula)
            _keep(self._forms, formula, form)
        return form

    def _examine(self, formula: Formula) -> ScoredForm | Rejected:
        if not self.rules:
            return ScoredForm(formula, 1, str(formula))
        pruned = self._pruned(formula)
        if pruned is not None:
            return pruned
        reduced = canonical(formula, self.columns.positive)
        if self.settings.sign == AS_WRITTEN:
            # Opposite signs are two formulas then, with opposite scores.
            return ScoredForm(reduced, 1, str(reduced))
        plain = reduced.with_sign(1)
        return ScoredForm(plain, reduced.sign, str(plain))

    def _pruned(self, formula: Formula) -> Rejected | None:
        """Why the formula need not be evaluated; None if it must be."""
        if not self.rules:
            return None
        return pruning.check(formula, self.rules, max_factors=self.settings.terms)

    def read(self, text: str) -> Formula:
        """A starting formula; one that is pruned is replaced by its canonical form."""
        formula = parse(text)
        if not (self.has_products or formula.is_papers):
            raise InputError(
                f"the starting formula {text} is not one sum or mean over blocks, of statistics"
                " alone; others need --terms 2 or more"
            )
        if self._pruned(formula) is not None:
            formula = canonical(formula)
        rejected = self._pruned(formula)
        if rejected is not None:
            raise InputError(f"the starting formula {text} is {rejected}")
        outside = self.why_outside(formula)
        if outside is not None:
            raise InputError(f"the starting formula {text} has {outside}")
        return formula.with_sign(1)

    def check_not_empty(self) -> None:
        """Raise InputError if none of many random formulas of the space survives pruning."""
        rng = random.Random(0)
        for _ in range(_TRIES):
            formula = self.draw(rng)
            if self.why_outside(formula) is None and self._pruned(formula) is None:
                return
        if self.settings.columns_only:
            usable = sorted({str(column) for column in (*self.column_factors, *self.summands)})
            raise InputError(
                "--columns-only combines columns, and these are too few that can be combined:"
                f" {', '.join(usable)[:200] or 'none'}; give a table with more columns that differ"
                " between rows"
            )
        raise InputError(
            f"no formula of this space survives pruning: all of {_TRIES:,} drawn with statistics"
            f" {' '.join(self.statistics)}, {self.settings.unaries} unaries and depth"
            f" {self.settings.depth} are rejected; allow more statistics, unaries or depth"
        )


def _keep(cache: dict[K, V], key: K, value: V) -> None:
    """Cache the value; a cache that is full starts again."""
    if len(cache) >= _MOST_FORMS:
        cache.clear()
    cache[key] = value


def _is_repeated(factor: Factor) -> bool:
    """Whether the factor is written as several powers, as x^(3/2) is; columns may have that one."""
    is_finer = isinstance(factor.base, Column) and abs(factor.exponent.numerator) == 3
    return not is_finer and len(chains(factor.exponent)) > 1


def _shape(expression: Expression) -> tuple[int, int]:
    """(the most unary operations in a row, the most binary ones from the root to a leaf)."""
    run = 0
    while isinstance(expression, Apply):
        run += 1
        expression = expression.operand
    if isinstance(expression, Leaf):
        return run, 0
    left, right = _shape(expression.left), _shape(expression.right)
    return max(run, left[0], right[0]), 1 + max(left[1], right[1])


def _chain_lengths(expression: Expression) -> Iterator[int]:
    """The number of unary operations in a row above each leaf."""
    n = 0
    while isinstance(expression, Apply):
        n += 1
        expression = expression.operand
    if isinstance(expression, Combine):
        yield from _chain_lengths(expression.left)
        yield from _chain_lengths(expression.right)
    else:
        yield n


def _is_same_pair(node: Combine) -> bool:
    sides = chain_of(node.left), chain_of(node.right)
    return sides[0] is not None and sides[1] is not None and sides[0][0] == sides[1][0]

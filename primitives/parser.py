"""Text to formula: a whitelist parser with positions in its errors.

    formula    = ["-"] number
    number     = term | column | constant | outer "(" number ")"
               | join "(" number "," number {"," number} ")"
    term       = reduction "(" expression ")"
    expression = statistic | size | unary "(" expression ")"
               | binary "(" expression "," expression ")"

The reduction is the border: above it `sqrt`, `mul` and the like work on one number per network,
below it on a block's tensors. Nothing is evaluated; a name that is not declared is an error.
Length and depth are limited, so hostile text costs neither time nor stack.
"""

from __future__ import annotations

import re

from primitives.errors import FormulaError, UnknownPrimitiveError, did_you_mean
from primitives.expressions import Apply, Combine, Expression, Leaf
from primitives.formula import (
    COLUMN_NAME,
    MAX_DEPTH,
    Column,
    Constant,
    Formula,
    Term,
    add,
    is_reserved,
    multiply,
)
from primitives.outer import JOINS, OUTER
from primitives.reductions import POSITION_REDUCTIONS
from primitives.registry import BINARIES, UNARIES, load_entry_points
from primitives.statistics import SIZES, STATISTICS

MAX_LENGTH = 20_000


def parse(text: str) -> Formula:
    """The formula that the text spells; factors of one base are merged into one power.

    >>> str(parse(" sum( add(square(inverse(H)),log_softmax(fro(A))) )"))
    'sum(add(square(inverse(H)), log_softmax(fro(A))))'
    >>> parse("mul(sqrt(inner(params)), depth)").columns
    ('depth',)
    """
    try:
        return _Reader(_checked(text)).formula()
    except FormulaError:
        if not _has_new_names():
            raise
    return _Reader(text).formula()


def _has_new_names() -> bool:
    """Whether other packages offer primitives that were not loaded yet; they are now."""
    before = len(UNARIES) + len(BINARIES)
    load_entry_points()
    return len(UNARIES) + len(BINARIES) > before


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise FormulaError(f"a formula is text, not {type(text).__name__}; pass a str")
    if len(text) > MAX_LENGTH:
        raise FormulaError(
            f"the text has {len(text)} characters; a formula has at most {MAX_LENGTH}"
        )
    return text


class _Reader:
    """The grammar, one method for each of its lines."""

    def __init__(self, text: str) -> None:
        self.scan = Scanner(text)
        self.leaves = frozenset((*STATISTICS, *SIZES))

    def formula(self) -> Formula:
        sign = -1 if self.scan.accept("-") else 1
        formula = self._number(1)
        if self.scan.token:
            token = shown(self.scan.token)
            raise self.scan.error(f"expected the end of the formula, found {token}")
        return formula.with_sign(sign * formula.sign)

    def _number(self, level: int) -> Formula:
        scan = self.scan
        scan.widen()
        name, start = scan.token, scan.start
        if level > MAX_DEPTH:
            raise scan.error(f"nested deeper than {MAX_DEPTH} levels; shorten the formula", start)
        if name in POSITION_REDUCTIONS:
            return Formula.of_base(self._term())
        if name[:1].isdigit():
            scan.advance()
            return Formula.of_base(Constant(float(name)))
        if name in OUTER:
            scan.advance()
            scan.expect("(", f"after {name}")
            operand = self._number(level + 1)
            scan.expect(")", f"to close {name}(, which takes one operand")
            return operand.apply(name)
        if name in JOINS:
            return self._join(level)
        if COLUMN_NAME.fullmatch(name) and not is_reserved(name) and not scan.opens():
            scan.advance()
            return Formula.of_base(Column(name))
        unknown = name.isidentifier() and not is_reserved(name)
        raise scan.error(_not_a_term(name, scan.opens()), start, unknown)

    def _join(self, level: int) -> Formula:
        name = self.scan.token
        self.scan.advance()
        self.scan.expect("(", f"after {name}")
        operands = [self._number(level + 1)]
        while self.scan.accept(","):
            operands.append(self._number(level + 1))
            if name == "sub":
                break
        takes = "two operands" if name == "sub" else "two or more operands"
        if len(operands) < 2:
            self.scan.expect(",", f"in {name}(, which takes {takes}")
        self.scan.expect(")", f"to close {name}(, which takes {takes}")
        if name == "mul":
            return multiply(operands)
        return add(operands if name == "add" else (operands[0], -operands[1]))

    def _term(self) -> Term:
        name = self.scan.token
        self.scan.advance()
        self.scan.expect("(", f"after {name}")
        expression = self._expression(1)
        self.scan.expect(")", f"to close {name}(")
        return Term(name, expression)

    def _expression(self, level: int) -> Expression:
        scan = self.scan
        name, start = scan.token, scan.start
        if level > MAX_DEPTH:
            raise scan.error(f"nested deeper than {MAX_DEPTH} levels; shorten the formula", start)
        if not name.isidentifier():
            raise scan.error(f"expected a statistic or an operation, found {shown(name)}", start)
        if name not in self.leaves and name not in UNARIES and name not in BINARIES:
            raise scan.error(f"unknown name {name!r}; {_hint(name)}", start, unknown=True)
        scan.advance()
        if name in self.leaves:
            return Leaf(name)
        scan.expect("(", f"after {name}")
        first = self._expression(level + 1)
        if name in UNARIES:
            scan.expect(")", f"to close {name}(, which takes one operand")
            return Apply(name, first)
        scan.expect(",", f"in {name}(, which takes two operands")
        second = self._expression(level + 1)
        scan.expect(")", f"to close {name}(, which takes two operands")
        return Combine(name, first, second)


def _hint(name: str) -> str:
    if name in POSITION_REDUCTIONS:
        return "a reduction over positions stands outside of the expression only"
    return did_you_mean(name, [*STATISTICS, *SIZES, *UNARIES, *BINARIES])


def _not_a_term(name: str, opens: bool) -> str:
    """Why the name cannot stand where one number per network is expected."""
    if name in STATISTICS or name in SIZES:
        kind = "statistic" if name in STATISTICS else "size"
        return f"{name} is a {kind} of each block; reduce it over the blocks, as in sum({name})"
    if name in UNARIES or name in BINARIES:
        return f"{name} works inside a block; reduce its result, as in sum({name}(...))"
    if not name.isidentifier():
        return f"expected sum(...), another reduction or a column, found {shown(name)}"
    words = [*POSITION_REDUCTIONS, *OUTER, *JOINS]
    what = "reduction or operation on terms" if opens else "column"
    return f"no {what} is called {name!r}; {did_you_mean(name, words)}"


_TOKEN = re.compile(
    r"[A-Za-z_][A-Za-z_0-9]*|[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|[(),\-]", re.ASCII
)
_SPACE = re.compile(r"[ \t\r\n]*")


class Scanner:
    """One pass over the text; `token` is the current one, empty at the end of the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.start = 0
        self.token = ""
        self._next_start = 0
        self.advance()

    def advance(self) -> None:
        """Go to the next token."""
        self.start = self._after_space(self._next_start)
        match = _TOKEN.match(self.text, self.start)
        if match is None and self.start < len(self.text):
            raise self.error(f"unexpected character {self.text[self.start]!a}")
        self._take(match.group() if match else "")

    def widen(self) -> None:
        """Take the current name with its hyphens, as a column's name may have them."""
        match = COLUMN_NAME.match(self.text, self.start)
        if match is not None and len(match.group()) > len(self.token):
            self._take(match.group())

    def opens(self) -> bool:
        """True if an opening bracket follows the current token."""
        after = self._after_space(self._next_start)
        return self.text[after : after + 1] == "("

    def expect(self, token: str, why: str) -> None:
        """Go past the token; raises FormulaError if another one is there."""
        if self.token != token:
            raise self.error(f"expected {token!r} {why}, found {shown(self.token)}")
        self.advance()

    def accept(self, token: str) -> bool:
        """Go past the token if it is there, and say whether it was."""
        is_there = self.token == token
        if is_there:
            self.advance()
        return is_there

    def error(
        self, message: str, position: int | None = None, unknown: bool = False
    ) -> FormulaError:
        """The error to raise, with the position in message and value."""
        where = self.start if position is None else position
        kind = UnknownPrimitiveError if unknown else FormulaError
        return kind(f"at character {where}: {message}", where)

    def _after_space(self, start: int) -> int:
        space = _SPACE.match(self.text, start)
        return space.end() if space else start

    def _take(self, token: str) -> None:
        self.token = token
        self._next_start = self.start + len(token)


def shown(token: str) -> str:
    """The token for a message: short, quoted, or the end of the text."""
    if not token:
        return "the end of the text"
    return repr(token if len(token) <= 40 else token[:40] + "...")

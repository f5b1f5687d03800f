"""Text to formula: a whitelist parser with positions in its errors.

    formula    = ["-"] ("sum" | "mean") "(" expression ")"
    expression = statistic | unary "(" expression ")" | binary "(" expression "," expression ")"

Nothing is evaluated; a name that is not declared is an error. Length and depth are limited, so
hostile text costs neither time nor stack.
"""

from __future__ import annotations

import re

from primitives.errors import FormulaError, UnknownPrimitiveError, did_you_mean
from primitives.expressions import Apply, Combine, Expression, Leaf
from primitives.formula import MAX_DEPTH, REDUCTIONS, Formula, check_reduction
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import STATISTICS

MAX_LENGTH = 20_000
_TOKEN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|[(),\-]", re.ASCII)
_SPACE = re.compile(r"[ \t\r\n]*")


def parse(text: str) -> Formula:
    """The formula that the text spells.

    >>> str(parse(" sum( add(square(inverse(H)),log_softmax(fro(A))) )"))
    'sum(add(square(inverse(H)), log_softmax(fro(A))))'
    """
    if not isinstance(text, str):
        raise FormulaError(f"a formula is text, not {type(text).__name__}; pass a str")
    if len(text) > MAX_LENGTH:
        raise FormulaError(
            f"the text has {len(text)} characters; a formula has at most {MAX_LENGTH}"
        )
    return _Reader(text).formula()


class _Reader:
    """One pass over the text, one token ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.start = 0
        self.token = ""
        self._next_start = 0
        self._advance()

    def formula(self) -> Formula:
        sign = 1
        if self.token == "-":
            sign = -1
            self._advance()
        name, start = self.token, self.start
        if not name.isidentifier():
            raise self._error(f"expected sum(...) or mean(...), found {_shown(name)}", start)
        try:
            reduction = check_reduction(name)
        except FormulaError as error:
            raise self._error(str(error), start) from None
        self._advance()
        self._expect("(", f"after {name}")
        expression = self._expression(1)
        self._expect(")", f"to close {name}(")
        if self.token:
            raise self._error(f"expected the end of the formula, found {_shown(self.token)}")
        return Formula(expression, reduction, sign)

    def _expression(self, level: int) -> Expression:
        name, start = self.token, self.start
        if level > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels; shorten the formula", start)
        if not name.isidentifier():
            raise self._error(f"expected a statistic or an operation, found {_shown(name)}", start)
        if name not in STATISTICS and name not in UNARIES and name not in BINARIES:
            known = [*STATISTICS, *UNARIES, *BINARIES]
            hint = (
                "the sum over blocks stands outermost only"
                if name in REDUCTIONS
                else (did_you_mean(name, known))
            )
            raise self._error(f"unknown name {name!r}; {hint}", start, unknown=True)
        self._advance()
        if name in STATISTICS:
            return Leaf(name)
        self._expect("(", f"after {name}")
        first = self._expression(level + 1)
        if name in UNARIES:
            self._expect(")", f"to close {name}(, which takes one operand")
            return Apply(name, first)
        self._expect(",", f"in {name}(, which takes two operands")
        second = self._expression(level + 1)
        self._expect(")", f"to close {name}(, which takes two operands")
        return Combine(name, first, second)

    def _expect(self, token: str, why: str) -> None:
        if self.token != token:
            raise self._error(f"expected {token!r} {why}, found {_shown(self.token)}")
        self._advance()

    def _advance(self) -> None:
        space = _SPACE.match(self.text, self._next_start)
        self.start = space.end() if space else self._next_start
        match = _TOKEN.match(self.text, self.start)
        if match is None and self.start < len(self.text):
            raise self._error(f"unexpected character {self.text[self.start]!a}")
        self.token = match.group() if match else ""
        self._next_start = self.start + len(self.token)

    def _error(
        self, message: str, position: int | None = None, unknown: bool = False
    ) -> FormulaError:
        where = self.start if position is None else position
        kind = UnknownPrimitiveError if unknown else FormulaError
        return kind(f"at character {where}: {message}", where)


def _shown(token: str) -> str:
    """The token for a message: short, quoted, or the end of the text."""
    if not token:
        return "the end of the text"
    return repr(token if len(token) <= 40 else token[:40] + "...")

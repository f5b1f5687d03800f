"""The tokens of a formula's text, one ahead, with positions for error messages."""

from __future__ import annotations

import re

from primitives.errors import FormulaError, UnknownPrimitiveError
from primitives.formula import COLUMN_NAME

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|[(),\-]", re.ASCII)
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

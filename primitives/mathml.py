r"""Formulas as MathML Core: the LaTeX of `primitives.latex`, read by a small whitelist reader.

A primitive declares its notation once, as a LaTeX template; a primitive that somebody adds has its
MathML from it. Commands that are not known are set as upright names, text is escaped, and nothing
but the elements named here is ever written.
"""

from __future__ import annotations

import re
from html import escape

from primitives.formula import Formula
from primitives.latex import to_latex

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\S", re.ASCII)
_IDENTIFIERS = {
    "theta": "θ", "varphi": "φ", "eta": "η", "sigma": "σ", "alpha": "α", "beta": "β", "mu": "μ",
    "lambda": "λ", "varnothing": "∅", "infty": "∞", "pi": "π",
    "ell": "ℓ",
}  # fmt: skip
_OPERATORS = {"cdot": "·", "odot": "⊙", "times": "×", "pm": "±", "le": "≤", "ge": "≥"}
_CHARACTERS = {"-": "−", "*": "∗"}
_FENCES = {"(": "(", ")": ")", "[": "[", "]": "]", "|": "|", r"\|": "‖", r"\{": "{", r"\}": "}"}

# What a bracket must grow with; browsers leave gaps around one that may grow and need not.
_TALL = ("<mfrac>", "<msqrt>", "<munderover>")


def to_mathml(formula: Formula, with_name: bool = True) -> str:
    """The formula as a `<math>` element; without its name, only what is right of the equals sign.

    >>> from primitives.parser import parse
    >>> to_mathml(parse("sum(W)"), with_name=False)[-81:]
    '<msub><mi>θ</mi><mi>W</mi></msub><mo stretchy="false">)</mo></mrow></mrow></math>'
    """
    text = to_latex(formula)
    shown = text if with_name else text.split(" = ", 1)[1]
    return f'<math alttext="{escape(str(formula))}">{_Reader(shown).row()}</math>'


class _Reader:
    """One pass over the tokens of a LaTeX text."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        self.place = 0

    def row(self) -> str:
        """Everything up to what closes this group."""
        parts = []
        while self.peek() not in ("", "}", r"\right"):
            parts.append(self._with_scripts())
        return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.place += 1
        return token

    def _with_scripts(self) -> str:
        is_sum = self.peek() == r"\sum"
        base = self._atom()
        scripts: dict[str, str] = {}
        while self.peek() in ("_", "^"):
            where = self.take()
            scripts[where] = self._atom()
        name = {"_": "sub", "^": "sup", "_^": "subsup"}.get("".join(sorted(scripts, reverse=True)))
        if name is None:
            return base
        if is_sum:
            name = {"sub": "under", "sup": "over", "subsup": "underover"}[name]
        inside = "".join(scripts[where] for where in ("_", "^") if where in scripts)
        return f"<m{name}>{base}{inside}</m{name}>"

    def _atom(self) -> str:
        token = self.take()
        if token == "{":
            inside = self.row()
            self.take()
            return inside
        if token == r"\left":
            return self._fenced()
        if token.startswith("\\"):
            return self._command(token[1:])
        if token[:1].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{escape(token)}</mi>"
        return f"<mo>{escape(_CHARACTERS.get(token, token))}</mo>"

    def _fenced(self) -> str:
        left = self.take()
        inside = self.row()
        self.take()  # \right
        grows = any(tall in inside for tall in _TALL)
        return f"<mrow>{_fence(left, grows)}{inside}{_fence(self.take(), grows)}</mrow>"

    def _command(self, name: str) -> str:
        if name == "frac":
            return f"<mfrac>{self._atom()}{self._atom()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self._atom()}</msqrt>"
        if name == "overline":
            return f'<mover accent="true">{self._atom()}<mo stretchy="true">¯</mo></mover>'
        if name == "operatorname":
            return _function(self._letters())
        if name == "mathrm":
            return f"<mi>{escape(self._letters())}</mi>"
        if name == ",":
            return '<mspace width="0.17em"></mspace>'
        if name == "sum":
            return "<mo>∑</mo>"
        if name in _IDENTIFIERS:
            return f"<mi>{_IDENTIFIERS[name]}</mi>"
        if name in _OPERATORS:
            return f"<mo>{_OPERATORS[name]}</mo>"
        return _function(name)

    def _letters(self) -> str:
        """The characters of the group that follows, its inner braces and escapes left out."""
        letters, level = [], 0
        while self.peek():
            token = self.take()
            level += {"{": 1, "}": -1}.get(token, 0)
            if level == 0:
                break
            letters.append("" if token in "{}" else token.removeprefix("\\"))
        return "".join(letters)


def _fence(token: str, grows: bool) -> str:
    shown = escape(_FENCES.get(token, token))
    return f"<mo>{shown}</mo>" if grows else f'<mo stretchy="false">{shown}</mo>'


def _function(name: str) -> str:
    return f"<mrow><mi>{escape(name)}</mi><mo>\N{FUNCTION APPLICATION}</mo></mrow>"

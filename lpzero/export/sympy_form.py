"""A formula as sympy text, and back.

The text is what sympy prints of the block's value on whole tensors, every guard written out.
Reading it never calls sympy on a stranger's text: `primitives.symbolic` builds the sympy
expression anew from the formula, and the text is parsed against a list of allowed names and run
on made-up networks, where it must score as the formula does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero.errors import InputError
from lpzero.export import trial
from lpzero.export.exporter import Exporter
from lpzero.export.record import Exported
from lpzero.export.sympy_text import FormText
from lpzero.export.untrusted import read_text
from primitives import naive
from primitives.formula import Formula
from primitives.parser import parse

_MARK = "# lpzero-sympy 1"
_FORMULA = re.compile(r"# formula: (.+)")
_CONVENTIONS = """\
# The value of one block on whole tensors; a score is the {reduction} over blocks times {sign:+d}.
# A J G H W S stand for one tensor each; block_mean is the mean over a block's tensors of each
# tensor's mean; total, average, least are over a tensor; spread and reach its standard deviation
# and max - min (infinite where only rounding noise); softmax and log_softmax run along axis 0;
# contraction is x y if the inner sizes agree, x y' if the widths do, else the product of means;
# add_matrices and its kin are x + y and so on if the shapes agree, else that of the means;
# first_that_holds(condition, value, ..., otherwise) is a Piecewise.
# The engine keeps {limit} elements of a tensor and rescales sums to the true size."""


def write(exported: list[Exported]) -> str:
    """The text of a file with one form."""
    from primitives.symbolic import to_sympy

    if len(exported) != 1:
        raise InputError(f"a sympy form is of one formula, {len(exported)} were chosen")
    formula, limit = exported[0].formula, exported[0].options.limit
    if exported[0].softmax_axis != "first":
        raise InputError("a sympy form has its softmax along axis 0, this formula along the last")
    told = _CONVENTIONS.format(
        reduction=formula.reduction, sign=formula.sign, limit="all" if limit is None else limit
    )
    text = f"{_MARK}\n# formula: {formula}\n{told}\n{to_sympy(formula)}\n"
    try:
        read(text)
    except InputError:
        raise InputError(
            f"{formula} has no sympy form with its scores: sympy folds a part of it to a constant,"
            " whose shape is lost"
        ) from None
    return text


@dataclass(frozen=True, slots=True)
class Form:
    """A formula and the text of its sympy form, which says the same."""

    formula: Formula
    text: FormText

    @property
    def expression(self) -> Any:
        """The sympy expression of a block's value."""
        from primitives.symbolic import to_sympy

        return to_sympy(self.formula)

    def score(self, blocks: Sequence[naive.Block]) -> float:
        """The score on blocks of whole tensors, computed from the text."""
        values = [self.text.value(block) for block in blocks]
        total = sum(values)
        mean = total / len(values) if self.formula.reduction == "mean" else total
        return self.formula.sign * mean


def load(path: str | Path) -> Form:
    """The form in a file."""
    return read(read_text(Path(path)), str(path))


def read(text: str, where: str = "the text") -> Form:
    """The form in a text: parsed against the list of names, and compared with its formula."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != _MARK:
        raise InputError(f"{where} is no sympy form of ours; its first line is {_MARK!r}")
    named = [found[1] for line in lines if (found := _FORMULA.fullmatch(line.strip()))]
    if len(named) != 1:
        raise InputError(f"{where} names {len(named)} formulas, expected one line '# formula: ...'")
    body = " ".join(line for line in lines if not line.startswith("#"))
    form = Form(parse(named[0]), FormText(body, where))
    mine = [form.score(network) for network in trial.blocks(None)]
    if not trial.agree(mine, trial.scores(form.formula, limit=None)):
        raise InputError(f"{where}: the form does not score as its formula does")
    return form


EXPORTER = Exporter("sympy", "one formula as sympy text", lambda found, _: write(found.entries))

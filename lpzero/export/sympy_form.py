"""A formula as sympy text, and back.

The text is what sympy prints of the block's value on whole tensors, every guard written out; of a
formula beyond the paper's form, what it prints of the whole score.
Untrusted text is never passed to sympy: `primitives.symbolic` builds the sympy expression from the
formula, and the text is parsed against a list of allowed names and evaluated on synthetic networks,
where it must score as the formula does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from typing import Any

from lpzero.errors import InputError
from lpzero.export import trial
from lpzero.export.exporter import Exporter
from lpzero.export.record import Exported, is_papers
from lpzero.export.sympy_text import FormText
from lpzero.export.untrusted import read_text
from primitives import naive
from primitives.formula import Formula
from primitives.network import NetworkValues, as_network
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
_OF_A_SCORE = """\
# The whole score on whole tensors; a larger one is better. sum and mean are over all blocks, inner
# over all but the last (of a single block half of it); last, first, embedding and head are the
# value there; params, width, ffn and heads are sizes of a position; other names are columns.
"""


def write(exported: list[Exported]) -> str:
    """The text of a file with the sympy form of one formula."""
    if len(exported) != 1:
        raise InputError(f"a sympy form contains one formula, but {len(exported)} were chosen")
    formula, limit = exported[0].formula, exported[0].options.limit
    _check_columns(formula)
    text = (
        f"{_MARK}\n# formula: {formula}\n{_conventions(formula, limit)}\n{_expression(formula)}\n"
    )
    try:
        read(text)
    except InputError:
        raise InputError(
            f"{formula} has no sympy form with its scores: sympy folds a part of it to a constant,"
            " whose shape is lost"
        ) from None
    return text


def _conventions(formula: Formula, limit: int | None) -> str:
    """The conventions, as comments."""
    kept = "all" if limit is None else limit
    if is_papers(formula):
        return _CONVENTIONS.format(reduction=formula.term.reduction, sign=formula.sign, limit=kept)
    _, *of_tensors = _CONVENTIONS.splitlines(keepends=True)
    return _OF_A_SCORE + "".join(of_tensors).format(limit=kept)


def _expression(formula: Formula) -> Any:
    """The sympy expression of a block's value, or of a whole score."""
    from primitives.symbolic import block_form, to_sympy

    return block_form(formula.term) if is_papers(formula) else to_sympy(formula)


def _check_columns(formula: Formula) -> None:
    for name in formula.columns:
        if not name.isidentifier() or iskeyword(name):
            raise InputError(
                f"a sympy form cannot hold the column {name!r}: it is not a plain word"
            )


@dataclass(frozen=True, slots=True)
class Form:
    """A formula and the equivalent text of its sympy form."""

    formula: Formula
    text: FormText

    @property
    def expression(self) -> Any:
        """The sympy expression of a block's value; beyond the paper's form, of the whole score."""
        return _expression(self.formula)

    def score(
        self,
        network: NetworkValues | Sequence[naive.Block],
        columns: Mapping[str, float] | None = None,
    ) -> float:
        """The score on a network, or blocks, of whole tensors, computed from the text."""
        whole = as_network(network)
        if not is_papers(self.formula):
            return self.text.score(whole, columns or {})
        values = [self.text.value(block) for block in whole.blocks]
        total = sum(values)
        mean = total / len(values) if self.formula.term.reduction == "mean" else total
        return self.formula.sign * mean


def load(path: str | Path) -> Form:
    """The form in a file."""
    return read(read_text(Path(path)), str(path))


def read(text: str, where: str = "the text") -> Form:
    """The form in a text: parsed against the list of names, and compared with its formula."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != _MARK:
        raise InputError(f"{where} is not an lpzero sympy form; expected the first line {_MARK!r}")
    named = [found[1] for line in lines if (found := _FORMULA.fullmatch(line.strip()))]
    if len(named) != 1:
        raise InputError(f"{where} names {len(named)} formulas, expected one line '# formula: ...'")
    body = " ".join(line for line in lines if not line.startswith("#"))
    formula = parse(named[0])
    _check_columns(formula)
    form = Form(formula, FormText(body, where, None if is_papers(formula) else formula.columns))
    tried = zip(trial.networks_with_ends(None), trial.columns(formula.columns), strict=True)
    mine = [form.score(network, columns) for network, columns in tried]
    if not trial.agree(mine, trial.scores(form.formula, limit=None)):
        raise InputError(f"{where}: the form does not score as its formula does")
    return form


EXPORTER = Exporter("sympy", "one formula as sympy text", lambda found, _: write(found.entries))

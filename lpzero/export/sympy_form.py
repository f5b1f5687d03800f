"""A formula as sympy text, and back.

The text is what sympy prints of the whole score on whole tensors, every guard written out. It is
for people and for sympy; the file carries its formula in a comment, and reading it takes that.
"""

from __future__ import annotations

import re
from keyword import iskeyword
from pathlib import Path

from lpzero.errors import InputError
from lpzero.export import synthetic_networks
from lpzero.export.fields import read_text
from lpzero.export.record import Exported, Exporter, Formulas, Provenance
from primitives.errors import TensorError
from primitives.parser import parse

MARK = "# lpzero-sympy 1"
_FORMULA = re.compile(r"# formula: (.+)")
_TEXT = """\
{mark}
# formula: {formula}
# The whole score on whole tensors; a larger one is better. sum and mean are over all blocks, inner
# over all but the last (of a single block half of it); last, first, embedding and head are the
# value there; params, width, ffn and heads are sizes of a position; other names are columns.
# A J G H W S stand for one tensor each; block_mean is the mean over a block's tensors of each
# tensor's mean; total, average, least are over a tensor; spread and reach its standard deviation
# and max - min (infinite where only rounding noise); softmax and log_softmax run along axis 0;
# contraction is x y if the inner sizes agree, x y' if the widths do, else the product of means;
# add_matrices and its kin are x + y and so on if the shapes agree, else that of the means;
# first_that_holds(condition, value, ..., otherwise) is a Piecewise.
# The engine keeps {limit} elements of a tensor and rescales sums to the true size.
{expression}
"""


def write(exported: list[Exported]) -> str:
    """The text of a file with the sympy form of one formula."""
    if len(exported) != 1:
        raise InputError(f"a sympy form contains one formula, but {len(exported)} were chosen")
    from primitives.symbolic import (
        score_sympy,  # imports sympy, which is slow
        to_sympy,
    )

    formula, limit = exported[0].formula, exported[0].options.limit
    for name in formula.columns:
        if not name.isidentifier() or iskeyword(name):
            raise InputError(
                f"a sympy form cannot hold the column {name!r}: it is not a plain word"
            )
    expression = to_sympy(formula)
    networks = synthetic_networks.network_values(None)
    columns = synthetic_networks.columns(formula.columns)
    expected = synthetic_networks.scores(formula, None)
    try:
        scores = [
            None if score is None else score_sympy(expression, network, values)
            for score, network, values in zip(expected, networks, columns, strict=True)
        ]
    except TensorError:
        scores = []
    if not synthetic_networks.agree(scores, expected):
        raise InputError(
            f"{formula} has no sympy form with its scores: sympy folds a part of it to a constant,"
            " whose shape is lost"
        )
    kept = "all" if limit is None else limit
    return _TEXT.format(mark=MARK, formula=formula, limit=kept, expression=expression)


def load(path: str | Path) -> Formulas:
    """The formula that the file carries; its sympy text is neither parsed nor run."""
    place = Path(path)
    lines = [line.strip() for line in read_text(place).splitlines()]
    if not lines or lines[0] != MARK:
        raise InputError(f"{place} is not an lpzero sympy form; expected the first line {MARK!r}")
    texts = [match[1] for line in lines if (match := _FORMULA.fullmatch(line))]
    if len(texts) != 1:
        raise InputError(f"{place} has {len(texts)} lines '# formula: ...', expected one")
    return Formulas([Exported(place.stem, parse(texts[0]), Provenance("file"))])


EXPORTER = Exporter(
    "sympy", "one formula as sympy text", lambda selection, _: write(selection.entries)
)

"""The intermediate form of an exported formula, and the declaration of the formats that write it.

A record contains no date and no path, so that equal campaigns give equal files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero import files
from lpzero.errors import InputError
from lpzero.export import synthetic_networks
from lpzero.options import options
from lpzero.sketches.sketch import SketchOptions
from lpzero.version import VERSION
from primitives.errors import FormulaError
from primitives.expressions import drop_dead
from primitives.formula import Formula
from primitives.pruning import check
from spaces.declarations import declared

if TYPE_CHECKING:
    from lpzero.export.source import Selection
    from lpzero.scores.predictor import Predictor
    from spaces.base import Space
    from spaces.minibatch import Minibatch

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Batch:
    """The inputs that networks of a space run on, with a description of how they are drawn."""

    space: str
    version: int
    shape: tuple[int, ...]
    inputs: str


@dataclass(frozen=True, slots=True)
class Figures:
    """How a formula ranks one table; each mapping is from a part of the table to a number.

    `rho_ci` is the bootstrap 95% interval. A missing test figure means test was not evaluated.
    """

    table: str
    space: str
    target: str
    digest: str
    split_seed: int | None  # None: fitness rows were drawn from the whole table
    n: Mapping[str, int] = field(default_factory=dict)
    rho: Mapping[str, float] = field(default_factory=dict)
    rho_ci: Mapping[str, Pair] = field(default_factory=dict)
    rho_given_params: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a formula comes from; campaign fields are None for any other source."""

    source: str
    engine: str = VERSION
    campaign: str | None = None  # the digest of its configuration
    method: str | None = None
    seed: int | None = None
    chosen_on: str | None = None
    id: int | None = None
    generation: int | None = None
    figures: tuple[Figures, ...] = ()


@dataclass(frozen=True, slots=True)
class Exported:
    """A formula with everything that its scores depend on, and where it comes from.

    `trial` holds its scores on `synthetic_networks`, which every reader recomputes.
    """

    name: str
    formula: Formula
    provenance: Provenance
    options: SketchOptions = field(default_factory=SketchOptions)
    batches: tuple[Batch, ...] = ()
    trial: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        check_terms(self.formula)
        if not self.trial:
            object.__setattr__(self, "trial", synthetic_networks.scores(self.formula))


def check_terms(formula: Formula) -> None:
    """Raise FormulaError if a term is disconnected or reads what networks do not have there."""
    for term in formula.terms:
        if drop_dead(term.expression) is None:
            raise FormulaError(f"every branch of {term} is disconnected; connect one")
        if check(Formula.of_base(term), ("not-at-ends",)) is not None:
            raise FormulaError(f"{term} reads what the {term.reduction} of a network has not")


@dataclass(frozen=True, slots=True)
class ExportedPredictor:
    """A predictor with everything that its scores depend on: the space, and the sketches' options.

    Values of networks are averaged over `n_seeds` seeds, those of the options and the next ones.
    """

    predictor: Predictor
    space: str
    options: SketchOptions
    n_seeds: int = 1


@dataclass(frozen=True, slots=True)
class Formulas:
    """What a file holds; `ensemble` is the name of the proxy that they are the members of.

    A `predictor` is of the only formula.
    """

    entries: list[Exported]
    ensemble: str | None = None
    predictor: ExportedPredictor | None = None


def batch_of(space: Space[Any], chosen: Minibatch | None = None) -> Batch:
    """How the space draws its inputs, or the chosen ones."""
    from spaces.base import Space as Plain

    if type(space).batch is not Plain.batch:
        inputs = "as the space draws them"
    elif space.reads_text:
        inputs = "bytes of the help topics of CPython, at places drawn from the seed"
    else:
        inputs = f"token ids below {space.vocabulary}, Zipf, drawn from the seed"
    if chosen is not None and chosen.corpus is not None:
        inputs = f"bytes of the corpus with SHA-256 {chosen.corpus.digest}, drawn from the seed"
    shape = space.batch_shape if chosen is None else chosen.shape(space)
    return Batch(space.name, space.version, tuple(shape), inputs)


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of a format that has none."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """A module `NAME_form` declares one as `EXPORTER`, and `lpzero export --to NAME` writes it.

    `write` returns the text of the selected formulas. `options` is a dataclass of settings
    (`lpzero.options`) that only this format has; `write` gets an instance of it.
    """

    name: str
    help: str
    write: Callable[[Selection, Any], str]
    options: type[Any] = NoOptions


# The other modules of this package, whose source exported modules contain, may need torch.
EXPORTERS: dict[str, Exporter] = {
    exporter.name: exporter
    for exporter in declared(
        "lpzero.export",
        [str(Path(__file__).parent)],
        "EXPORTER",
        lambda module: module.name.endswith("_form"),
    )
}


def export(selection: Selection, form: str, **given: Any) -> str:
    """The text of the formulas in that format; `given` are options that only this format has."""
    if form not in EXPORTERS:
        raise InputError(f"unknown form {form!r}; use one of {', '.join(EXPORTERS)}")
    if not selection.entries:
        raise InputError("no formula was selected for export")
    for name in given:
        owners = [other for other in EXPORTERS if name in _flags(other)]
        if form not in owners:
            flag = name if not owners else _flags(owners[0])[name]
            raise InputError(f"{flag} is for --to {' or '.join(owners) or 'nothing'}, not {form}")
    return EXPORTERS[form].write(selection, EXPORTERS[form].options(**given))


def _flags(form: str) -> dict[str, str]:
    """The options that only this format has: field and spelling."""
    return {entry.name: entry.flag for entry in options(EXPORTERS[form].options)}


def write_file(path: Path, text: str, force: bool = False) -> None:
    """Write the file atomically; an existing file is replaced only with `force`."""
    if "\0" in str(path) or path.is_dir():
        raise InputError(f"{str(path)!a} is not a file name; give --out a file name")
    if (path.exists() or path.is_symlink()) and not force:
        raise InputError(f"{path} exists; choose another --out, or give --force")
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {path.parent}; create it first")
    files.write_text(path, text)

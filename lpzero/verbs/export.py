"""export: Export a formula as a file: code, mathematics or data."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.export.record import EXPORTERS
from lpzero.options import (
    FORMS,
    NETWORKS,
    OneOf,
    Option,
    Place,
    Switch,
    Text,
    Whole,
    argument,
    given_of,
    option,
    shared_options,
)
from lpzero.verbs import Outcome, Screen
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from lpzero.export.record import Formulas

_FORMS = "; ".join(f"{name}: {form.help}" for name, form in EXPORTERS.items())
logger = logging.getLogger(__name__)


def _form_options() -> list[Option]:
    """The options of every form."""
    entries = shared_options({name: form.options for name, form in EXPORTERS.items()})
    return [replace(entry, panel=FORMS) for entry in entries]


EXAMPLES = (
    "lpzero export runs/nano-gpt2 --to python --out proxy.py",
    "lpzero export 'sum(abs(W))' --to latex",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Export the winner of a campaign, or any other formula, as a file.

    From a run's directory the winner is exported, unless --top, --all, --formula or --ensemble is
    given.
    """

    source: str = argument("DIR|FILE|FORMULA|NAME")
    to: str | None = option(None, f"The form. {_FORMS}.  [required]", OneOf("form", EXPORTERS))
    out: str | None = option(None, "The output file.  [default: stdout]", Place())
    force: bool = option(False, "Overwrite an existing file.", Switch())
    top: int | None = option(
        None, "Export this many formulas of the hall of fame, best first.", Whole(1)
    )
    everything: bool = option(False, "Export the whole hall of fame.", Switch(), "--all")
    formula: str | None = option(
        None, "Export one formula of the hall of fame.", Text("PLACE|id:NUMBER")
    )
    name: str | None = option(None, "The name of the exported formula or ensemble.", Text())
    ensemble: bool = option(
        False,
        "Export formulas as one proxy, the mean of their ranks: those of --top or --all, else the"
        " ensemble that a campaign reports.",
        Switch(),
    )
    exact: bool = option(
        False, "Score on whole tensors instead of the engine's sketches.", Switch(), panel=NETWORKS
    )
    settings: dict[str, Any] = given_of(_form_options)


def run(request: Request, screen: Screen) -> Outcome:
    """The text of the file; it is written to `out` if that is given."""
    from lpzero.export import Choice, export, select
    from lpzero.export.fields import check_text
    from lpzero.export.record import write_file
    from lpzero.export.source import exact

    if request.to is None:
        raise InputError(f"no form given: --to one of {', '.join(EXPORTERS)}")
    top, everything, formula = request.top, request.everything, request.formula
    n_choices = (top is not None) + everything + (formula is not None)
    if n_choices > 1:
        raise InputError("--top, --all and --formula exclude each other; give only one")
    is_reported = request.ensemble and not n_choices
    choice = Choice(top, everything, formula, is_reported)
    selection = select(request.source, choice, _named_formulas)
    for remark in selection.remarks:
        logger.warning("%s", remark)
    entries = selection.entries
    ensemble = selection.ensemble or ("ensemble" if request.ensemble else None)
    if ensemble is not None and len(entries) < 2:
        raise InputError("an ensemble has at least two members, but one formula was chosen")
    if request.name is not None and ensemble is not None:
        ensemble = check_text(request.name, "--name")
    elif request.name is not None:
        if len(entries) != 1:
            raise InputError(f"--name is for one formula, but {len(entries)} were chosen")
        entries = [replace(entries[0], name=check_text(request.name, "--name"))]
    if request.exact:
        entries = exact(entries)
    chosen = replace(selection, entries=entries, ensemble=ensemble)
    text = export(chosen, request.to, **request.settings)
    if request.out is not None:
        write_file(user_path(request.out), text, request.force)
    return Outcome(
        {"form": request.to, "file": request.out, "text": text},
        {"text": text if request.out is None else ""},
    )


def _named_formulas(name: str) -> Formulas:
    from lpzero.proxies.lookup import named_formulas  # loads torch

    return named_formulas(name)

"""train: Train architectures of a space as a table, or one supernet of them."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.options import (
    SUPERNET,
    Option,
    Place,
    Switch,
    Text,
    Whole,
    argument,
    given_of,
    group,
    option,
    options,
)
from lpzero.runs.layout import JOURNAL, TABLE
from lpzero.runs.run import FINISHED, STOPPED, Kind, Line, n_lines, nested
from lpzero.verbs import Outcome, Screen, groups
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from lpzero.runs.config import StoredConfig
    from spaces.training.recipes import Plan

KIND = Kind(
    "table build",
    read="lpzero.training.table_build:read",
    page="lpzero.report.training_page:build_content",
    follow="lpzero.training.table_build:LiveBuild",
    line=f"{__name__}:line",
)
_FILE = ".json"


def _supernet_options() -> list[Option]:
    """The options of one-shot training; --steps is one of the command already."""
    from lpzero.supernet.one_shot import SupernetSettings  # loads torch

    entries = []
    for entry in options(SupernetSettings):
        if entry.name != "steps":
            text = f"{entry.help}.  [default: {entry.default}; for --supernet]"
            entries.append(dataclasses.replace(entry, help=text, default=None))
    return entries


EXAMPLES = (
    "lpzero train nano-gpt2 --n 32 --out table.json --jobs 2",
    "lpzero train nano-autoformer --supernet --out runs/supernet",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Train architectures of SPACE and write them as a table.

    SPACE is a nano space, or one of your own with a `train` function, my_module:SPACE. With
    --supernet, train one supernet of the SPACE. The same command continues a
    run that was stopped.
    """

    space: str = argument("SPACE|MODULE:NAME", is_code=True)
    out: str | None = option(
        None,
        "The run's directory, or the table's file, TABLE.json; the run is then in TABLE.run."
        "  [default: runs/train-SPACE]",
        Place(),
    )
    n_archs: int | None = option(
        None,
        "The number of architectures.  [default: the plan's; of a space of your own 128]",
        Whole(2),
        "--n",
    )
    seeds: int | None = option(
        None,
        "The number of trainings whose mean is a target; some architectures get twice as many, for"
        " the noise of targets.  [default: the plan's; of a space of your own 1]",
        Whole(1),
    )
    steps: int | None = option(
        None, "The number of training steps.  [default: the recipe's]", Whole(1)
    )
    supernet: bool = option(False, "Train one supernet of the SPACE instead.", Switch())
    dataset: str | None = option(
        None,
        "characters, digits (needs scikit-learn) or text.  [for --supernet]",
        Text(),
        panel=SUPERNET,
    )
    weights: str | None = option(
        None,
        "Start from this file of weights: safetensors, or a checkpoint of AutoFormer's or PreNAS's"
        " code.  [for --supernet]",
        Place(),
        panel=SUPERNET,
    )
    select: str | None = option(
        None,
        "The preferred architectures: the JSON output of `lpzero search SPACE --loop prenas`, or a"
        " list.  [default: selected here; for --supernet]",
        Place(),
        panel=SUPERNET,
    )
    settings: dict[str, Any] = given_of(_supernet_options)
    work: groups.LongRun = group(groups.LongRun)
    where: groups.Where = group(groups.Where)


def kind(request: Request) -> Kind:
    """The kind of run that the request starts."""
    from lpzero.verbs import supernet

    return supernet.KIND if request.supernet else KIND


def run(request: Request, screen: Screen) -> Outcome:
    """The path of the table that was trained; with `supernet` the measures of its networks."""
    if request.supernet:
        from lpzero.verbs import supernet

        return supernet.run(request, screen)
    for name in ("dataset", "weights", "select", *request.settings):
        if request.settings.get(name, getattr(request, name, None)) is not None:
            raise InputError(f"--{name.replace('_', '-')} is for --supernet")
    from lpzero import files
    from lpzero.training.table_build import build_table
    from spaces.untrusted import read_regular

    start = time.perf_counter()
    plan = _plan(request)
    asked = user_path(request.out or Path("runs", f"train-{plan.name}"))
    is_file = asked.suffix == _FILE
    folder = asked.with_suffix(".run") if is_file else asked
    label = screen.label(f"training {plan.name}")
    path = build_table(plan, folder, request.where.workers, label, lock=request.work.lock)
    if is_file:
        files.write_bytes(asked, read_regular(path, follow_links=False))
        path = asked
    seconds = round(time.perf_counter() - start, 3)
    return Outcome({"table": str(path), "n": plan.n_archs, "seconds": seconds})


def _plan(request: Request) -> Plan:
    """The space's own training, or the recipe of the nano table of that name."""
    from spaces.training.recipes import own_plan, plan_named
    from spaces.user_modules import is_address, named_space

    seeds = request.seeds
    if is_address(request.space) or named_space(request.space) is not None:
        own = own_plan(request.space, request.n_archs, seeds)
        if own is None:
            raise InputError(
                f"{request.space} has no training: give lpzero.space(..., train=my_train), a"
                " function of an architecture and a seed"
            )
        if request.steps is not None:
            raise InputError("--steps is for nano tables; your own train decides its steps")
        return own
    plan = plan_named(request.space)
    if seeds is not None:
        most = max(plan.n_repeated_seeds, 2 * seeds)
        plan = dataclasses.replace(plan, n_seeds=seeds, n_repeated_seeds=most)
    if request.n_archs is not None:
        repeated = min(plan.n_repeated, request.n_archs)
        plan = dataclasses.replace(plan, n_archs=request.n_archs, n_repeated=repeated)
    if request.steps is not None:
        recipe = dataclasses.replace(plan.recipe, steps=request.steps)
        plan = dataclasses.replace(plan, recipe=recipe)
    return plan


def line(config: StoredConfig) -> Line:
    """The build in a list."""
    name = str(nested(config.request, "plan", "name") or "")
    is_finished = (config.folder / TABLE).is_file()
    done = n_lines(config.folder / JOURNAL)
    return Line(FINISHED if is_finished else STOPPED, name, f"{done:,} trainings")

"""exhaust: Judge every formula of the paper's space on a table."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.exhaust.results import Query
from lpzero.exhaust.run import KIND as NAME
from lpzero.exhaust.run import ExhaustSettings
from lpzero.options import FOLDER, FORMER, JUDGEMENT, Switch, Whole, argument, group, option
from lpzero.runs.layout import RESULT, SHARDS
from lpzero.runs.run import (
    FINISHED,
    STOPPED,
    Kind,
    Line,
    n_files,
    read_file,
    tables,
    verdict_in_brief,
)
from lpzero.scores.floor import PERMUTATIONS
from lpzero.statistics import OURS
from lpzero.verbs import Outcome, Screen, groups
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from lpzero.runs.config import StoredConfig

KIND = Kind(
    NAME,
    read="lpzero.exhaust.record:read",
    page="lpzero.report.formula_page:content",
    follow="lpzero.exhaust.record:LiveExhaustion",
    line=f"{__name__}:line",
)


def permutations() -> int:
    """The field of the number of permutations of the floor."""
    return option(
        PERMUTATIONS,
        "How often the search of products is repeated on permuted targets, to show what it fits to"
        " noise; 0 turns it off.",
        Whole(0),
        panel=JUDGEMENT,
    )


EXAMPLES = (
    "lpzero exhaust nano-gpt2 --unaries 1 --jobs 2",
    "lpzero exhaust nano-gpt2 --terms 2",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Judge every formula of the paper's space on TABLE: chosen on train, reported on test.

    An interrupted run continues with the same command. Once a run is finished, the same command
    with other filters (--by, --using, --forward-only, ...) only reads its measures. With --terms 2
    the filters are --by and --top, with --unaries 2 as well --top alone.
    """

    table: Any = argument("TABLE")
    settings: ExhaustSettings = group(ExhaustSettings)
    split_seed: int = groups.split_seed()
    out: str | None = option(
        None, "The run's directory.  [default: runs/exhaust-TABLE-...]", FOLDER
    )
    query: Query = group(Query)
    forward_only: bool = option(
        False, "Same as --without GJ: no statistics that need gradients.", Switch(), panel=FORMER
    )
    permutations: int = permutations()
    file: groups.NetworkTable = group(groups.NetworkTable)
    networks: groups.Statistics = group(groups.Statistics)
    running: groups.Running = group(groups.Running)
    directory: groups.Directory = group(groups.Directory)
    weights_seed: int = groups.weights_seed()


def run(request: Request, screen: Screen) -> Outcome:
    """The best formulas and what they are compared with; also in the run's directory."""
    import lpzero.exhaust as engine
    from lpzero.exhaust.report import floors
    from lpzero.exhaust.run import exhaustive_config
    from lpzero.runs.directory import RunDirectory
    from lpzero.scores.floor import check_permutations
    from lpzero.scores.formula_rivals import best_count
    from lpzero.sketches.builder import Builder, sketches
    from lpzero.sketches.store import Store
    from primitives.statistics import gradient_statistics
    from spaces.tables import split

    start = time.perf_counter()
    check_permutations(request.permutations)
    running, query = request.running, request.query
    if request.forward_only:
        query = replace(query, without=tuple(sorted({*query.without, *gradient_statistics()})))
    settings = replace(
        request.settings,
        workers=running.workers,
        progress=screen.progress,
        lock=request.directory.lock,
        memory=running.memory or request.settings.memory,
    )
    table = request.file.load_networks(request.table, running.tables_folder)
    sketch = request.networks.sketch(request.weights_seed)
    parts = split(table, request.split_seed)
    folder = user_path(request.out or _default_folder(request, table.name))
    config = exhaustive_config(table, parts, settings, sketch)
    directory = RunDirectory(folder, config, True, lock=settings.lock)
    directory.stored()  # before sketches are extracted, which may take long
    builder = Builder(
        sketch,
        Store(running.folder),
        settings.workers,
        running.device,
        label=screen.label("sketches"),
        is_lazy=True,
    )
    first = sketches(table, builder)
    other = replace(sketch, seed=sketch.seed + 1, batch_seed=sketch.batch_seed + 1)
    label = screen.label("sketches, other seed")
    second = sketches(table, replace(builder, options=other, label=label))
    measured = engine.exhaust(table, first, parts, folder, settings, sketch)
    count = best_count(table, parts.train)
    result = engine.report(table, parts, measured, settings, query, count, second)
    result |= {
        "permutations": request.permutations,
        "floor": floors(table, parts, measured[0], request.permutations, settings),
    }
    sheet = engine.scores(table, parts, measured[1], result, settings.workers)
    seconds = time.perf_counter() - start
    with directory:
        directory.write_result(result, seconds, sheet)
    return Outcome({**result, "out": str(folder), "seconds": round(seconds, 3)})


def _default_folder(request: Request, table: str) -> Path:
    settings, networks = request.settings, request.networks
    name = f"exhaust-{table}"
    name += "-upstream" if request.file.upstream_dims else ""
    name += f"-{settings.unaries}"
    name += "-terms2" if settings.terms == 2 else ""
    name += "-same" if settings.same_statistic else ""
    name += f"-batch{networks.batch}" if networks.batch else ""
    name += f"-length{networks.length}" if networks.length else ""
    name += f"-{Path(networks.corpus).stem}" if networks.corpus else ""
    name += f"-{Path(networks.tokenizer).stem}" if networks.tokenizer else ""
    name += "" if networks.definitions in (None, OURS) else f"-{networks.definitions}"
    name += f"-split{request.split_seed}"
    return Path("runs", name + (f"-seed{request.weights_seed}" if request.weights_seed else ""))


def line(config: StoredConfig) -> Line:
    """The exhaustive run in a list."""
    result, names = read_file(config, RESULT, []), tables(config.request)
    progress = f"{n_files(config.folder / SHARDS, '.npz'):,} shards"
    if result is None:
        return Line(STOPPED, names, progress)
    return Line(FINISHED, names, progress, verdict_in_brief(result))

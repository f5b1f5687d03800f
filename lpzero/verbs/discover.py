"""discover: Search for the formula that best ranks a table."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.discover.settings import PRESETS, Settings
from lpzero.errors import InputError
from lpzero.options import (
    CLUSTER,
    FOLDER,
    FORMER,
    JUDGEMENT,
    NETWORKS,
    PAPERS,
    SEED,
    OneOf,
    Option,
    Repeated,
    Switch,
    Whole,
    argument,
    given_of,
    group,
    option,
    with_presets,
)
from lpzero.runs.layout import HISTORY, JOURNAL, RESULT
from lpzero.runs.run import (
    FINISHED,
    STOPPED,
    Kind,
    Line,
    last_record,
    last_row,
    named_number,
    nested,
    read_file,
    tables,
    verdict_in_brief,
    whole,
)
from lpzero.verbs import Outcome, Screen, groups
from lpzero.verbs.exhaust import permutations

if TYPE_CHECKING:
    from lpzero.runs.config import StoredConfig
    from lpzero.trackers import Tracker

KIND = Kind(
    "campaign",
    read="lpzero.discover.record:read",
    page="lpzero.report.formula_page:content",
    follow="lpzero.discover.record:LiveCampaign",
    line=f"{__name__}:line",
)
SEARCHED = "no result yet"  # every generation is done: its winner is being judged, or never was
_CAN_CONTINUE = ("the time limit", "asked to stop")  # reasons to stop before the last generation
logger = logging.getLogger(__name__)


def _settings_options() -> list[Option]:
    return with_presets(Settings, PRESETS)


EXAMPLES = (
    "lpzero discover nano-gpt2",
    "lpzero discover my.csv --target accuracy --columns-only",
    "lpzero discover my.csv --target accuracy --space my_space.py:SPACE",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Search for the formula that best ranks the architectures of TABLE.

    TABLE is one of `lpzero tables`, several, or a file of your own (CSV, JSON lines, Parquet): a
    row per architecture, with a --target. Formulas read untrained networks of --space or, with
    --columns-only, the other columns. Test rows are read once, for the report.
    """

    tables: tuple[Any, ...] = argument("TABLE...", ())
    out: str | None = option(
        None, "The campaign's directory.  [default: a new one in runs]", FOLDER
    )
    resume: bool = groups.resume()
    preset: str | None = option(
        None,
        "The settings to start from; other options override them. paper is Algorithm 1 of LPZero."
        "  [default: default]",
        OneOf("preset", PRESETS),
        panel=PAPERS,
    )
    settings: dict[str, Any] = given_of(_settings_options)
    file: groups.NetworkTable = group(groups.NetworkTable)
    forward_only: bool = option(
        False, "Exclude the statistics that need gradients, G and J.", Switch(), panel=FORMER
    )
    is_random: bool = option(False, "Same as --method random.", Switch(), "--random", panel=FORMER)
    time_limit: float | None = groups.time_limit()
    split_seed: int | None = option(
        None, "The seed of the train/valid/test split.  [default: 0]", SEED, panel=JUDGEMENT
    )
    weights_seed: int | None = option(
        None,
        "The seed of untrained networks and batches.  [default: 0]",
        SEED,
        panel=NETWORKS,
        former=("sketch_seed",),
    )
    splits: int | None = option(
        None,
        "A table without networks: also search on this many splits, and print the medians over"
        " their test rows.  [default: 20 for at most 2,000 rows, else 0]",
        Whole(0),
        panel=JUDGEMENT,
    )
    permutations: int = permutations()
    track: tuple[str, ...] = option(
        (),
        "Write every generation for another tool, tensorboard or mlflow; repeatable.",
        Repeated("TOOL:FOLDER"),
        is_local=True,
        panel=CLUSTER,
    )
    work: groups.LongRun = group(groups.LongRun)
    networks: groups.Statistics = group(groups.Statistics)
    running: groups.Running = group(groups.Running)


def out(request: Request) -> str:
    """The campaign's directory: the one that was asked for, or a new one in `runs`."""
    from spaces.tables.row_files import plain

    if request.out is not None:
        return str(request.out)
    if request.resume:
        raise InputError("no --out given; give the directory of the campaign to continue")
    if not request.tables:
        raise InputError(
            "no table given: lpzero discover TABLE, one of `lpzero tables` or a file of your own"
        )
    stem = "-".join(plain(Path(name).stem) for name in request.tables)
    stem += f"-{plain(request.file.task)}" if request.file.task else ""
    for number in count(1):
        folder = Path("runs", stem if number == 1 else f"{stem}-{number}")
        if not folder.exists():
            break
    logger.warning("the campaign is stored in %s; --out names another directory", folder)
    return str(folder)


def run(request: Request, screen: Screen) -> Outcome:
    """The winner with its numbers on train, valid and test, and what it is compared with."""
    from lpzero.discover.discovery import Campaign

    start = time.perf_counter()
    running = request.running
    with _trackers(request.track) as trackers:
        campaign = Campaign(
            list(request.tables) or None,
            preset=request.preset,
            out=request.out,
            resume=request.resume,
            data=running.tables_folder,
            space=request.file.chosen_space,
            cache=running.cache,
            device=running.device,
            jobs=running.workers,
            split_seed=request.split_seed,
            sketch_seed=request.weights_seed,
            batch=request.networks.minibatch,
            definitions=request.networks.definitions,
            reading=request.file.reading,
            proxy_scores=_ProxyScores(request, screen),
            time_limit=request.time_limit,
            permutations=request.permutations,
            callbacks=[*screen.watch, *trackers],
            progress=screen.progress,
            lock=request.work.lock,
            **_settings(request),
        )
        _note_files(request)
        campaign.search()
        for remark in (*campaign.remarks_, *campaign.table_remarks):
            logger.warning("%s", remark)
        if screen.stops():
            raise KeyboardInterrupt  # the generation is finished and saved
        result = {**campaign.judge().result_, "out": request.out}
        result |= _held_out(campaign, request, screen)
    seconds = round(time.perf_counter() - start, 3)
    return Outcome(result | {"seconds": seconds}, {"campaign": campaign})


@contextmanager
def _trackers(given: Sequence[str]) -> Iterator[list[Tracker]]:
    """The trackers of --track, closed at the end."""
    from lpzero.trackers import tracker

    with ExitStack() as stack:
        yield [stack.enter_context(closing(tracker(text))) for text in given]


def _held_out(campaign: Any, request: Request, screen: Screen) -> dict[str, Any]:
    """Medians over splits, of a table without networks."""
    from lpzero.discover.held_out import MOST_ROWS, SPLITS, held_out

    table, splits = campaign.tables[0], request.splits
    if len(campaign.tables) > 1 or table.space is not None:
        if splits:
            raise InputError("--splits is for one table without networks")
        return {}
    if splits is None:
        splits = SPLITS if len(table) <= MOST_ROWS else 0
    if not splits:
        return {}
    label, workers = screen.label("splits"), request.running.workers
    return {"held_out": held_out(table, campaign.settings, splits, workers, label)}


def _note_files(request: Request) -> None:
    """Say of files of rows without a space that their columns are combined."""
    from spaces.tables.row_files import ENDINGS

    for name in request.tables:
        is_of_rows = str(name).lower().endswith(ENDINGS)
        if is_of_rows and not request.settings.get("columns_only") and request.file.space is None:
            logger.warning(
                "%s names no space, so formulas combine its columns; --space my_module:SPACE builds"
                " networks",
                name,
            )


@dataclass(frozen=True)
class _ProxyScores:
    """The scores of the proxies of --terms-from; torch is imported when there are some."""

    request: Request
    screen: Screen

    def __call__(self, table: Any, names: Any, options: Any) -> Any:
        from lpzero.proxies import Context
        from lpzero.proxies.ranking import ProxyColumns

        running = self.request.running
        context = Context(
            device=running.device,
            folder=running.folder,
            workers=running.workers,
            label=self.screen.label(table.name),
        )
        return ProxyColumns(context)(table, names, options)


def _settings(request: Request) -> dict[str, Any]:
    """The fields of the settings that were given."""
    from primitives.statistics import gradient_statistics

    changes = dict(request.settings)
    if request.forward_only:
        allowed = changes.get("statistics", PRESETS["default"].statistics)
        changes["statistics"] = tuple(s for s in allowed if s not in gradient_statistics())
    if request.is_random:
        if changes.get("method", "random") != "random":
            raise InputError(f"--random and --method {changes['method']}: give only one")
        changes["method"] = "random"
    return changes


def line(config: StoredConfig) -> Line:
    """The campaign in a list."""
    result, names = read_file(config, RESULT, []), tables(config.request)
    last = last_record(config.folder / JOURNAL)
    tried = whole(last.get("id"), -1) + 1
    generation, asked = last.get("generation"), nested(config.request, "settings", "generations")
    progress = f"generation {whole(generation):,} of {whole(asked):,}" if last else "generation -"
    if result is not None and result.get("tried") == tried:
        is_stopped = result.get("stopped") in _CAN_CONTINUE and whole(generation) < whole(asked)
        return Line(STOPPED if is_stopped else FINISHED, names, progress, verdict_in_brief(result))
    row = last_row(config.folder / HISTORY)
    state = SEARCHED if last and whole(generation) >= whole(asked, 1) else STOPPED
    return Line(state, names, progress, named_number("fitness", row.get("fitness")))

"""rank: Correlate proxies with the targets of a table."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.options import (
    FOLDER,
    JUDGEMENT,
    PAPERS,
    Repeated,
    Switch,
    Whole,
    argument,
    group,
    option,
)
from lpzero.runs.run import Kind
from lpzero.statistics import OURS
from lpzero.verbs import Outcome, Screen, groups
from spaces.tables.source import DEPTH_WIDTH
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from lpzero.proxies import Context, Proxy

KIND = Kind(
    "ranking",
    read="lpzero.proxies.ranking:read",
    page="lpzero.report.ranking_page:content",
)
logger = logging.getLogger(__name__)
EXAMPLES = (
    "lpzero rank nano-gpt2 --proxy snip --proxy depth",
    "lpzero rank nano-gpt2 --proxy 'sum(abs(mul(W, G)))' --seeds 3",
    "lpzero rank my.csv --target accuracy",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Correlate proxies with the targets of TABLE, best first; results are cached.

    A table without networks, by name or as a file (--target, --task), has its columns ranked.
    """

    table: Any = argument("TABLE")
    proxies: tuple[str, ...] = option(
        (),
        "A proxy, rank-mean(A, B), a formula, an exported file or a run's directory; repeatable."
        "  [default: all that apply, except the -released ones and those that run on more inputs:"
        " v-pca, w-pca, swap, az-]",
        Repeated("NAME|FORMULA|FILE"),
        "--proxy",
    )
    released: bool = option(
        False, "Without --proxy: also rank the authors' released recipes.", Switch(), panel=PAPERS
    )
    seeds: int = option(1, "The number of weight seeds to compare.", Whole(1))
    batches: int = option(1, "The number of batches to compare.", Whole(1))
    loss: str = groups.loss()
    split_seed: int = groups.split_seed()
    within: str = groups.within()
    exact: bool = option(
        False,
        "Also score formulas on whole tensors, and correlate both scores.",
        Switch(),
        panel=JUDGEMENT,
    )
    chunk: int | None = groups.chunk()
    out: str | None = option(None, "Save the ranking and its page here.", FOLDER)
    directory: groups.Directory = group(groups.Directory)
    networks: groups.Statistics = group(groups.Statistics)
    file: groups.NetworkTable = group(groups.NetworkTable)
    running: groups.Running = group(groups.Running)
    weights_seed: int = groups.weights_seed()

    def context(self, label: str | None = None) -> Context:
        """How networks are run."""
        from lpzero.proxies import Context

        return Context(
            self.weights_seed,
            self.weights_seed,
            self.loss,
            self.running.device,
            self.chunk,
            self.running.folder,
            self.running.workers,
            label=label,
            batch=self.networks.minibatch,
            definitions=self.networks.definitions or OURS,
        )


def run(request: Request, screen: Screen) -> Outcome:
    """The rows of the proxies, best first; they are saved in `out` if it is given."""
    from lpzero.discover.table_sources import has_no_networks
    from lpzero.proxies.lookup import column_proxy, find
    from lpzero.proxies.ranking import Ranking, rank_columns, rank_with_scores, ranked_by_default

    start = time.monotonic()
    is_named = isinstance(request.table, (str, Path))
    # Columns of a table without networks are proxies by name, too.
    has_networks = not (is_named and has_no_networks(str(request.table), request.file.chosen_space))
    proxies: Sequence[Proxy] = [find(text) for text in request.proxies] if has_networks else []
    table = request.file.load(request.table, request.running.tables_folder)
    ranking, scores = None, dict[str, Any]()
    if table.space is None:
        columns = [column_proxy(text, table) for text in request.proxies]
        rows, proxies = rank_columns(table, columns, request.split_seed), columns
        for remark in table.remarks:
            logger.warning("%s", remark)
    else:
        proxies = proxies or ranked_by_default(table.space, request.released)
        ranking = Ranking(
            request.context(screen.label(table.name)),
            request.seeds,
            request.batches,
            request.split_seed,
            request.exact,
            screen.is_brief and request.out is None,
            request.within,
        )
        rows, scores = rank_with_scores(table, proxies, ranking)
    page = None
    if request.out is not None:
        page = _saved(table, request, rows, scores, time.monotonic() - start)
    for remark in _seen_test_rows(table, proxies, request.split_seed):
        logger.warning("%s", remark)
    return Outcome(rows, {"table": table, "ranking": ranking, "page": page})


def _saved(
    table: Any, request: Request, rows: list[Any], scores: dict[str, Any], seconds: float
) -> Path:
    """Write the ranking and its page, and return the page."""
    from lpzero.proxies.ranking import ranking_config, result_of
    from lpzero.report import write
    from lpzero.runs.directory import RunDirectory
    from lpzero.runs.run import open_run

    batch, definitions = request.networks.minibatch, request.networks.definitions
    names = ("split_seed", "seeds", "batches", "loss", "exact", "chunk", "released")
    options = {"seed": request.weights_seed} | {name: getattr(request, name) for name in names}
    options |= {} if definitions in (None, OURS) else {"definitions": definitions}
    options |= {} if request.within == DEPTH_WIDTH else {"within": request.within}
    space = request.file.chosen_space if table.space is not None else None
    asked = str(request.table) if isinstance(request.table, (str, Path)) else table.name
    options |= {"asked": asked, "space": space, "proxies": list(request.proxies)}
    options |= {"batch": None if batch is None else batch.to_json()}
    folder, config = user_path(str(request.out)), ranking_config(table, options)
    result, sheet = result_of(table, request.split_seed, rows, scores)
    with RunDirectory(folder, config, True, lock=request.directory.lock) as directory:
        directory.write_result(result, seconds, sheet)
    return write(open_run(folder)).page


def _seen_test_rows(table: Any, proxies: Sequence[Proxy], split_seed: int) -> Iterator[str]:
    """A remark for each proxy chosen on another split, which has seen test rows of this one."""
    from lpzero.proxies.ranking import chosen_on

    for proxy in proxies:
        seed = chosen_on(proxy, table).get(table.name)
        if seed not in (None, split_seed):
            yield (
                f"{proxy.name} was chosen on split {seed} of {table.name}, so it has seen test rows"
                f" of split {split_seed}; use --split-seed {seed}"
            )

"""The verbs as functions: `rank`, `search` and `load_table`; results print as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spaces
from lpzero.discover.table_sources import TableSources
from lpzero.notebook.rows import Rows
from lpzero.parallel import Workers
from lpzero.sketches.store import default_folder
from lpzero.statistics.definitions import OURS
from spaces.minibatch import Minibatch
from spaces.tables import load_any
from spaces.tables.readers import Reading

if TYPE_CHECKING:
    from lpzero.proxies import Context
    from spaces.base import Space
    from spaces.tables import ColumnTable, Table

_RANKED = ("proxy", "n", "rho", "rho_ci", "tau", "rho_given_params", "rho_within")


def load_table(
    name: str | Path,
    *,
    space: str | None = None,
    target: str | None = None,
    smaller_is_better: bool = False,
    ids: str | None = None,
    task: str | None = None,
    data: str | Path | None = None,
) -> Any:
    """The table of that name, or in that file: CSV, JSON lines, Parquet, or a trained table.

    A file's rows are architectures of `space` (a name or my_module:SPACE); without one, columns of
    numbers. `target` is the column to rank by.
    """
    reading = Reading(target, smaller_is_better, ids, task)
    sources = TableSources(lambda one, of: load_any(one, data, of), reading)
    return sources.load(str(name), space)


def context(
    *,
    seed: int = 0,
    loss: str = "auto",
    device: str = "cpu",
    chunk: int | None = None,
    cache: str | Path | None = None,
    jobs: int = 1,
    progress: bool = False,
    batch: Minibatch | None = None,
    definitions: str = OURS,
) -> Context:
    """How networks are run, from the options that `rank`, `search` and `predict` share."""
    from lpzero.proxies import Context

    folder = Path(cache).expanduser() if cache is not None else default_folder()
    label = "networks" if progress else None
    workers = Workers(jobs)
    return Context(seed, seed, loss, device, chunk, folder, workers, label, batch, definitions)


def rank(
    table: str | Path | Table | ColumnTable,
    proxies: str | Sequence[str] | None = None,
    *,
    data: str | Path | None = None,
    split_seed: int = 0,
    **options: Any,
) -> Rows:
    """A row per proxy against the table's targets, best first.

    Without proxies all that apply are ranked, but for released recipes and those that run on more
    inputs than the others (see docs/proxies.md).
    A proxy is a name, a formula, an exported file or a run's directory. Options: seed, loss,
    device, chunk, cache, jobs, progress, batch, definitions.
    """
    from lpzero.proxies import find
    from lpzero.proxies.columns import column_proxy, rank_columns
    from lpzero.proxies.ranking import Ranking, ranked_by_default
    from lpzero.proxies.ranking import rank as compare

    loaded: Any = load_table(table, data=data) if isinstance(table, (str, Path)) else table
    texts = [proxies] if isinstance(proxies, str) else list(proxies or ())
    if loaded.space is None:
        of_columns = [column_proxy(text, loaded) for text in texts]
        return Rows(rank_columns(loaded, of_columns, split_seed), _RANKED)
    found = [find(str(text)) for text in texts] or ranked_by_default(loaded.space)
    return Rows(compare(loaded, found, Ranking(context(**options), split_seed=split_seed)), _RANKED)


def search(
    space: str | Space[Any],
    proxy: str | None = None,
    loop: str | None = None,
    *,
    evaluator: str | None = None,
    table: str | Path | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    time_limit: float | None = None,
    bounds: dict[str, tuple[float | None, float | None]] | None = None,
    beyond_table: bool = False,
    data: str | Path | None = None,
    cache: str | Path | None = None,
    device: str = "cpu",
    jobs: int = 1,
    seed: int = 0,
    weights_seed: int = 0,
    **constants: Any,
) -> SearchResult:
    """The best architecture that a loop finds, guided by a proxy; defaults as `lpzero search`.

    `bounds` are the least and most of parameters, flops, ...; `constants` those of the loop.
    """
    from lpzero.search import Constraints, Request, Resources, defaults, evaluators, loops, run
    from spaces.user_modules import address_of

    made = spaces.get(space) if isinstance(space, str) else space
    kind = loops.get(loop or defaults.LOOP)
    named = None if table is None else str(table)
    root = None if data is None else str(data)
    if evaluator is None:
        alone = kind.by_proxy and named is None
        evaluator = evaluators.PROXY if alone else evaluators.default(made, named, root)
    is_inside = evaluator == evaluators.SURROGATE and not beyond_table
    wanted = address_of(made)
    if is_inside:
        own_table = named or evaluators.table_of(made)
        known = defaults.known_space(wanted, own_table)
        wanted, named = known, own_table if known != wanted else named
    request = Request(
        wanted,
        kind.name,
        proxy or defaults.proxy(made, kind) or "none",
        seed,
        evaluator,
        named,
        constraints=Constraints(bounds or {}),
        constants=constants,
        weights_seed=weights_seed,
        inside_table=is_inside,
    )
    folder = Path(cache).expanduser() if cache is not None else default_folder()
    around = Resources(data=root, cache=folder, device=device, jobs=jobs)
    where = None if out is None else Path(out).expanduser()
    return SearchResult(run(request, around, where, resume, time_limit).result)


class SearchResult(dict[str, Any]):
    """What a search found, as `lpzero search --format json` prints it."""

    @property
    def best_(self) -> dict[str, Any]:
        return dict(self["best"])

    @property
    def history_(self) -> Rows:
        """The trace: a row per architecture observed."""
        return Rows(self["trace"], ("step", "scored", "evaluations", "score", "target", "best"))

    def __repr__(self) -> str:
        best = self["best"]
        shown = {
            key: best[key] for key in ("target", "score", "parameters", "depth") if key in best
        }
        facts = ", ".join(f"{key} {value}" for key, value in shown.items())
        return f"{self['loop']} with {self['proxy']} on {self['space']}: {best['arch']} ({facts})"

    def _repr_html_(self) -> str:
        return Rows([self["best"]])._repr_html_()

"""stats: Extract the statistics of a table's networks, once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.options import NETWORKS, Switch, Text, Whole, argument, group, option
from lpzero.sketches.sketch import SketchOptions
from lpzero.verbs import Outcome, Screen, groups

if TYPE_CHECKING:
    from lpzero.sketches.store import Store
EXAMPLES = (
    "lpzero stats nano-gpt2 --jobs 2",
    "lpzero stats --list",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Extract the statistics of TABLE's networks; finished networks are skipped."""

    table: Any = argument("TABLE", None)
    elements: int = option(
        SketchOptions().limit or 0,
        "The number of elements kept per matrix.",
        Whole(1),
        panel=NETWORKS,
    )
    exact: bool = option(
        False, "Keep whole matrices; needs much disk space.", Switch(), panel=NETWORKS
    )
    loss: str = groups.loss()
    file: groups.TableFile = group(groups.TableFile)
    chunk: int | None = groups.chunk()
    retry_failed: bool = option(False, "Retry the architectures that failed before.", Switch())
    lists: bool = option(False, "List the contents of the cache instead.", Switch(), "--list")
    prune: str | None = option(
        None, "Remove 'stale' sketches, 'all', or those of a space.", Text("TEXT")
    )
    networks: groups.Statistics = group(groups.Statistics)
    running: groups.Running = group(groups.Running)
    weights_seed: int = groups.weights_seed()


def run(request: Request, screen: Screen) -> Outcome:
    """How many networks were sketched, or what is in the cache."""
    from lpzero.sketches.store import Store, listing, prune

    store = Store(request.running.folder)
    if request.prune is not None:
        n_files, n_bytes = prune(store, request.prune)
        return Outcome([{"cache": str(store.folder), "removed": n_files, "bytes": n_bytes}])
    if request.lists:
        return Outcome(listing(store), {"title": str(store.folder)})
    if request.table is None:
        raise InputError("no table given; name one of `lpzero tables`, or use --list")
    return _extract(request, store, screen)


def _extract(request: Request, store: Store, screen: Screen) -> Outcome:
    from lpzero.sketches.builder import Builder, build

    sketch = replace(
        request.networks.sketch(request.weights_seed),
        limit=None if request.exact else request.elements,
        loss=request.loss,
    )
    builder = Builder(
        sketch,
        store,
        request.running.workers,
        request.running.device,
        request.chunk,
        request.retry_failed,
        label=screen.label(str(request.table)),
    )
    table = request.file.load_networks(request.table, request.running.tables_folder)
    report, _ = build(table.space, table.archs, builder)
    failed = [{"id": table.ids[i], "reason": reason} for i, reason in report.failed.items()]
    row: dict[str, Any] = {
        "table": table.name,
        "space": table.space.name,
        "n": report.n,
        "built": report.built,
        "present": report.present,
        "failed": len(failed),
        "corrupt": report.corrupt,
        "bytes": report.bytes,
        "seconds": round(report.seconds, 3),
        "cache": str(store.folder),
    }
    if failed:
        screen.say(f"{len(failed)} failed; --retry-failed retries them:")
        for entry in failed:
            screen.say(f"  {entry['id']}: {entry['reason']}")
    return Outcome({**row, "failures": failed}, {"rows": [row]})

"""tables: List the tables, or fetch one."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lpzero.errors import InputError
from lpzero.options import Switch, argument, group, option
from lpzero.verbs import Outcome, Screen, groups

EXAMPLES = (
    "lpzero tables",
    "lpzero tables fetch gpt2-wt103 --data ~/tables",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """List the tables: size, whether present, target, licence.

    With `fetch NAME`, download and verify the table NAME into the folder of --data.
    """

    words: tuple[str, ...] = argument("fetch NAME", ())
    force: bool = option(False, "With fetch: replace existing files that differ.", Switch())
    where: groups.Data = group(groups.Data)


def run(request: Request, screen: Screen) -> Outcome:
    """A row per table, or the path of the one that was fetched."""
    from lpzero.downloads import fetch
    from spaces.tables import describe

    if not request.words and not request.force:
        return Outcome([asdict(entry) for entry in describe(request.where.tables_folder)])
    if len(request.words) != 2 or request.words[0] != "fetch":
        raise InputError("expected `lpzero tables` or `lpzero tables fetch NAME`")
    name = request.words[1]

    def progress(done: int, total: int | None) -> None:
        for watch in screen.watch:
            watch((done, total))

    fetched = fetch(name, request.where.tables_folder, force=request.force, progress=progress)
    state = "downloaded and verified" if fetched.downloaded else "already present and complete"
    return Outcome(
        {"name": name, "path": str(fetched.path), "downloaded": fetched.downloaded},
        {"lines": [f"{name}: {state}, {fetched.path}"]},
    )

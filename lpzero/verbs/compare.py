"""A comparison of searches over several seeds, which `lpzero search --compare` starts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.runs.layout import RESULT
from lpzero.runs.run import FINISHED, STOPPED, Kind, Line, list_of, nested, read_file, whole
from lpzero.verbs import Outcome, Screen
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from lpzero.runs.config import StoredConfig
    from lpzero.search.comparison import Comparison
    from lpzero.search.request import Request as SearchRequest
    from lpzero.verbs.search import Request

KIND = Kind(
    "comparison",
    read="lpzero.search.comparison:read",
    page="lpzero.report.search_page:comparison_content",
    follow="lpzero.search.comparison:LiveComparison",
    line=f"{__name__}:line",
)
_SEEDS = 20


def run(request: Request, screen: Screen) -> Outcome:
    """A row and a curve per loop and proxy; with `out` also as files."""
    from lpzero.search.comparison import compare
    from lpzero.verbs.search import resources

    for name in ("loops", "proxies"):
        if not getattr(request, name):
            raise InputError(f"--compare needs {name}: give --loop and --proxy")
    if request.seed is not None:
        raise InputError("--compare runs seeds 0 to N - 1: give --seeds N, not --seed")
    is_shown = screen.progress and sys.stderr.isatty()
    around = resources(request, "runs" if is_shown else None)
    arms = _every_request(request, screen)
    out = None if request.out is None else user_path(request.out)
    comparison = compare(arms, request.seeds or _SEEDS, around, out, request.resume)
    return Outcome(result_of(comparison, out))


def result_of(comparison: Comparison, out: Path | None) -> dict[str, Any]:
    """Rows and curves of a comparison; they are written to the directory if there is one."""
    from lpzero import files
    from lpzero.report import style
    from lpzero.report.drawn_chart import draw
    from lpzero.report.figures.convergence import search_curves

    result = comparison.to_json()
    if out is not None:
        files.write_csv(out / "curves.csv", result["curves"])
        files.write_csv(out / "comparison.csv", comparison.rows)
        target = result["evaluator"]["target"]
        figure = draw(search_curves(result["curves"], target, comparison.threshold))
        for form in ("pdf", "png"):
            style.save(figure, out / f"curves.{form}")
    return result


def _every_request(request: Request, screen: Screen) -> list[SearchRequest]:
    """Every loop with every proxy; a constant goes to the loops that have it."""
    from lpzero.search import loops
    from lpzero.verbs.search import complete, given

    asked = given(request)
    constants = asked.pop("constants")
    names_of = {loop: loops.names_of(loop) for loop in request.loops}
    for constant in constants:
        if not any(constant in names for names in names_of.values()):
            raise InputError(f"none of {', '.join(names_of) or 'no loops'} has {constant}")
    return [
        complete(
            {
                **asked,
                "loop": loop,
                "proxy": proxy,
                "constants": {k: v for k, v in constants.items() if k in names_of[loop]},
                "constraints": dict(asked["constraints"]),
            },
            request,
            screen,
        )
        for loop in request.loops
        for proxy in request.proxies
    ]


def line(config: StoredConfig) -> Line:
    """The comparison in a list; it may be begun again with more arms than its result has."""
    arms = list_of(config.request.get("arms"))
    rows = list_of((read_file(config, RESULT, []) or {}).get("rows"))
    asked = len(arms) * whole(config.request.get("seeds"))
    done = sum(whole(nested(row, "seeds")) for row in rows)
    space = str(nested(arms[0], "table") or nested(arms[0], "space") or "") if arms else ""
    progress = f"{len(arms):,} arms, {asked:,} searches"
    return Line(FINISHED if rows and done == asked else STOPPED, space, progress)

"""What `lpzero search` asks for and how its results are shown."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output

if TYPE_CHECKING:
    from lpzero.search import Request, Resources
    from lpzero.search.comparison import Comparison
    from lpzero.search.environment import Entry

COSTS = ("parameters", "decoder-parameters", "flops", "latency")
CONSTANTS = {
    "samples": (int, "Architectures drawn first (etas, random)."),
    "parents": (int, "Best observed that have mutants (etas)."),
    "mutants": (int, "Mutants scored per iteration (etas)."),
    "chosen": (int, "Mutants evaluated per iteration (etas)."),
    "iterations": (int, "Iterations (etas)."),
    "patience": (int, "Iterations without gain that end the search (etas)."),
    "probability": (float, "How often a field mutates (etas, regularised)."),
    "population": (int, "Members (trazor, regularised)."),
    "mutations": (int, "Mutants per step (trazor)."),
    "crossovers": (int, "Children per step (trazor)."),
    "steps": (int, "Steps (trazor)."),
    "inertia": (float, "How much of its velocity a block keeps: w (trazor)."),
    "gamma1": (float, "Pull of the best of the line (trazor)."),
    "gamma2": (float, "Pull of the best of all (trazor)."),
    "per-bin": (int, "Architectures preferred of each size (prenas)."),
    "margin": (int, "Parameters between sizes (prenas)."),
    "tournament": (int, "Members of which the best is mutated (regularised)."),
    "evaluations": (int, "Architectures evaluated (random, regularised)."),
}


def request(given: dict[str, Any]) -> Request:
    """The one search asked for; on resuming, what is not given is as it was."""
    from lpzero.search.storage import resumed, stored_request

    for name in ("loops", "proxies"):
        if len(given[name]) > 1:
            raise click.UsageError(f"several {name} were given: compare them with --compare")
    asked = _asked(given)
    for name, plural in (("loop", "loops"), ("proxy", "proxies")):
        if given[plural]:
            asked[name] = given[plural][0]
    found = stored_request(Path(given["out"])) if given["resume"] else None
    if found is None:
        return _made(asked, given)
    return resumed(Path(given["out"]), found, asked)


def requests(given: dict[str, Any]) -> list[Request]:
    """Every loop with every proxy; a constant goes to the loops that have it."""
    from lpzero.errors import InputError
    from lpzero.search import loops

    asked = _asked(given)
    constants = asked.pop("constants")
    known = {name: loops.names_of(name) for name in given["loops"]}
    for constant in constants:
        if not any(constant in names for names in known.values()):
            raise InputError(f"none of {', '.join(known) or 'no loops'} has {constant}")
    return [
        _made(
            {
                **asked,
                "loop": loop,
                "proxy": proxy,
                "constants": {k: v for k, v in constants.items() if k in known[loop]},
                "constraints": dict(asked["constraints"]),
            },
            given,
        )
        for loop in given["loops"]
        for proxy in given["proxies"]
    ]


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, under the names of a request."""
    same = ("space", "seed", "weights_seed", "evaluator", "table", "training_steps")
    asked = {name: given[name] for name in same if given[name] is not None}
    names = [name.replace("-", "_") for name in CONSTANTS]
    asked["constants"] = {name: given[name] for name in names if given[name] is not None}
    asked["constraints"] = {}
    for cost in COSTS:
        key = cost.replace("-", "_")
        bound = [given[f"min_{key}"], given[f"max_{key}"]]
        if bound != [None, None]:
            asked["constraints"][cost] = bound
    return asked


def _made(asked: dict[str, Any], given: dict[str, Any]) -> Request:
    import spaces
    from lpzero.search import Constraints, Request, evaluators, loops

    for name in ("space", "loop"):
        if name not in asked:
            raise click.UsageError(f"no {name} given: lpzero search SPACE --loop L --proxy P")
    space = spaces.get(asked["space"])
    loop = loops.get(asked["loop"])
    if "evaluator" not in asked:
        table = asked.get("table")
        alone = loop.by_proxy and table is None and not given["compare"]
        found = evaluators.PROXY if alone else evaluators.default(space, table, given["data"])
        asked["evaluator"] = found
    bounds = {cost: (low, high) for cost, (low, high) in asked.pop("constraints").items()}
    return Request(**asked, constraints=Constraints(bounds))


def resources(given: dict[str, Any], of: Request | None) -> Resources:
    """Where it runs, and what is shown on the way."""
    from lpzero.search import Resources
    from lpzero.sketches.store import default_folder

    quiet = given["quiet"]
    label = "runs" if of is None else "scoring"
    show = {} if quiet or of is None else {"show": _Line(of.loop, of.made_loop.last_step)}
    return Resources(
        data=given["data"],
        cache=Path(given["cache"]).expanduser() if given["cache"] else default_folder(),
        device=given["device"],
        jobs=given["jobs"],
        label=None if quiet or not sys.stderr.isatty() else label,
        **show,
    )


class _Line:
    """A line on stderr whenever a step is done or the best changes."""

    def __init__(self, loop: str, last: int | None) -> None:
        self.loop, self.last = loop, "" if last is None else f"/{last}"
        self.shown: tuple[Any, Any] = (None, None)

    def __call__(self, entry: Entry) -> None:
        if self.shown == (entry["step"], entry["best"]):
            return
        self.shown = entry["step"], entry["best"]
        best = "-" if entry["best"] is None else f"{entry['best']:.6g}"
        output.note(
            f"{self.loop} {entry['step']}{self.last}  scored {entry['scored']:,}"
            f"  evaluated {entry['evaluations']:,}  best {best}"
        )


def resume_command(given: dict[str, Any]) -> str:
    """How to go on with a search that was stopped."""
    words = ["lpzero", "search", "--out", str(given["out"]), "--resume"]
    for name in ("data", "cache"):
        if given[name]:
            words += [f"--{name}", str(given[name])]
    return shlex.join(words)


def print_result(result: dict[str, Any]) -> None:
    """The architecture, its size and cost, and the trace where it changes."""
    best = dict(result["best"])
    click.echo(json.dumps(best.pop("arch")))
    click.echo()
    outside = best.pop("outside_table", [])
    of = result["evaluator"]
    # Scores of formulas may be a millionth or a million.
    of_any_size = ("score", "best") if of["evaluator"] == "proxy" else ("score",)
    title = f"{result['loop']} with {result['proxy']}"
    output.print_rows([best], "table", title, of_any_size)
    click.echo()
    shown = ("step", "scored", "evaluations", "score", "target", "best")
    trace, before = [], object()
    for entry in result["trace"]:
        if entry["best"] != before or entry is result["trace"][-1]:
            trace.append({key: entry[key] for key in shown if key in entry})
        before = entry["best"]
    output.print_rows(trace, "table", "trace, where the best changes", of_any_size)
    error = f", cross-validated rmse {of['rmse']:.4g}, rho {of['rho']:.3f}" if "rmse" in of else ""
    source = f" of {of['table']}" if "table" in of else ""
    evaluated = f"{result['evaluations']:,} evaluated by {of['evaluator']}{source}{error}"
    if of["evaluator"] == "proxy":
        evaluated = "none evaluated, the proxy alone decided"
    click.echo(f"\n{result['scored']:,} scored, {evaluated}, {result['seconds']:.1f} s")
    if outside:
        click.echo(f"the surrogate's table reaches no such {', '.join(outside)}: target is a guess")


def print_comparison(found: Comparison, form: str, out: str | None) -> None:
    """The table of arms; curves go to the directory."""
    from lpzero.search.curves import curve_rows, draw

    curves = curve_rows(found.results)
    example = next(iter(found.results.values()))[0]["evaluator"]
    if out is not None:
        from lpzero import files
        from lpzero.report.figures import style

        files.write_csv(Path(out) / "curves.csv", curves)
        files.write_csv(Path(out) / "comparison.csv", found.rows)
        figure = draw(curves, example["target"], found.threshold)
        for form_ in ("pdf", "png"):
            style.save(figure, Path(out) / f"curves.{form_}")
    if form == "json":
        arms = {"threshold": found.threshold, "evaluator": example, "rows": found.rows}
        output.print_json({**arms, "curves": curves})
        return
    limit = "" if found.threshold is None else f"; the best 1% begin at {found.threshold:.6g}"
    output.print_rows(found.rows, "table", title=f"{example['target']}{limit}")
    if out is not None:
        click.echo(f"\ncurves and every run are in {out}")

"""`lpzero search SPACE --loop L --proxy P`: the best architecture a loop finds."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output

if TYPE_CHECKING:
    from lpzero.search import Request, Surroundings
    from lpzero.search.bench import Entry

_COSTS = ("parameters", "decoder-parameters", "flops", "latency")
_CONSTANTS = {
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
    "tournament": (int, "Members of which the best is mutated (regularised)."),
    "evaluations": (int, "Architectures evaluated (random, regularised)."),
}


def _bounds(command: Any) -> Any:
    for cost in reversed(_COSTS):
        unit = "milliseconds of one forward pass here, now" if cost == "latency" else cost
        for word in ("max", "min"):
            name = f"--{word}-{cost}"
            text = f"{'At most' if word == 'max' else 'At least'} this many {unit}."
            command = click.option(name, type=click.FloatRange(min=0), help=text)(command)
    return command


def _constants(command: Any) -> Any:
    for name, (kind, text) in reversed(_CONSTANTS.items()):
        command = click.option(f"--{name}", type=kind, help=text)(command)
    return command


@click.command()
@click.argument("space", required=False)
@click.option("--loop", "loops", multiple=True, help="etas, trazor, random or regularised.")
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="NAME|FORMULA|FILE",
    help="A proxy, rank-mean(A, B), a formula, an exported file, or none.",
)
@click.option(
    "--evaluator",
    help="table, surrogate, training or proxy.  [default: surrogate if a table is at hand]",
)
@click.option("--table", help="The table of the evaluator.  [default: the space's own]")
@click.option("--training-steps", type=click.IntRange(min=1), help="Shorter training.")
@_bounds
@_constants
@click.option("--out", type=click.Path(file_okay=False), help="Keep the search in this directory.")
@click.option("--resume", is_flag=True, help="Go on with the search in --out, if there is one.")
@click.option("--seed", type=int, help="The seed of the loop.  [default: 0]")
@click.option("--weights-seed", type=int, help="The seed of untrained networks.  [default: 0]")
@click.option("--quiet", is_flag=True, help="No progress.")
@output.running_options
@click.pass_context
def search(context: click.Context, /, **given: Any) -> None:
    """Search SPACE for the best architecture, guided by a proxy.

    Constants not given are the loop's paper's. An evaluator tells how good an architecture is;
    with `proxy` the proxy alone decides.
    """
    from lpzero.search import run

    if given["resume"] and not given["out"]:
        raise click.UsageError("--resume needs --out, the directory of the search to go on with")
    request = _request(given)
    around = _surroundings(given, request)
    try:
        outcome = run(request, around, _path(given["out"]), given["resume"])
    except KeyboardInterrupt:
        remedy = f"; go on with: {_resume_command(given)}" if given["out"] else ""
        output.note(f"stopped{remedy}")
        context.exit(output.INTERRUPTED)
    result = {**outcome.result, "seconds": round(outcome.seconds, 3)}
    if given["form"] == "json":
        output.print_json(result)
    else:
        _print(result)


def _request(given: dict[str, Any]) -> Request:
    """What is asked; on resuming, what is not given is as it was."""
    from lpzero.search import Request
    from lpzero.search.keeping import read_config

    found = read_config(Path(given["out"])) if given["resume"] else None
    asked = _asked(given)
    if found is not None:
        before = dict(found["request"])
        for part in ("constants", "constraints"):
            before[part] = {**before[part], **asked.pop(part)}
        if "proxy" in asked and asked["proxy"] != before["proxy"]:
            before.pop("definition")
        return Request.from_json({**before, **asked})
    for name in ("space", "loop"):
        if name not in asked:
            raise click.UsageError(
                f"no {name} given: lpzero search SPACE --loop LOOP --proxy PROXY"
            )
    return _with_defaults(asked, given)


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, under the names of a request."""
    same = ("space", "seed", "weights_seed", "evaluator", "table", "training_steps")
    asked = {name: given[name] for name in same if given[name] is not None}
    for name in ("loops", "proxies"):
        if len(given[name]) > 1:
            raise click.UsageError(f"several {name} were given: compare them with --compare")
    if given["loops"]:
        asked["loop"] = given["loops"][0]
    if given["proxies"]:
        asked["proxy"] = given["proxies"][0]
    asked["constants"] = {n: given[n] for n in _CONSTANTS if given[n] is not None}
    asked["constraints"] = {}
    for cost in _COSTS:
        key = cost.replace("-", "_")
        bound = [given[f"min_{key}"], given[f"max_{key}"]]
        if bound != [None, None]:
            asked["constraints"][cost] = bound
    return asked


def _with_defaults(asked: dict[str, Any], given: dict[str, Any]) -> Request:
    import spaces
    from lpzero.search import Constraints, Request, evaluators, loops

    space = spaces.get(asked["space"])
    loop = loops.get(asked["loop"])
    if "evaluator" not in asked:
        by_proxy = loop.by_proxy and "table" not in asked
        table = asked.get("table")
        found = evaluators.PROXY if by_proxy else evaluators.default(space, table, given["data"])
        asked["evaluator"] = found
    bounds = {cost: (low, high) for cost, (low, high) in asked.pop("constraints").items()}
    return Request(**asked, constraints=Constraints(bounds))


def _surroundings(given: dict[str, Any], request: Request) -> Surroundings:
    from lpzero.search import Surroundings
    from lpzero.store import default_folder

    cache = Path(given["cache"]).expanduser() if given["cache"] else default_folder()
    quiet = given["quiet"]
    return Surroundings(
        data=given["data"],
        cache=cache,
        device=given["device"],
        jobs=given["jobs"],
        label=None if quiet or not sys.stderr.isatty() else "scoring",
        **({} if quiet else {"show": _Line(request.loop, request.made_loop.last_step)}),
    )


class _Line:
    """A line on stderr whenever a step is done or the best changes."""

    def __init__(self, loop: str, last: int) -> None:
        self.loop, self.last = loop, last
        self.shown: tuple[Any, Any] = (None, None)

    def __call__(self, entry: Entry) -> None:
        if self.shown == (entry["step"], entry["best"]):
            return
        self.shown = entry["step"], entry["best"]
        best = "-" if entry["best"] is None else f"{entry['best']:.6g}"
        output.note(
            f"{self.loop} {entry['step']}/{self.last}  scored {entry['scored']:,}"
            f"  evaluated {entry['evaluations']:,}  best {best}"
        )


def _path(out: str | None) -> Path | None:
    return None if out is None else Path(out)


def _resume_command(given: dict[str, Any]) -> str:
    words = ["lpzero", "search", "--out", str(given["out"]), "--resume"]
    for name in ("data", "cache"):
        if given[name]:
            words += [f"--{name}", str(given[name])]
    return shlex.join(words)


def _print(result: dict[str, Any]) -> None:
    best = dict(result["best"])
    click.echo(json.dumps(best.pop("arch")))
    click.echo()
    output.print_rows([best], "table", title=f"{result['loop']} with {result['proxy']}")
    click.echo()
    shown = ("step", "scored", "evaluations", "score", "target", "best")
    trace, before = [], object()
    for entry in result["trace"]:
        if entry["best"] != before or entry is result["trace"][-1]:
            trace.append({key: entry[key] for key in shown if key in entry})
        before = entry["best"]
    output.print_rows(trace, "table", title="trace, where the best changes")
    of = result["evaluator"]
    error = f", cross-validated rmse {of['rmse']:.4g}, rho {of['rho']:.3f}" if "rmse" in of else ""
    source = f" of {of['table']}" if "table" in of else ""
    evaluated = f"{result['evaluations']:,} evaluated by {of['evaluator']}{source}{error}"
    if of["evaluator"] == "proxy":
        evaluated = "none evaluated, the proxy alone decided"
    click.echo(f"\n{result['scored']:,} scored, {evaluated}, {result['seconds']:.1f} s")

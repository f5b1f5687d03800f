"""`lpzero search SPACE --loop L --proxy P`: the best architecture a loop finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lpzero.cli import output, searching


def _bounds(command: Any) -> Any:
    for cost in reversed(searching.COSTS):
        unit = "milliseconds of one forward pass here, now" if cost == "latency" else cost
        unit = unit.replace("-", " ")
        for word in ("max", "min"):
            name = f"--{word}-{cost}"
            text = f"{'At most' if word == 'max' else 'At least'} this many {unit}."
            command = click.option(name, type=click.FloatRange(min=0), help=text)(command)
    return command


def _constants(command: Any) -> Any:
    for name, (kind, text) in reversed(searching.CONSTANTS.items()):
        command = click.option(f"--{name}", type=kind, help=text)(command)
    return command


@click.command()
@click.argument("space", required=False)
@click.option(
    "--loop",
    "loops",
    multiple=True,
    help="etas, trazor, prenas, random or regularised; repeatable with --compare.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="NAME|FORMULA|FILE",
    help="A proxy, rank-mean(A, B), a formula, an exported file, a run's directory, or none (a"
    " random number); repeatable with --compare.  [default: none; prenas: supernet-snip]",
)
@click.option(
    "--evaluator",
    help="table, surrogate, training or proxy.  [default: surrogate if a table is at hand, else"
    " proxy; trazor, prenas: proxy]",
)
@click.option("--table", help="The table of the evaluator.  [default: the space's own]")
@click.option("--training-steps", type=click.IntRange(min=1), help="Steps instead of the recipe's.")
@_bounds
@_constants
@click.option("--compare", is_flag=True, help="Every --loop with every --proxy, over seeds.")
@click.option("--seeds", type=click.IntRange(min=2), help="Seeds of --compare.  [default: 20]")
@click.option("--out", type=click.Path(file_okay=False), help="Keep the search in this directory.")
@click.option("--resume", is_flag=True, help="Go on with the search in --out, if there is one.")
@click.option("--seed", type=int, help="The seed of the loop.  [default: 0]")
@click.option("--weights-seed", type=int, help="The seed of untrained networks.  [default: 0]")
@click.option("--quiet", is_flag=True, help="No progress.")
@output.running_options
@click.pass_context
def search(context: click.Context, /, **given: Any) -> None:
    """Search SPACE for the best architecture, guided by a proxy.

    Constants not given are the loop's paper's, see docs/search.md. An evaluator tells how good an
    architecture is; with `proxy` the proxy alone decides.
    """
    if given["resume"] and not given["out"]:
        raise click.UsageError("--resume needs --out, the directory of the search to go on with")
    if given["seeds"] and not given["compare"]:
        raise click.UsageError("--seeds is for --compare; one search takes --seed")
    try:
        _compare(given) if given["compare"] else _search(given)
    except KeyboardInterrupt:
        again = "the same command with --resume" if given["compare"] else None
        again = again or searching.resume_command(given)
        output.note(f"stopped; go on with: {again}" if given["out"] else "stopped")
        context.exit(output.INTERRUPTED)


def _search(given: dict[str, Any]) -> None:
    from lpzero.search import run

    request = searching.request(given)
    around = searching.resources(given, request)
    outcome = run(request, around, _path(given["out"]), given["resume"])
    result = {**outcome.result, "seconds": round(outcome.seconds, 3)}
    if given["form"] == "json":
        output.print_json(result)
    else:
        searching.print_result(result)


def _compare(given: dict[str, Any]) -> None:
    from lpzero.search.comparison import compare

    for name in ("loops", "proxies"):
        if not given[name]:
            raise click.UsageError(f"--compare needs {name}: give --loop and --proxy")
    if given["seed"] is not None:
        raise click.UsageError("--compare runs seeds 0 to N - 1: give --seeds N, not --seed")
    around = searching.resources(given, None)
    arms = searching.requests(given)
    out = _path(given["out"])
    found = compare(arms, given["seeds"] or 20, around, out, given["resume"])
    searching.print_comparison(found, given["form"], given["out"])


def _path(out: str | None) -> Path | None:
    return None if out is None else Path(out)

"""`lpzero search SPACE`: the best architecture that a loop finds, guided by a proxy.

The requests are made in `search_request.py`, what is printed in `search_output.py`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output
from lpzero.cli.interruption import CODE, same_command
from lpzero.cli.search_output import StepLine, print_comparison, print_result
from lpzero.cli.search_request import (
    CONSTANTS,
    bound_options,
    constant_options,
    every_request,
    hf_space,
    one_request,
)
from lpzero.cli.settings_options import given_settings
from lpzero.search import evaluators
from lpzero.search.loops import LOOPS
from lpzero.search.networks import NETWORKS

if TYPE_CHECKING:
    from lpzero.search import Request, Resources

_USUAL_PROXIES = "".join(
    f"; {name}: {loop.usual_proxy}" for name, loop in LOOPS.items() if loop.usual_proxy is not None
)
_BY_PROXY = ", ".join(name for name, loop in LOOPS.items() if loop.by_proxy)


_jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="The number of parallel processes; it does not change the result.  [default: every core if"
    " the networks take long, else 1]",
)


@click.command()
@click.argument("space", required=False)
@click.option(
    "--hf",
    type=click.Path(dir_okay=False),
    metavar="SPACE.yaml",
    help="Search Hugging Face configurations: a file with choices for fields (see docs/search.md).",
)
@click.option(
    "--loop",
    "loops",
    multiple=True,
    help=f"One of {', '.join(LOOPS)}; repeatable with --compare.  [default: etas]",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="NAME|FORMULA|FILE",
    help="A proxy, rank-mean(A, B), a formula, an exported file, a run's directory, or none (a"
    " random number); repeatable with --compare.  [default: the engine's proxy for the space's"
    f" family{_USUAL_PROXIES}]",
)
@click.option(
    "--evaluator",
    help=f"One of {', '.join(evaluators.NAMES)}.  [default: surrogate if a table is present, else"
    f" proxy; {_BY_PROXY}: proxy]",
)
@click.option("--table", help="The table of the evaluator.  [default: the space's own]")
@click.option(
    "--beyond-table",
    is_flag=True,
    help="Let a surrogate predict outside the ranges of its table too.  [default: the search stays"
    " inside; with --compare it does not]",
)
@click.option(
    "--training-steps",
    type=click.IntRange(min=1),
    help="The number of training steps.  [default: the recipe's]",
)
@bound_options
@constant_options
@click.option(
    "--compare", is_flag=True, help="Run every --loop with every --proxy over several seeds."
)
@click.option(
    "--seeds", type=click.IntRange(min=2), help="The number of seeds for --compare.  [default: 20]"
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    help="Stop after this many seconds with the best so far; --resume continues.  [default: none]",
)
@click.option(
    "--watts",
    type=click.FloatRange(min=0, min_open=True),
    help="Also print the energy and the CO2 of these seconds on a machine that draws this many.",
)
@click.option("--out", type=click.Path(file_okay=False), help="Save the search in this directory.")
@click.option("--resume", is_flag=True, help="Continue the search in --out, if there is one.")
@click.option("--seed", type=int, help="The seed of the loop.  [default: 0]")
@click.option("--weights-seed", type=int, help="The seed of untrained networks.  [default: 0]")
@click.option(
    "--networks",
    type=click.Choice(NETWORKS),
    help="Networks that are quick to draw and score, or as `lpzero rank` has them, with the same"
    " scores.  [default: quick; those of a table as-ranked]",
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@output.no_lock_option
@output.batch_options
@partial(output.running_options, jobs_option=_jobs_option)
@click.pass_context
def search(context: click.Context, /, **given: Any) -> None:
    """Search SPACE for the best architecture, guided by a proxy.

    The default constants of a loop are those of its paper, where it gives them: see
    docs/search.md. The evaluator gives the target of an architecture; with `proxy`, only the
    proxy's score is used. SPACE alone is enough: `lpzero search nano-gpt2`.
    """
    if given["resume"] and not given["out"]:
        raise click.UsageError("--resume needs --out, the directory of the search to continue")
    if given["compare"] and given["time_limit"]:
        raise click.UsageError("--time-limit is for one search, not for --compare")
    if given["compare"] and given["watts"]:
        raise click.UsageError("--watts is for one search, not for --compare")
    if given["seeds"] and not given["compare"]:
        raise click.UsageError("--seeds is for --compare; use --seed for one search")
    given["constants"] = given_settings(context, CONSTANTS, given)
    if given["hf"]:
        given["space"] = hf_space(given)
    try:
        _compare(given) if given["compare"] else _search(given)
    except KeyboardInterrupt:
        compared = same_command(context, "--resume")
        again = compared if given["compare"] else _resume_command(given)
        output.note(f"stopped; continue with: {again}" if given["out"] else "stopped")
        context.exit(CODE)


def _search(given: dict[str, Any]) -> None:
    from lpzero.search import run
    from lpzero.search.footprint import Footprint

    asked = one_request(given)
    with _display(given, asked) as around:
        outcome = run(asked, around, _path(given["out"]), given["resume"], given["time_limit"])
    result = {**outcome.result, "seconds": round(outcome.seconds, 3)}
    cost = None if given["watts"] is None else Footprint(result["seconds"], given["watts"])
    if given["form"] == "json":
        output.print_json(result | ({} if cost is None else {"footprint": cost.to_json()}))
    else:
        print_result(result)
        if cost is not None:
            click.echo(str(cost))
    if "stopped_by" in result:
        again = f"; continue with: {_resume_command(given)}" if given["out"] else ""
        output.note(f"stopped by the {result['stopped_by']}{again}")


def _compare(given: dict[str, Any]) -> None:
    from lpzero.search.comparison import compare

    for name in ("loops", "proxies"):
        if not given[name]:
            raise click.UsageError(f"--compare needs {name}: give --loop and --proxy")
    if given["seed"] is not None:
        raise click.UsageError("--compare runs seeds 0 to N - 1: give --seeds N, not --seed")
    is_shown = sys.stderr.isatty() and not given["quiet"]
    around = _resources(given, "runs" if is_shown else None)
    arms = every_request(given)
    out = _path(given["out"])
    found = compare(arms, given["seeds"] or 20, around, out, given["resume"])
    print_comparison(found, given["form"], given["out"])


def _path(out: str | None) -> Path | None:
    return None if out is None else Path(out)


@contextmanager
def _display(given: dict[str, Any], request: Request) -> Iterator[Resources]:
    """What the search runs on, and one bar or, where stderr is no terminal, a line per step."""
    from dataclasses import replace

    from lpzero.parallel import whole_bar
    from lpzero.search.cost import most_scored
    from lpzero.search.scorer import n_passes

    if given["quiet"]:
        yield _resources(given, None)
        return
    loop = request.made_loop
    line = StepLine(request.loop, loop.last_step)
    around = _resources(given, "scoring" if sys.stderr.isatty() else None)
    around = replace(around, say=output.note)
    if not sys.stderr.isatty():
        yield replace(around, show=line.note)
        return
    total = most_scored(request)
    first = "fitting the surrogate" if request.evaluator == evaluators.SURROGATE else request.loop
    with whole_bar(first, total, 1 / max(1, n_passes(request.made_proxy))) as bar:
        yield replace(around, show=lambda entry: bar.reach(entry["scored"], line.text(entry)))


def _resources(given: dict[str, Any], label: str | None) -> Resources:
    """The resources to run on; scoring has a bar if it has a label."""
    from lpzero.search import Resources
    from lpzero.sketches.store import default_folder

    return Resources(
        data=given["data"],
        cache=Path(given["cache"]).expanduser() if given["cache"] else default_folder(),
        device=given["device"],
        jobs=given["jobs"],
        backend=given["backend"],
        scheduler=given["scheduler"],
        label=label,
        lock=not given["no_lock"],
    )


def _resume_command(given: dict[str, Any]) -> str:
    """The command that continues a stopped search."""
    from lpzero import plugins

    words = ["lpzero", "search", "--out", str(given["out"]), "--resume", *plugins.arguments()]
    for name in ("hf", "data", "cache"):
        if given[name]:
            words += [f"--{name}", str(given[name])]
    return shlex.join(words)

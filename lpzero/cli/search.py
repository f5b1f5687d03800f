"""`lpzero search SPACE`: the best architecture that a loop finds, guided by a proxy."""

from __future__ import annotations

import json
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
from lpzero.cli.settings_options import click_option, given_settings, shared_options
from lpzero.search import evaluators
from lpzero.search.constraints import COSTS, bound_option
from lpzero.search.loops import LOOPS
from lpzero.search.networks import NETWORKS

if TYPE_CHECKING:
    from lpzero.search import Request, Resources
    from lpzero.search.comparison import Comparison
    from lpzero.search.environment import Entry
    from spaces.base import Space

CONSTANTS = shared_options(LOOPS)
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


def _bounds(command: Any) -> Any:
    for cost in reversed(COSTS):
        unit = "milliseconds per forward pass on this machine" if cost == "latency" else cost
        unit = unit.replace("-", " ")
        for word in ("max", "min"):
            text = f"{'At most' if word == 'max' else 'At least'} this many {unit}."
            kind = click.FloatRange(min=0)
            command = click.option(bound_option(word, cost), type=kind, help=text)(command)
    return command


def _constants(command: Any) -> Any:
    for entry in reversed(CONSTANTS):
        command = click_option(entry, entry.help)(command)
    return command


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
@_bounds
@_constants
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
        given["space"] = _hf_space(given)
    try:
        _compare(given) if given["compare"] else _search(given)
    except KeyboardInterrupt:
        compared = same_command(context, "--resume")
        again = compared if given["compare"] else _resume_command(given)
        output.note(f"stopped; continue with: {again}" if given["out"] else "stopped")
        context.exit(CODE)


def _hf_space(given: dict[str, Any]) -> str:
    """The name under which the space of configurations is known from now on."""
    from lpzero import hf
    from spaces import addresses

    if given["space"]:
        raise click.UsageError("give a space or --hf, not both")
    space = hf.read_space(given["hf"])
    addresses.remember(str(given["hf"]), space)
    return space.name


def _search(given: dict[str, Any]) -> None:
    from lpzero.search import run
    from lpzero.search.footprint import Footprint

    asked = _request(given)
    with _display(given, asked) as around:
        outcome = run(asked, around, _path(given["out"]), given["resume"], given["time_limit"])
    result = {**outcome.result, "seconds": round(outcome.seconds, 3)}
    cost = None if given["watts"] is None else Footprint(result["seconds"], given["watts"])
    if given["form"] == "json":
        output.print_json(result | ({} if cost is None else {"footprint": cost.to_json()}))
    else:
        _print_result(result)
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
    arms = _requests(given)
    out = _path(given["out"])
    found = compare(arms, given["seeds"] or 20, around, out, given["resume"])
    print_comparison(found, given["form"], given["out"])


def _path(out: str | None) -> Path | None:
    return None if out is None else Path(out)


def _request(given: dict[str, Any]) -> Request:
    """The request for one search; on resuming, options not given keep their stored values."""
    from lpzero.search.defaults import known_space
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
        return _make_request(asked, given)
    if given["beyond_table"]:
        asked["inside_table"] = False
    elif "space" in asked and found.get("inside_table"):
        # The search began in the part of the space that its table knows.
        asked["space"] = known_space(asked["space"], found.get("table"))
    return resumed(Path(given["out"]), found, asked)


def _requests(given: dict[str, Any]) -> list[Request]:
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
        _make_request(
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
    same = ("space", "seed", "weights_seed", "networks", "evaluator", "table", "training_steps")
    asked = {name: given[name] for name in same if given[name] is not None}
    batch = output.chosen_batch(given)
    asked |= {} if batch is None else {"batch": batch}
    asked["constants"] = dict(given["constants"])
    asked["constraints"] = {}
    for cost in COSTS:
        key = cost.replace("-", "_")
        bound = [given[f"min_{key}"], given[f"max_{key}"]]
        if bound != [None, None]:
            asked["constraints"][cost] = bound
    return asked


def _make_request(asked: dict[str, Any], given: dict[str, Any]) -> Request:
    """The request with a loop, a proxy, an evaluator and bounds where none are named."""
    import spaces
    from lpzero.search import Constraints, Request, defaults, loops

    if "space" not in asked:
        raise click.UsageError("no space given: lpzero search SPACE")
    space = spaces.get(asked["space"])
    loop = loops.get(asked.setdefault("loop", defaults.LOOP))
    if "evaluator" not in asked:
        table = asked.get("table")
        alone = loop.by_proxy and table is None and not given["compare"]
        found = evaluators.PROXY if alone else evaluators.default(space, table, given["data"])
        asked["evaluator"] = found
    is_inside = not (given["compare"] or given["beyond_table"])
    if asked["evaluator"] == evaluators.SURROGATE and is_inside:
        asked["inside_table"] = True
        _keep_to_table(asked, space)
    elif given["beyond_table"] and asked["evaluator"] != evaluators.SURROGATE:
        raise click.UsageError("--beyond-table is for --evaluator surrogate")
    if "proxy" not in asked and (proxy := defaults.proxy(space, loop)) is not None:
        asked["proxy"] = proxy
    bounds = {cost: (low, high) for cost, (low, high) in asked.pop("constraints").items()}
    return Request(**asked, constraints=Constraints(bounds))


def _keep_to_table(asked: dict[str, Any], space: Space[Any]) -> None:
    """Search the part of the space that the table was drawn from, and say so."""
    from lpzero.search import defaults

    table = asked.get("table") or evaluators.table_of(space)
    known = defaults.known_space(space.name, table)
    if known != space.name:
        output.note(
            f"{table} was drawn from {known}, a part of {space.name}: searching there"
            f" (--beyond-table searches all of {space.name})"
        )
        # The table is that of the whole space, so it must be named.
        asked |= {"space": known, "table": table}


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


class StepLine:
    """A step in one line: the loop, how many were scored and evaluated, the best so far."""

    def __init__(self, loop: str, last: int | None) -> None:
        self.loop, self.last = loop, "" if last is None else f"/{last}"
        self.shown: tuple[Any, Any] = (None, None)

    def note(self, entry: Entry) -> None:
        """Print the line if the step or the best has changed."""
        if self.shown == (entry["step"], entry["best"]):
            return
        self.shown = entry["step"], entry["best"]
        output.note(
            f"{self.loop} {entry['step']}{self.last}  scored {entry['scored']:,}"
            f"  evaluated {entry['evaluations']:,}  best {_number(entry['best'])}"
        )

    def text(self, entry: Entry) -> str:
        """The text beside a bar, which has the number scored."""
        return f"{self.loop} {entry['step']}{self.last}  best {_number(entry['best'])}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _resume_command(given: dict[str, Any]) -> str:
    """The command that continues a stopped search."""
    from lpzero import plugins

    words = ["lpzero", "search", "--out", str(given["out"]), "--resume", *plugins.arguments()]
    for name in ("hf", "data", "cache"):
        if given[name]:
            words += [f"--{name}", str(given[name])]
    return shlex.join(words)


def _print_result(result: dict[str, Any]) -> None:
    """Print the best architecture, its size and cost, and the steps at which it changes."""
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
    shown = ("step", "scored", "evaluations", "score", "target", "best", "alike")
    trace, before = [], object()
    for entry in result["trace"]:
        if entry["best"] != before or entry is result["trace"][-1]:
            trace.append({key: entry[key] for key in shown if key in entry})
        before = entry["best"]
    output.print_rows(trace, "table", "steps at which the best changes", of_any_size)
    error = f", cross-validated rmse {of['rmse']:.4g}, rho {of['rho']:.3f}" if "rmse" in of else ""
    source = f" of {of['table']}" if "table" in of else ""
    evaluated = f"{result['evaluations']:,} evaluated by {of['evaluator']}{source}{error}"
    if of["evaluator"] == "proxy":
        evaluated = "none evaluated, only the proxy was used"
    click.echo(f"\n{result['scored']:,} scored, {evaluated}, {result['seconds']:.1f} s")
    for remark in result.get("remarks", ()):
        click.echo(remark)
    if outside:
        click.echo(
            f"outside the surrogate's table: {', '.join(outside)}; the target is extrapolated"
        )


def print_comparison(found: Comparison, form: str, out: str | None) -> None:
    """Print the table of arms; write the curves to the directory."""
    from lpzero.report.search_curves import draw
    from lpzero.search.comparison import curve_rows

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
    limit = "" if found.threshold is None else f"; the best 1% start at {found.threshold:.6g}"
    output.print_rows(found.rows, "table", title=f"{example['target']}{limit}")
    if out is not None:
        click.echo(f"\ncurves and every run are in {output.printable(out)}")
        click.echo(output.printable(f"a page of them: lpzero report {shlex.quote(out)}"))

"""What `lpzero search` is asked for: options of bounds and constants, and the requests they make.

the options that were given  ->  a request, or one for every loop and proxy of a comparison
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output
from lpzero.cli.settings_options import click_option, shared_options
from lpzero.search import evaluators
from lpzero.search.constraints import COSTS, bound_option
from lpzero.search.loops import LOOPS

if TYPE_CHECKING:
    from lpzero.search import Request
    from spaces.base import Space

CONSTANTS = shared_options(LOOPS)


def bound_options(command: Any) -> Any:
    """The command with a lower and an upper bound of every cost."""
    for cost in reversed(COSTS):
        unit = "milliseconds per forward pass on this machine" if cost == "latency" else cost
        unit = unit.replace("-", " ")
        for word in ("max", "min"):
            text = f"{'At most' if word == 'max' else 'At least'} this many {unit}."
            kind = click.FloatRange(min=0)
            command = click.option(bound_option(word, cost), type=kind, help=text)(command)
    return command


def constant_options(command: Any) -> Any:
    """The command with the constants of every loop."""
    for entry in reversed(CONSTANTS):
        command = click_option(entry, entry.help)(command)
    return command


def hf_space(given: dict[str, Any]) -> str:
    """The name under which the space of configurations is known from now on."""
    from lpzero import hf
    from spaces import user_modules

    if given["space"]:
        raise click.UsageError("give a space or --hf, not both")
    space = hf.read_space(given["hf"])
    user_modules.remember_space(str(given["hf"]), space)
    return space.name


def one_request(given: dict[str, Any]) -> Request:
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


def every_request(given: dict[str, Any]) -> list[Request]:
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

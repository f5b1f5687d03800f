"""search: Search a space for the best architecture, by any proxy."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lpzero import plugins
from lpzero.errors import InputError
from lpzero.options import (
    BOUNDS,
    COMMON,
    FILE,
    FOLDER,
    JUDGEMENT,
    LOOP,
    NETWORKS,
    SEED,
    OneOf,
    Option,
    Real,
    Repeated,
    Switch,
    Text,
    Whole,
    argument,
    given_of,
    group,
    option,
    shared_options,
)
from lpzero.runs.layout import JOURNAL, RESULT
from lpzero.runs.run import (
    FINISHED,
    STOPPED,
    Kind,
    Line,
    last_record,
    named_number,
    nested,
    read_file,
    whole,
)
from lpzero.search import NETWORKS as KINDS_OF_NETWORKS
from lpzero.search import evaluators
from lpzero.search.constraints import COSTS, bound_option
from lpzero.search.loops import LOOPS
from lpzero.verbs import Outcome, Screen, groups
from spaces.untrusted import user_path
from spaces.user_modules import is_address

if TYPE_CHECKING:
    from lpzero.runs.config import StoredConfig
    from lpzero.search import Resources
    from lpzero.search.environment import Entry
    from lpzero.search.request import Request as SearchRequest
    from spaces.base import Space

KIND = Kind(
    "search",
    read="lpzero.search.search_run:read",
    page="lpzero.report.search_page:content",
    follow="lpzero.search.search_run:LiveSearch",
    line=f"{__name__}:line",
)
_USUAL_PROXIES = "".join(
    f"; {name}: {loop.usual_proxy}" for name, loop in LOOPS.items() if loop.usual_proxy is not None
)
_BY_PROXY = ", ".join(name for name, loop in LOOPS.items() if loop.by_proxy)


def constants() -> list[Option]:
    """The constants of every loop."""
    entries = shared_options(LOOPS)
    return [replace(entry, panel=COMMON if entry.name == "budget" else LOOP) for entry in entries]


def bounds() -> list[Option]:
    """A lower and an upper bound of every cost."""
    entries = []
    for cost in COSTS:
        unit = "milliseconds per forward pass on this machine" if cost == "latency" else cost
        for word, text in (("min", "At least"), ("max", "At most")):
            flag = bound_option(word, cost)
            name = flag.removeprefix("--").replace("-", "_")
            help = f"{text} this many {unit.replace('-', ' ')}."
            entries.append(Option(name, help, Real(0), flag, None, panel=BOUNDS))
    return entries


EXAMPLES = (
    "lpzero search nano-gpt2 --proxy runs/nano-gpt2",
    "lpzero search my_space.py:SPACE --budget 20 --train my_space.py:train",
)


@dataclass(frozen=True)
class Running(groups.Running):
    """Where a search runs."""

    jobs: int | None = option(
        None,
        "The number of parallel processes; it does not change the result.  [default: every core if"
        " the networks take long, else 1]",
        Whole(1),
        is_local=True,
    )


@dataclass(frozen=True, kw_only=True)
class Request:
    """Search SPACE for the best architecture, guided by a proxy.

    The evaluator gives the target of an architecture; with `proxy`, only the score is used. SPACE
    alone is enough: `lpzero search nano-gpt2`.
    """

    space: str | None = argument("SPACE", None, is_code=True)
    hf: str | None = option(
        None,
        "Hugging Face configurations: choices for fields.",
        FILE,
    )
    loops: tuple[str, ...] = option(
        (),
        f"One of {', '.join(LOOPS)}; repeatable with --compare.  [default: etas or budget]",
        Repeated("LOOP"),
        "--loop",
    )
    proxies: tuple[str, ...] = option(
        (),
        "A proxy, rank-mean(A, B), a formula, an exported file, a run's directory, or none;"
        f" repeatable with --compare.  [default: by the space's family{_USUAL_PROXIES}]",
        Repeated("NAME|FORMULA|FILE"),
        "--proxy",
    )
    evaluator: str | None = option(
        None,
        f"One of {', '.join(evaluators.NAMES)}.  [default: surrogate if a table is present, else"
        f" proxy; {_BY_PROXY}: proxy]",
        Text(),
    )
    train: str | None = option(
        None,
        "Your function of an architecture and a seed.",
        Text("FILE.py:NAME"),
        is_code=True,
    )
    confirm: int | None = option(
        None,
        "Train the best and the second best from this many more seeds, and say if they differ.",
        Whole(2),
        panel=JUDGEMENT,
    )
    table: str | None = option(
        None, "The table of the evaluator.  [default: the space's own]", Text(), panel=LOOP
    )
    beyond_table: bool = option(
        False,
        "Let a surrogate predict outside the ranges of its table too.  [default: the search stays"
        " inside; with --compare it does not]",
        Switch(),
        panel=LOOP,
    )
    training_steps: int | None = option(
        None, "The number of training steps.  [default: the recipe's]", Whole(1), panel=LOOP
    )
    bounds: dict[str, Any] = given_of(bounds)
    constants: dict[str, Any] = given_of(constants)
    compare: bool = option(
        False, "Run every --loop with every --proxy over several seeds.", Switch(), panel=JUDGEMENT
    )
    seeds: int | None = option(
        None, "The number of seeds for --compare.  [default: 20]", Whole(2), panel=JUDGEMENT
    )
    time_limit: float | None = groups.time_limit()
    watts: float | None = option(
        None,
        "Also print the energy and the CO2 of the search on a machine that draws this many watts.",
        Real(0, is_open=True),
        is_local=True,
        panel=JUDGEMENT,
    )
    out: str | None = option(None, "Save the search in this directory.", FOLDER)
    resume: bool = groups.resume()
    seed: int | None = option(None, "The seed of the loop.  [default: 0]", SEED)
    weights_seed: int | None = option(
        None, "The seed of untrained networks.  [default: 0]", SEED, panel=NETWORKS
    )
    networks: str | None = option(
        None,
        "Networks that are quick to draw and score, or those of `lpzero rank`, with its scores."
        "  [default: quick; those of a table as-ranked]",
        OneOf("kind of networks", KINDS_OF_NETWORKS),
        panel=NETWORKS,
    )
    work: groups.LongRun = group(groups.LongRun)
    inputs: groups.Batch = group(groups.Batch)
    running: Running = group(Running)

    def __post_init__(self) -> None:
        if self.resume and not self.out:
            raise InputError("--resume needs --out, the directory of the search to continue")
        for name, value in (("time-limit", self.time_limit), ("watts", self.watts)):
            if self.compare and value:
                raise InputError(f"--{name} is for one search, not for --compare")
        if self.seeds and not self.compare:
            raise InputError("--seeds is for --compare; use --seed for one search")
        if self.train and self.evaluator:
            raise InputError("--train is an evaluator: leave --evaluator out")
        if self.hf and self.space:
            raise InputError("give a space or --hf, not both")


def kind(request: Request) -> Kind:
    """The kind of run that the request starts."""
    from lpzero.verbs import compare

    return compare.KIND if request.compare else KIND


def run(request: Request, screen: Screen) -> Outcome:
    """The best architecture and the trace; with `compare` a row per loop and proxy."""
    from lpzero.search import run as search
    from lpzero.search.cost import Footprint

    if request.compare:
        from lpzero.verbs import compare

        return compare.run(request, screen)
    asked = _one_request(request, screen)
    out = None if request.out is None else user_path(request.out)
    with _display(request, asked, screen) as around:
        outcome = search(asked, around, out, request.resume, request.time_limit)
    result = {**outcome.result, "seconds": round(outcome.seconds, 3)}
    cost = None if request.watts is None else Footprint(result["seconds"], request.watts)
    result |= {} if cost is None else {"footprint": cost.to_json()}
    if "stopped_by" in result:
        again = f"; continue with: {shlex.join(_continues(request))}"
        screen.say(f"stopped by the {result['stopped_by']}{again if out else ''}")
    return Outcome(result, {"footprint": cost})


def _continues(request: Request) -> list[str]:
    """The command line that continues the search; it names the user's code again."""
    words = ["lpzero", "search"]
    words += [request.space] if request.space and is_address(request.space) else []
    words += ["--hf", request.hf] if request.hf else []
    words += ["--train", request.train] if request.train else []
    words += [word for name in plugins.given() for word in ("--plugin", name)]
    return [*words, "--out", str(request.out), "--resume"]


@contextmanager
def _display(request: Request, asked: SearchRequest, screen: Screen) -> Iterator[Resources]:
    """What the search runs on, and one bar or, where stderr is not a terminal, a line per step."""
    from lpzero.parallel import is_watched, whole_bar
    from lpzero.search.cost import most_scored
    from lpzero.search.scorer import n_passes

    if not screen.progress:
        yield resources(request, None)
        return
    is_terminal = is_watched()
    is_trained = evaluators.is_training(asked.evaluator)
    around = replace(resources(request, "scoring" if is_terminal else None), say=screen.say)
    line = _StepLine(asked.loop, asked.made_loop.last_step)
    if not is_terminal:
        around = replace(around, show=lambda entry: line.say(entry, screen))
        if is_trained:
            around = replace(around, begin=lambda first, archs: line.begin(first, archs, screen))
        yield around
        return
    total, is_fitted = most_scored(asked), asked.evaluator == evaluators.SURROGATE
    first = "fitting the surrogate" if is_fitted else asked.loop
    counted, share = "scored", 1 / max(1, n_passes(asked.made_proxy))
    if is_trained:
        total, counted, share = asked.made_loop.last_step, "evaluations", 0.0
    with whole_bar(first, total, share) as bar:

        def begin(first: int, archs: Sequence[Entry]) -> None:
            for number, arch in enumerate(archs, first):
                bar.reach(number - 1, line.training(number, arch))

        def say(text: str) -> None:
            bar.reach(0, asked.loop)  # what is told first is that the surrogate is fitted
            screen.say(text)

        around = replace(
            around, say=say, show=lambda entry: bar.reach(entry[counted], line.text(entry))
        )
        yield replace(around, begin=begin) if is_trained else around


class _StepLine:
    """A step in one line: the loop, how many were scored and evaluated, the best so far."""

    def __init__(self, loop: str, last: int | None) -> None:
        self.loop, self.last = loop, "" if last is None else f"/{last}"
        self.shown: tuple[Any, Any] = (None, None)

    def say(self, entry: Entry, screen: Screen) -> None:
        """Print the line if the step or the best has changed."""
        if self.shown == (entry["step"], entry["best"]):
            return
        self.shown = entry["step"], entry["best"]
        screen.say(
            f"{self.loop} {entry['step']}{self.last}  scored {entry['scored']:,}"
            f"  evaluated {entry['evaluations']:,}  best {_number(entry['best'])}"
        )

    def begin(self, first: int, archs: Sequence[Entry], screen: Screen) -> None:
        """Print the trainings that begin."""
        for number, arch in enumerate(archs, first):
            screen.say(self.training(number, arch))

    def training(self, number: int, arch: Entry) -> str:
        """A training that begins, in one line."""
        return f"training {number}{self.last}: {json.dumps(arch)}"

    def text(self, entry: Entry) -> str:
        """The text beside a bar, which has the number scored."""
        return f"{self.loop} {entry['step']}{self.last}  best {_number(entry['best'])}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def resources(request: Request, label: str | None) -> Resources:
    """The resources to run on; scoring has a bar if it has a label."""
    from lpzero.search import Resources

    running = request.running
    return Resources(
        data=running.tables_folder,
        cache=running.folder,
        device=running.device,
        jobs=running.jobs,
        backend=running.backend,
        scheduler=running.scheduler,
        label=label,
        lock=request.work.lock,
    )


def _one_request(request: Request, screen: Screen) -> SearchRequest:
    """The request for one search; on resuming, options not given keep their stored values."""
    from lpzero.search.request import space_of_rows
    from lpzero.search.search_run import resumed, stored_request

    asked = given(request)
    for name, values in (("loop", request.loops), ("proxy", request.proxies)):
        if len(values) > 1:
            plural = "proxies" if name == "proxy" else "loops"
            raise InputError(f"several {plural} were given: compare them with --compare")
        if values:
            asked[name] = values[0]
    folder = user_path(request.out or "")
    stored = stored_request(folder) if request.resume else None
    if stored is None:
        return complete(asked, request, screen)
    if request.beyond_table:
        asked["inside_table"] = False
    elif "space" in asked and stored.get("inside_table"):
        # The search began in the part of the space that its table knows.
        asked["space"] = space_of_rows(asked["space"], stored.get("table"))
    return resumed(folder, stored, asked)


def given(request: Request) -> dict[str, Any]:
    """The options that were given, under the names of a search's request."""
    names = ["space", "seed", "weights_seed", "networks", "evaluator", "table", "training_steps"]
    names += ["confirm"]
    asked = {name: getattr(request, name) for name in names if getattr(request, name) is not None}
    if request.hf:
        asked["space"] = _hf_space(request.hf)
    if request.train:
        asked["evaluator"] = f"{evaluators.BY_FUNCTION}{request.train}"
    batch = request.inputs.minibatch
    asked |= {} if batch is None else {"batch": batch}
    asked["constants"] = dict(request.constants)
    asked["constraints"] = {}
    for cost in COSTS:
        key = cost.replace("-", "_")
        bound = [request.bounds.get(f"{word}_{key}") for word in ("min", "max")]
        if bound != [None, None]:
            asked["constraints"][cost] = bound
    return asked


def _hf_space(path: str) -> str:
    """The name under which the space of configurations is known from now on."""
    from lpzero import hf
    from spaces import user_modules

    space = hf.read_space(path)
    user_modules.remember_space(str(path), space)
    return str(space.name)


def complete(asked: dict[str, Any], request: Request, screen: Screen) -> SearchRequest:
    """The request with a loop, a proxy, an evaluator and bounds where none are named."""
    import spaces
    from lpzero.search import Constraints, loops
    from lpzero.search import Request as SearchRequest
    from lpzero.search.request import BUDGET, DEFAULT_LOOP, default_proxy

    if "space" not in asked:
        raise InputError("no space given: lpzero search SPACE")
    space = spaces.get(asked["space"])
    is_budget = "budget" in asked["constants"] or request.train is not None
    loop = loops.get(asked.setdefault("loop", BUDGET if is_budget else DEFAULT_LOOP))
    if loop.name == BUDGET and getattr(space, "train", None) is not None and not request.table:
        asked.setdefault("evaluator", evaluators.TRAINING)
    if "evaluator" not in asked:
        table = asked.get("table")
        alone = loop.by_proxy and table is None and not request.compare
        data = None if request.running.tables_folder is None else str(request.running.tables_folder)
        asked["evaluator"] = evaluators.PROXY if alone else evaluators.default(space, table, data)
    is_inside = not (request.compare or request.beyond_table)
    if asked["evaluator"] == evaluators.SURROGATE and is_inside:
        asked["inside_table"] = True
        _keep_to_table(asked, space, screen)
    elif request.beyond_table and asked["evaluator"] != evaluators.SURROGATE:
        raise InputError("--beyond-table is for --evaluator surrogate")
    if "proxy" not in asked and (proxy := default_proxy(space, loop)) is not None:
        asked["proxy"] = proxy
    limits = {cost: (low, high) for cost, (low, high) in asked.pop("constraints").items()}
    return SearchRequest(**asked, constraints=Constraints(limits))


def _keep_to_table(asked: dict[str, Any], space: Space[Any], screen: Screen) -> None:
    """Search the part of the space that the table was drawn from, and say so."""
    from lpzero.search.request import space_of_rows

    table = asked.get("table") or evaluators.table_of(space)
    part = space_of_rows(asked["space"], table)
    if part != asked["space"]:
        screen.say(
            f"{table} was drawn from {part}, a part of {space.name}: searching there"
            f" (--beyond-table searches all of {space.name})"
        )
        # The table is that of the whole space, so it must be named.
        asked |= {"space": part, "table": table}


def line(config: StoredConfig) -> Line:
    """The search in a list."""
    result, request = read_file(config, RESULT, []), config.request
    table = str(request.get("table") or request.get("space") or "")
    if result is None:
        n_facts = whole(last_record(config.folder / JOURNAL).get("n"), -1) + 1
        return Line(STOPPED, table, f"{n_facts:,} facts")
    progress = (
        f"{whole(result.get('scored')):,} scored, {whole(result.get('evaluations')):,} evaluated"
    )
    return Line(FINISHED, table, progress, _best(result))


def _best(result: Mapping[str, Any]) -> str:
    target = nested(result, "best", "target")
    if target is None:
        return named_number("score", nested(result, "best", "score"))
    return named_number("target", target)

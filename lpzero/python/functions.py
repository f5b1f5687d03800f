"""The verbs as functions: they take objects, and give what prints and shows as a table.

Their options are those of the command line (`lpzero.python.signatures`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.options import Names, Repeated, SomeOf, make, options
from lpzero.parallel import is_watched
from lpzero.python.inputs import (
    NAME,
    AnyTable,
    Data,
    ProxyLike,
    SpaceLike,
    listed,
    plain_proxy,
    proxy_texts,
    space_name,
    table_of,
)
from lpzero.python.rows import Exhausted, RankedRow, Rows, SearchResult, TrainedTable
from lpzero.python.signatures import of_verb
from lpzero.verbs import Outcome, Screen, module
from lpzero.verbs.call import call
from lpzero.verbs.groups import TableFile
from spaces.minibatch import Minibatch
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from torch import Tensor, nn

    from lpzero.proxies import Context
    from lpzero.proxies.model_scores import Scores
    from lpzero.python.discovery import Discovery
    from lpzero.python.formula import FormulaObject
    from lpzero.statistics.layout import Layout
    from lpzero.statistics.objective import Loss

FUNCTIONS = ("exhaust", "load", "load_table", "rank", "score", "search", "train")
_RANKED = ("proxy", "n", "rho", "rho_ci", "tau", "rho_given_params", "rho_within")
FILE = ("target", "smaller_is_better", "ids", "task")
logger = logging.getLogger("lpzero")


def load_table(
    data: Data,
    *,
    space: SpaceLike | None = None,
    target: str | None = None,
    smaller_is_better: bool = False,
    ids: str | None = None,
    task: str | None = None,
    tables_folder: str | Path | None = None,
) -> AnyTable:
    """The table of that name, in that file (CSV, JSON lines, Parquet, a trained table) or frame.

    Rows are architectures of `space`; without one, columns of numbers. `target` is the column to
    rank by, `ids` that of names; the released tables are in `tables_folder`.
    """
    given = {"target": target, "smaller_is_better": smaller_is_better, "ids": ids, "task": task}
    chosen = {name: value for name, value in given.items() if value}
    table = table_of(data, space, **chosen)
    if isinstance(table, str):
        reading = make(TableFile, chosen | flat(TableFile, {"space": space_name(space)}))
        table = reading.load(table, None if tables_folder is None else str(tables_folder))
    for remark in getattr(table, "remarks", ()):
        logger.warning("%s", remark)
    return table


def context(**options: Any) -> Context:
    """How networks are run, from the options that `rank` and `predict` share."""
    kind = module("rank").Request
    made: Context = make(kind, {"table": None, **flat(kind, options)}).context()
    return made


@of_verb("rank", "proxies")
def rank(
    data: Data,
    proxies: ProxyLike | Sequence[ProxyLike] | None = None,
    *,
    space: SpaceLike | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Rows[RankedRow]:
    """A row per proxy against the targets of the data, best first.

    Without proxies all that apply are ranked, but for released recipes and those that run on more
    inputs than the others (see docs/proxies.md). A proxy is a name, a formula, an exported file, a
    run's directory, a fitted `Discovery` or a function of a network.
    """
    given = {"proxies": proxy_texts(proxies), **_data(data, space, options)}
    return Rows(result("rank", progress, given, options), _RANKED)


@of_verb("exhaust")
def exhaust(
    data: Data,
    *,
    space: SpaceLike | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Exhausted:
    """Every formula of the paper's space on the data: chosen on train, reported on test."""
    return Exhausted(result("exhaust", progress, _data(data, space, options), options))


@of_verb("train", "quiet")
def train(space: SpaceLike, *, progress: bool | None = None, **options: Any) -> TrainedTable:
    """A table trained from architectures of the space, or with `supernet=True` one supernet."""
    return TrainedTable(result("train", progress, {"space": space_name(space)}, options))


@of_verb("search", "proxies", "loops", "hf", "quiet", "train")
def search(
    space: SpaceLike,
    proxy: ProxyLike | Sequence[ProxyLike] | None = None,
    loop: str | Sequence[str] | None = None,
    *,
    train: Callable[[Any, int], float] | str | None = None,
    table: Data | None = None,
    target: str | None = None,
    progress: bool | None = None,
    **options: Any,
) -> SearchResult:
    """The best architecture of the space that a loop finds, guided by a proxy.

    `train`, your function of an architecture and a seed, gives targets: `budget` trainings find
    the best (its address as text, my_module.py:train, lets a search in `out` be resumed by the
    command line too).

    The constants of the loop and the bounds of costs, such as `max_parameters`, are options. With
    `table` (and the `target` of a frame or a file) a surrogate that is fitted to it is the
    evaluator; a `Discovery` on objects of the space brings its own. Several proxies or loops need
    `compare=True`.
    """
    from lpzero.search import evaluators
    from lpzero.search.request import BUDGET

    loops = (loop,) if isinstance(loop, str) else tuple(loop or ())
    home = space_name(space)
    given: dict[str, Any] = {"space": home, "proxies": proxy_texts(proxy), "loops": loops}
    if isinstance(train, str):
        given["train"] = train
    elif train is not None:
        given["evaluator"] = evaluators.remember_function(train)
        given["loops"] = loops or (BUDGET,)
    if table is None and not (train or loops or options.get("evaluator")):
        table = _rows_of(proxy, home)
    if table is not None:
        is_text = isinstance(table, (str, Path)) and target is None
        read = str(table) if is_text else load_table(table, space=home, target=target)
        given["table"] = read if isinstance(read, str) else evaluators.remember(read)
    return SearchResult(result("search", progress, given, options))


@of_verb("score", "hf", "inputs", "show_layout", "corpus", "tokenizer", "memory", "length", "dtype")
def score(
    model: nn.Module | Mapping[str, nn.Module],
    batch: Tensor | Mapping[str, Tensor] | None = None,
    proxies: ProxyLike | Sequence[ProxyLike] | None = None,
    *,
    loss: str | Loss = "auto",
    layout: Layout | None = None,
    released: bool = False,
    **options: Any,
) -> Scores:
    """The scores of a torch transformer on a batch: a row for each proxy; larger is better.

    `model` may be several models by name; then proxies that rank models can be used too. `batch` is
    token ids (B, T), images (B, channels, H, W), or tensors by the names of the model's arguments;
    by default random ones that the model reads. `proxies` are names, formulas, exported files or
    functions of a `Network`; by default every proxy but the released recipes. `loss(output, batch)`
    gives one number or one per sample; by default it is the model's own if it returns one,
    next-token for a causal model with word logits, else a random cotangent. `layout` names what
    cannot be found by running the model. The models are left as they were.
    """
    from lpzero import hf
    from lpzero.proxies.model_scores import default_proxies, given_network, score_networks
    from lpzero.statistics.isolation import resolve_device

    kind = module("score").Request
    asked = make(kind, flat(kind, options))
    models = dict(model) if isinstance(model, Mapping) else {"model": model}
    networks = {}
    for name, network in models.items():
        if options.get("device") is not None:
            network.to(resolve_device(asked.device))
        read = hf.batch(network, seed=asked.weights_seed) if batch is None else batch
        networks[name] = given_network(network, read, loss, layout, asked.weights_seed, asked.chunk)
    given = [plain_proxy(proxy) for proxy in listed(proxies)]
    return score_networks(networks, given or default_proxies(released), asked.definitions)


def load(
    path: str | Path,
) -> Discovery | FormulaObject | SearchResult | Rows[RankedRow] | Exhausted:
    """What is in a run's directory, as the function gives it that made the run, or in a file.

    A campaign is a `Discovery`, a search a `SearchResult`, a ranking `Rows`; an exported formula is
    as `lpzero.formula` makes one. A table is read by `load_table`.
    """
    from lpzero.python.discovery import Discovery
    from lpzero.python.formula import FormulaObject

    if not user_path(path).is_dir():
        return FormulaObject.read(path)
    from lpzero.runs.run import open_run, report_unexpected_content

    run = open_run(user_path(path))
    if run.kind == "campaign":
        return Discovery.load(path)
    if run.result is None:
        raise InputError(f"{path} cannot be loaded: it has no result yet")
    made: Rows[RankedRow] | SearchResult | Exhausted
    with report_unexpected_content(run.folder):
        if run.kind == "ranking":
            made = Rows(run.result["rows"], _RANKED)
        elif run.kind == "search":
            made = SearchResult(run.result)
        elif run.kind == "exhaustive run":
            made = Exhausted(run.result)
        else:
            raise InputError(f"{path} cannot be loaded: it is a {run.kind}")
        repr(made)  # what it shows can be read
    return made


def _rows_of(proxy: object, space: str | None) -> AnyTable | None:
    """The table of architectures of the space, given as an object, that a `Discovery` was on."""
    rows = list(getattr(proxy, "tables_", ()))
    own = getattr(rows[0], "space", None) if len(rows) == 1 else None
    is_own = own is not None and own.name == space and rows[0].name == NAME
    return rows[0] if is_own else None


def _data(data: Data, space: SpaceLike | None, options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a verb for the data, without what only says how they are read."""
    reading = {name: options[name] for name in FILE if options.get(name)}
    table = table_of(data, space, **reading)
    name = space_name(space)
    if isinstance(table, str):
        return {"table": table, **({} if name is None else {"space": name})}
    for option in FILE:
        options.pop(option, None)
    return {"table": table}


def result(
    verb: str, progress: bool | None, given: Mapping[str, Any], options: Mapping[str, Any]
) -> Any:
    """What the verb gives, as JSON values."""
    return run_verb(verb, progress, given, options).result


def run_verb(
    verb: str,
    progress: bool | None,
    given: Mapping[str, Any],
    options: Mapping[str, Any],
    watch: Sequence[Any] = (),
) -> Outcome:
    """The outcome of a verb; `progress` None is a bar where somebody looks."""
    kind = module(verb).Request
    shown = is_watched() if progress is None else progress
    screen = Screen(shown, say=logger.info, watch=watch)
    return call(verb, make(kind, {**flat(kind, options), **given}), screen)


def flat(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options as a request has them: without None, lists as tuples, the fields of a batch."""
    values = {name: value for name, value in given.items() if value is not None}
    batch = values.get("batch")
    if isinstance(batch, Minibatch):
        del values["batch"]
        fields: dict[str, Any] = {"batch": batch.inputs, "length": batch.length}
        fields["corpus"] = None if batch.corpus is None else batch.corpus.path
        fields["tokenizer"] = None if batch.tokenizer is None else batch.tokenizer.path
        values |= {name: value for name, value in fields.items() if value is not None}
    for entry in options(kind):
        value = values.get(entry.name)
        if isinstance(value, str) and isinstance(entry.kind, (Names, SomeOf)):
            values[entry.name] = entry.kind.read(value)
        elif isinstance(value, str) and isinstance(entry.kind, Repeated):
            values[entry.name] = (value,)
        elif isinstance(value, Path):
            values[entry.name] = str(value)
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}

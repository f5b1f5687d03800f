"""Evaluators of a search's architectures: a table, a surrogate, training, a trained supernet, or
the proxy alone.

With `proxy` (or `none`) nothing is evaluated: the best by the proxy is the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from lpzero.errors import InputError
from lpzero.parallel import Workers
from spaces import tables, user_modules
from spaces.base import Space
from spaces.errors import TableError, UnknownNameError
from spaces.tables.nano import is_trained, read_trained
from spaces.tables.registry import data_root, locate, source

PROXY, SURROGATE = "proxy", "surrogate"
SUPERNET = "supernet:"  # followed by the directory of its training
NAMES = ("table", SURROGATE, "training", f"{SUPERNET}DIR", PROXY)


class Evaluator(Protocol):
    """Targets of architectures (larger is better), and a description of their source."""

    name: str
    target: str
    # Whether targets cost nothing, so that the trace may show targets that no loop needs.
    is_free: bool
    # The only architectures that it can evaluate; None if it can evaluate the whole space.
    pool: Sequence[Any] | None

    def describe(self) -> dict[str, Any]:
        """A description as JSON values: its source, and its error if it has one."""

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        """The target of each architecture, in order, yielded when known."""


def check(name: str) -> str:
    """The evaluator's name; raise UnknownNameError if there is none."""
    if name == "none":
        return PROXY
    if name.startswith(SUPERNET) and name != f"{SUPERNET}DIR":
        return name
    if name not in NAMES:
        raise UnknownNameError("evaluator", name, (*NAMES, "none"))
    return name


def make(
    name: str,
    space: Space[Any],
    table: str | None,
    steps: int | None,
    data: str | None = None,
    workers: Workers | None = None,
) -> Evaluator | None:
    """The evaluator; None for `proxy`. `steps` shortens training."""
    if steps is not None and name != "training":
        raise InputError(f"evaluator {name} does not train: leave --training-steps out")
    if name == PROXY:
        if table is not None:
            raise InputError("evaluator proxy reads no table: leave --table out, or name another")
        return None
    if name == "training":
        from lpzero.search.evaluators.training import Training

        if table is not None:
            raise InputError("evaluator training reads no table: leave --table out")
        return Training(space, steps, workers or Workers())
    if name.startswith(SUPERNET):
        from lpzero.search.evaluators.training import SupernetEvaluator

        if table is not None:
            raise InputError("evaluator supernet reads no table: leave --table out")
        return SupernetEvaluator(space, name.removeprefix(SUPERNET))
    known = table or table_of(space)
    if known is None:
        raise InputError(
            f"there is no table of space {space.name}: name one with --table, or use --evaluator"
            " training or proxy"
        )
    return _of_table(name, space, known, data)


@lru_cache(maxsize=2)
def _of_table(name: str, space: Space[Any], table: str, data: str | None) -> Evaluator:
    """Cached, because a comparison runs many searches with the same surrogate."""
    from lpzero.search.evaluators.table import LookUp, Surrogate

    is_written = is_trained(Path(table).expanduser())
    loaded = (
        read_trained(Path(table).expanduser(), space.name)
        if is_written
        else _read(name, space, table, data)
    )
    return Surrogate(space, loaded) if name == SURROGATE else LookUp(loaded)


def _read(name: str, space: Space[Any], table: str, data: str | None) -> tables.Table:
    """The table in the space; in a part of the table's own space what is known of that part.

    A search confined to the table gets its rows inside the part; a surrogate is fitted to all
    rows, because those outside are neighbours.
    """
    try:
        return tables.load(table, data, space.name)
    except TableError:
        whole = tables.load(table, data)
        inside = whole.rows_in(space)
        if not inside:
            raise
        return whole if name == SURROGATE else whole.only(inside).in_space(space)


def table_of(space: Space[Any]) -> str | None:
    """The first known table of the space, or of a space that it is the known part of."""
    own = user_modules.named_space(space.name)  # a table of it may name it by another address
    known = (source(name) for name in tables.names())
    return next(
        (
            one.name
            for one in known
            if space.name in (one.space, one.drawn_from)
            or (own is not None and _is_at(own, one.space))
        ),
        None,
    )


def _is_at(own: Space[Any], address: str) -> bool:
    return user_modules.is_address(address) and user_modules.find_space(address) == own


def default(space: Space[Any], table: str | None, data: str | None) -> str:
    """A surrogate if a table is named or available, else the proxy alone."""
    if table is not None:
        return "surrogate"
    known = table_of(space)
    if known is None:
        return PROXY
    try:
        locate(source(known), data_root(data))
    except TableError:
        return PROXY
    return "surrogate"

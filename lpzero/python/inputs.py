"""What the Python functions take: data, spaces and proxies as objects, as the verbs read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Union

import spaces
from lpzero.errors import InputError
from lpzero.options import make
from lpzero.verbs.groups import TableFile
from spaces import user_modules
from spaces.base import Space
from spaces.tables.readers import ReadOptions

if TYPE_CHECKING:
    from lpzero.proxies import Network, Proxy
    from lpzero.python.discovery import Discovery
    from lpzero.python.formula import FormulaObject
    from primitives.formula import Formula
    from spaces.tables import ColumnTable, Table

NAME = "data"  # of a table that was given as a value without a name
_FILES = (".yaml", ".yml")


class DataFrame(Protocol):
    """A DataFrame of pandas, or of another library with the dataframe interchange protocol."""

    def __dataframe__(self, nan_as_null: bool = ..., allow_copy: bool = ...) -> object: ...


AnyTable: TypeAlias = Union["Table", "ColumnTable"]
# A table by name, file or value; a DataFrame; pairs of an architecture and its target.
Data: TypeAlias = str | Path | AnyTable | DataFrame | Sequence[tuple[object, float]]
# A name, my_module:SPACE, SPACE.yaml or its content, or a space.
SpaceLike: TypeAlias = str | Path | Space[Any] | Mapping[str, object]
# A name, a formula, a file, a run's directory or its object; or a function of a `Network`.
ProxyLike: TypeAlias = Union[
    str,
    Path,
    "Proxy",
    "Formula",
    "FormulaObject",
    "Discovery",
    "Callable[[Network], float]",
]


def space_name(space: SpaceLike | None) -> str | None:
    """The name or address by which the space is known from now on, in this process."""
    if space is None:
        return None
    if isinstance(space, str) and not space.endswith(_FILES):
        spaces.load(space)  # the user names it: what runs later only looks it up
        return space
    if isinstance(space, Space):
        address = user_modules.address_of(space)
        if address in spaces.names() and spaces.get(address) == space:
            return address
        user_modules.remember_space(address, space)
        return address
    from lpzero import hf

    if isinstance(space, Mapping):
        made = hf.space(space)
    elif isinstance(space, (str, Path)):
        made = hf.read_space(space)
    else:
        raise InputError(
            f"space is a {type(space).__name__}, expected a name, my_module:SPACE, a file"
            " SPACE.yaml, or what lpzero.space or lpzero.hf.space gives"
        )
    user_modules.remember_space(made.name, made)
    return str(made.name)


def table_of(data: Data, space: SpaceLike | None = None, **options: Any) -> str | AnyTable:
    """The table that the data are: a name or a path as text, or a table.

    `options` are those of a file: target, smaller_is_better, ids, task.
    """
    from spaces.tables.row_files import is_frame, rows_of_frame

    reading = make(TableFile, options).reading or ReadOptions()
    if isinstance(data, (str, Path)):
        return str(data)
    name = space_name(space)
    home = None if name is None else spaces.get(name)
    if is_frame(data):
        from spaces.tables.architecture_files import table_of_rows
        from spaces.tables.column_files import column_table

        rows = rows_of_frame(data, NAME)
        if reading.target is None:
            headings = ", ".join(rows.headings[:8]) + (", ..." if len(rows.headings) > 8 else "")
            raise InputError(f"no target is named: give target=, one of {headings}")
        if home is None:
            return column_table(rows, reading, NAME)
        return table_of_rows(rows, home, reading, NAME)
    if hasattr(data, "targets") and hasattr(data, "digest"):
        table: Any = data
        moved: AnyTable = table if home in (None, table.space) else table.in_space(home)
        return moved
    pairs: Any = data
    if isinstance(data, Sequence) and all(isinstance(p, tuple) and len(p) == 2 for p in pairs):
        if home is None:
            raise InputError("architectures with their targets need their space: give space=")
        return _table_of_pairs(pairs, home, reading)
    raise InputError(
        f"the data are a {type(data).__name__}, expected a table's name, a file, a table, a"
        " DataFrame or pairs of an architecture and its target"
    )


def architecture(space: Space[Any], given: Any) -> Any:
    """The architecture of the space that was given as such, or as the mapping of its fields."""
    arch = space.from_json(given) if isinstance(given, Mapping) else given
    space.validate(arch)
    return arch


def _table_of_pairs(
    pairs: Sequence[tuple[object, float]], space: Space[Any], reading: ReadOptions
) -> Table:
    from spaces.tables.architecture_files import LICENCE
    from spaces.tables.table import make_table

    sign = -1.0 if reading.smaller_is_better else 1.0
    rows = [
        (str(row), architecture(space, arch), sign * float(target))
        for row, (arch, target) in enumerate(pairs)
    ]
    if len({target for _, _, target in rows}) < 2:
        raise InputError("the targets are the same in every row; nothing can be ranked")
    target = reading.target or "target"
    return make_table(
        NAME, space, rows, f"minus {target}" if reading.smaller_is_better else target, LICENCE
    )


def plain_proxy(proxy: ProxyLike) -> Any:
    """The proxy as `lpzero.proxies` takes one: our own objects as the text of their formula."""
    source = getattr(proxy, "proxy_source", None)
    return proxy if source is None else str(source)


def proxy_text(proxy: ProxyLike) -> str:
    """The text by which `lpzero.proxies.find` finds the proxy, in this process."""
    given = plain_proxy(proxy)
    if isinstance(given, (str, Path)):
        return str(given)
    from lpzero.proxies.model_scores import as_proxy
    from lpzero.proxies.registry import offer
    from primitives.formula import Formula

    if isinstance(given, Formula):
        return str(given)
    made = as_proxy(given)
    offer(made)
    return made.name


def listed(proxies: ProxyLike | Sequence[ProxyLike] | None) -> list[ProxyLike]:
    """One proxy, several or none as a list."""
    if proxies is None:
        return []
    return list(proxies) if isinstance(proxies, (list, tuple)) else [proxies]  # type: ignore[list-item]


def proxy_texts(proxies: ProxyLike | Sequence[ProxyLike] | None) -> tuple[str, ...]:
    """The texts of one proxy, of several, or of none."""
    return tuple(proxy_text(proxy) for proxy in listed(proxies))

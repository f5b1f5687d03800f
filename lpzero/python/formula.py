"""A formula as an object: its mathematics, its scores of architectures, its export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spaces
from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.export import export, select
from lpzero.export.record import write_file
from lpzero.python.functions import context, load_table
from primitives.latex import right_side, to_latex
from primitives.parser import parse
from primitives.symbolic import to_sympy

if TYPE_CHECKING:
    from lpzero.proxies import Proxy
    from spaces.base import Space
    from spaces.tables import Table


def formula(text: str) -> FormulaObject:
    """The formula of that text; raises an error that says where it cannot be read.

    >>> formula("sum(mul(abs(G), abs(W)))")
    sum(mul(abs(G), abs(W)))
    """
    return FormulaObject(str(parse(text)), text)


class FormulaObject:
    """A formula; `source` is what exports are made from: its text, or the directory of its run."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self._source = text, source

    def __repr__(self) -> str:
        return self.text

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {right_side(parse(self.text))}$"

    def latex(self) -> str:
        """The formula as LaTeX."""
        return to_latex(parse(self.text))

    def sympy(self) -> Any:
        """The formula as a sympy expression."""
        return to_sympy(parse(self.text))

    def export(self, path: str | Path | None = None, to: str = "json", **options: Any) -> str:
        """The text of the exported file, written to the path if there is one."""
        text = export(select(self._source), to, **options)
        if path is not None:
            write_file(Path(path).expanduser(), text, force=True)
        return text

    def predict(self, archs: Sequence[Any], space: str | Space[Any], **options: Any) -> FloatArray:
        """The scores (n,) of architectures, or of their JSON objects; larger is better.

        The options are those of `lpzero.rank`: seed, jobs, cache, device, batch.
        """
        from lpzero.proxies import Measurements

        found = spaces.load(space) if isinstance(space, str) else space
        read = [found.from_json(a) if isinstance(a, Mapping) else a for a in archs]
        for arch in read:
            found.validate(arch)
        proxy = self._proxy
        if not proxy.applies_to(found):
            raise InputError(f"{self.text} cannot score space {found.name}")
        return proxy.score(found, read, Measurements(context(**options)))

    def score(self, table: str | Table, **options: Any) -> float:
        """Spearman's rho of the scores with the targets of a table, by name, file or value."""
        from lpzero.proxies.ranking import Ranking, rank, rank_columns

        loaded = load_table(table) if isinstance(table, str) else table
        if loaded.space is None:
            from lpzero.proxies.lookup import column_proxy

            [row] = rank_columns(loaded, [column_proxy(self.text, loaded)], 0)
        else:
            [row] = rank(loaded, [self._proxy], Ranking(context(**options)))
        return float(row["rho"])

    @property
    def _proxy(self) -> Proxy:
        from lpzero.proxies import find

        return find(self.text)

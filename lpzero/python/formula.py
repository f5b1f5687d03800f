"""A formula as an object: its mathematics, its scores of architectures and rows, its export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import spaces
from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.export import export, select
from lpzero.export.record import write_file
from lpzero.python.functions import FILE, context, load_table
from lpzero.python.inputs import Data, SpaceLike, architecture, space_name
from lpzero.scores.columns import RANK_OF, formula_names
from lpzero.scores.values import Values
from primitives.errors import Rejected
from primitives.latex import right_side, to_latex
from primitives.parser import parse
from primitives.symbolic import to_sympy
from spaces.untrusted import user_path

if TYPE_CHECKING:
    import sympy

    from lpzero.proxies import Proxy


def formula(text: str) -> FormulaObject:
    """The formula of that text; raises an error that says where it cannot be read.

    >>> formula("sum(mul(abs(G), abs(W)))")
    sum(mul(abs(G), abs(W)))
    """
    return FormulaObject(str(parse(text)), text)


class FormulaObject:
    """A formula; `source` is what exports are made from: its text, or the directory of its run."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self.proxy_source = text, source

    @classmethod
    def read(cls, path: str | Path) -> FormulaObject:
        """The formula in an exported file."""
        place = str(user_path(path))
        [entry, *others] = select(place).entries
        if others:
            raise InputError(f"{path} is an ensemble of several formulas: give its path as a proxy")
        return cls(str(entry.formula), place)

    def __repr__(self) -> str:
        return self.text

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {right_side(parse(self.text))}$"

    def latex(self) -> str:
        """The formula as LaTeX."""
        return to_latex(parse(self.text))

    def sympy(self) -> sympy.Expr:
        """The formula as a sympy expression."""
        return to_sympy(parse(self.text))

    def export(self, path: str | Path | None = None, to: str = "json", **options: object) -> str:
        """The text of the exported file, written to the path if there is one."""
        text = export(select(self.proxy_source), to, **options)
        if path is not None:
            write_file(user_path(path), text, force=True)
        return text

    def predict(self, archs: Sequence[object], space: SpaceLike, **options: Any) -> FloatArray:
        """The scores (n,) of architectures, or of the mappings of their fields; larger is better.

        The options are those of `lpzero.rank`: seed, jobs, cache, device, batch.
        """
        from lpzero.proxies import Measurements

        home = spaces.get(str(space_name(space)))
        read = [architecture(home, arch) for arch in archs]
        proxy = self._proxy
        if not proxy.applies_to(home):
            raise InputError(f"{self.text} cannot score space {home.name}")
        return proxy.score(home, read, Measurements(context(**options)))

    def predict_columns(
        self, columns: Mapping[str, FloatArray], fitted: Mapping[str, FloatArray] | None = None
    ) -> FloatArray:
        """The scores (n,) of rows with these columns, by heading; NaN where a row has none.

        A rank is the share of the `fitted` rows that are not above, or of these rows.
        """
        names = formula_names(columns)
        given = {names[h]: np.asarray(of, dtype=np.float64) for h, of in columns.items()}
        of_fitted = {formula_names(fitted)[h]: of for h, of in fitted.items()} if fitted else {}
        read = parse(self.text)
        values = {}
        for name in read.columns:
            plain = name.removeprefix(RANK_OF)
            if plain not in given:
                raise InputError(f"the rows have no column {plain}, which {self.text} reads")
            values[name] = given[plain]
            if name != plain:
                among = np.sort(of_fitted.get(plain, given[plain]))
                values[name] = np.searchsorted(among, given[plain], "right") / len(among)
        whole = Values(columns=values).score(read)
        if not isinstance(whole, Rejected):
            return whole
        scores = np.full(len(next(iter(given.values()))), np.nan)
        for row in range(len(scores)):
            score = Values(columns={k: v[row : row + 1] for k, v in values.items()}).score(read)
            if not isinstance(score, Rejected):
                scores[row] = score[0]
        return scores

    def score(self, data: Data, *, space: SpaceLike | None = None, **options: Any) -> float:
        """Spearman's rho of the scores with the targets of the data: a table, file or frame."""
        from lpzero.proxies.ranking import Ranking, rank, rank_columns

        reading = {name: options.pop(name) for name in FILE if name in options}
        loaded = load_table(data, space=space, **reading)
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

"""`lpzero.Discovery`: a campaign as an estimator, with results that a notebook shows."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spaces
from lpzero.arrays import FloatArray
from lpzero.discover.discovery import Campaign
from lpzero.errors import InputError
from lpzero.parallel import Workers
from lpzero.python.formula import FormulaObject
from lpzero.python.functions import Rows, context, flat
from lpzero.runs.config import Command, started_by
from lpzero.verbs.call import command, request_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from lpzero.proxies.predictor import PredictorProxy
    from lpzero.report.notebook import Page
    from spaces.base import Space
    from spaces.tables import Table

_HALL = ("formula", "fitness", "rho", "complexity")
_PARTS = ("train", "valid", "test")


class BestFormula(dict[str, Any]):
    """The winner: its facts as in result.json, and the formula as an object."""

    def __init__(self, facts: dict[str, Any], formula: FormulaObject) -> None:
        super().__init__(facts)
        self.formula = formula

    def __repr__(self) -> str:
        rho = ", ".join(f"{part} {self['rho'][part]:.3f}" for part in _PARTS if part in self["rho"])
        return f"{self.formula}  (rho: {rho})"

    def _repr_html_(self) -> str:
        return f"<p><code>{self.formula}</code></p>" + Rows([self["rho"]])._repr_html_()


@dataclass(frozen=True, eq=False)
class PredictorObject:
    """The predictor of a discovery, which is not a formula: scores, with standard deviations.

    Scores are normal: 0 is the middle of the table's labelled rows, larger is better.
    """

    proxy: PredictorProxy
    space: Space[Any]
    running: Mapping[str, Any]

    def predict(self, archs: Sequence[Any], return_std: bool = False) -> Any:
        """The scores (n,) of architectures, or of their JSON objects; with their deviations too."""
        from lpzero.proxies import Measurements

        read = [self.space.from_json(a) if isinstance(a, Mapping) else a for a in archs]
        for arch in read:
            self.space.validate(arch)
        found = self.proxy.predict(self.space, read, Measurements(context(**self.running)))
        return tuple(found) if return_std else found.scores

    def __repr__(self) -> str:
        return self.proxy.definition


class Discovery(Campaign):
    """A campaign on a table, by name, file or value: `Discovery("nano-gpt2").fit()`.

    After `fit` (or `run`): `best_`, `hall_of_fame_`, `history_`; `predict(archs)` scores
    architectures with the winner and `score(table)` correlates it with another table. Every setting
    of `lpzero discover` is an argument.
    """

    def __init__(self, table: Any = None, **options: Any) -> None:
        self._asked = {"table": table, **options}
        if isinstance(table, Path):
            table = str(table)
        if options.get("space") is not None:
            spaces.load(options["space"])  # the user names it: the campaign looks it up
        super().__init__(table, **options)

    def search(self) -> Campaign:
        """Search only; the directory keeps the command that would do the same."""
        with started_by(_command(self._asked)):
            return super().search()

    def fit(self) -> Discovery:
        """Search, then judge on the test rows."""
        self.run()
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every argument by name: those given, and the defaults or preset values of the others."""
        arguments = inspect.signature(Campaign.__init__).parameters.values()
        own = {
            argument.name: argument.default
            for argument in arguments
            if argument.default is not argument.empty
        }
        return own | asdict(self.settings) | self._asked

    @property
    def best_(self) -> BestFormula:
        """The winner, with its numbers on train, valid and test."""
        facts = dict(self.result_["best"])
        text = str(facts["formula"])
        return BestFormula(facts, FormulaObject(text, text if self.out is None else str(self.out)))

    @property
    def hall_of_fame_(self) -> Rows:
        """The best formulas and the front, best first, with their measures on train."""
        return Rows(super().hall_of_fame_, _HALL)

    @property
    def history_(self) -> Rows:
        """A row per generation: evaluations so far and the best so far."""
        return Rows(super().history_)

    def latex(self) -> str:
        """The winner as LaTeX."""
        return self._formula.latex()

    def sympy(self) -> Any:
        """The winner as a sympy expression."""
        return self._formula.sympy()

    def export(self, path: str | Path | None = None, to: str = "json", **options: Any) -> str:
        """The winner as a file's text, written to the path if there is one."""
        return self._formula.export(path, to, **options)

    def predict(self, archs: Sequence[Any]) -> FloatArray:
        """The winner's scores (n,) of architectures of the table's space; larger is better."""
        space = self.tables[0].space
        if space is None:
            raise InputError("the table has no networks: there are no architectures to score")
        return self._formula.predict(archs, space, **self._running())

    @property
    def predictor_(self) -> PredictorObject:
        """The predictor beside the winner: the best guess, and how sure it is."""
        from lpzero.proxies.predictor import PredictorProxy

        if not hasattr(self, "result_"):
            raise InputError("the campaign has not run: call fit() first")
        if self.prediction_ is None:
            raise InputError("there is no predictor: it belongs to choose='nested', predictor='gp'")
        [table] = self.tables
        assert table.space is not None, "the nested choice has networks"
        fitted, n_seeds = self.prediction_.predictor, len(self.objective.tables_fitness[0].seeds)
        name = f"{table.name}-predictor"
        proxy = PredictorProxy(name, fitted, table.space.name, self.options, n_seeds)
        # Seed, batch and definitions are those of the options.
        running = {name: self._running()[name] for name in ("cache", "device", "jobs")}
        return PredictorObject(proxy, table.space, running)

    def score(self, table: str | Table) -> float:
        """Spearman's rho of the winner on all rows of a table: in sample on its own table."""
        return self._formula.score(table, **self._running())

    def plot(self, name: str | None = None) -> Figure:
        """A figure of the report, the winner among its rivals if no name is given (Plotly)."""
        from lpzero.report import notebook

        return notebook.plot(self, name)

    def report(self) -> Page:
        """The page of the campaign; a notebook shows it in a frame, `save` writes it."""
        from lpzero.report import notebook

        return notebook.page(self)

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self._asked.items() if k != "table")
        names = ", ".join(table.name for table in self.tables)
        winner = f": {self.best_!r}" if hasattr(self, "result_") else ""
        return f"Discovery({names}{', ' if given else ''}{given}){winner}"

    def _repr_html_(self) -> str:
        if not hasattr(self, "result_"):
            return f"<p><code>{self!r}</code>: not fitted</p>"
        return self.best_._repr_html_() + self.hall_of_fame_._repr_html_()

    @property
    def _formula(self) -> FormulaObject:
        if not hasattr(self, "result_"):
            raise InputError("the campaign has not run: call fit() first")
        return self.best_.formula

    def _running(self) -> dict[str, Any]:
        return {
            "seed": self.options.seed,
            "cache": self.cache,
            "device": self.device,
            "jobs": self.workers.jobs,
            "batch": self.options.batch,
            "definitions": self.options.definitions,
        }


# What a command line cannot say, and what does not change the result.
_OF_PYTHON = ("sketches", "proxy_scores")
_NOT_OPTIONS = ("callbacks", "progress", "lock")


def _command(asked: Mapping[str, Any]) -> Command | None:
    """The command that does the same; None if there is none."""
    given = {name: value for name, value in asked.items() if name not in _NOT_OPTIONS}
    tables, reading = given.pop("table"), given.pop("reading", None)
    named = list(tables) if isinstance(tables, (list, tuple)) else [tables] if tables else []
    if any(given.pop(name, None) for name in _OF_PYTHON):
        return None
    if not all(isinstance(table, (str, Path)) for table in named):
        return None
    fields = {} if reading is None else asdict(reading)
    if isinstance(given.get("jobs"), Workers):
        del given["jobs"]
    names = tuple(str(table) for table in named)
    return command("discover", request_of("discover", names, **flat({**given, **fields})))

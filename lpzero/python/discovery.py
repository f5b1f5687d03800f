"""`lpzero.Discovery`: a campaign as an estimator, with results that a notebook shows."""

from __future__ import annotations

import inspect
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np

import spaces
from lpzero.arrays import FloatArray
from lpzero.discover.record import CampaignRun
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from lpzero.python.formula import FormulaObject
from lpzero.python.functions import FILE, context, load_table, run_verb
from lpzero.python.inputs import Data, SpaceLike, architecture, space_name, table_of
from lpzero.python.matrix import matching_columns, read_targets, table_of_matrix
from lpzero.python.rows import FormulaRow, GenerationRow, Rows
from lpzero.python.signatures import of_verb, options_of
from primitives.errors import did_you_mean
from primitives.mathml import to_mathml
from primitives.parser import parse
from spaces.untrusted import user_path

if TYPE_CHECKING:
    import sympy
    from plotly.graph_objects import Figure

    from lpzero.discover.campaign import Progress
    from lpzero.discover.discovery import Campaign
    from lpzero.proxies.predictor import PredictorProxy
    from lpzero.report.notebook import Page
    from spaces.base import Space
    from spaces.tables import ColumnTable, Table

_HALL = ("formula", "fitness", "rho", "complexity")
_PARTS = ("train", "valid", "test")
_RUNNING = ("cache", "device", "jobs", "batch", "length", "corpus", "tokenizer", "definitions")
logger = logging.getLogger("lpzero")


class BestFormula(dict[str, object]):
    """The winner: its facts as in result.json, and the formula as an object."""

    def __init__(self, facts: Mapping[str, Any], formula: FormulaObject) -> None:
        super().__init__(facts)
        self.formula = formula

    @property
    def rho(self) -> dict[str, float]:
        """Its rho on train, valid and test."""
        rho = cast("Mapping[str, float]", self["rho"])
        return {part: float(rho[part]) for part in _PARTS if part in rho}

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of its rho on test; of several tables there is none."""
        test = self._test
        return None if test is None else (float(test["rho_ci"][0]), float(test["rho_ci"][1]))

    @property
    def n(self) -> int | None:
        """The number of test rows; None with several tables."""
        return None if self._test is None else int(self._test["n"])

    @property
    def _test(self) -> Mapping[str, Any] | None:
        judged = list(cast("Mapping[str, Any]", self.get("judged", {})).values())
        return judged[0].get("test") if len(judged) == 1 else None

    def __repr__(self) -> str:
        return f"{self.formula}  ({self.figures})"

    @property
    def figures(self) -> str:
        """Rho on test with its interval and rows, and rho on the other parts."""
        rho = dict(self.rho)
        test = rho.pop("test", None)
        text = "" if test is None else f"rho {test:.3f}"
        if self.interval is not None and test is not None:
            low, high = self.interval
            text += f" [{low:.3f}, {high:.3f}] on {self.n} test rows"
        others = ", ".join(f"{part} {value:.3f}" for part, value in rho.items())
        return "; ".join(part for part in (text, others) if part)

    def _repr_html_(self) -> str:
        return f"<p>{to_mathml(parse(self.formula.text))}</p><p>{escape(self.figures)}</p>"


@dataclass(frozen=True, eq=False)
class PredictorObject:
    """The predictor of a discovery, which is not a formula: scores, with standard deviations.

    Scores are normal: 0 is the middle of the table's labelled rows, larger is better. The options
    are those of `lpzero.rank` that say how networks are run: cache, device, jobs.
    """

    proxy: PredictorProxy
    space: Space[Any]
    running: Mapping[str, Any]

    @overload
    def predict(
        self, archs: Sequence[object], return_std: Literal[False] = False
    ) -> FloatArray: ...

    @overload
    def predict(
        self, archs: Sequence[object], return_std: Literal[True]
    ) -> tuple[FloatArray, FloatArray]: ...

    def predict(self, archs: Sequence[object], return_std: bool = False) -> Any:
        """The scores (n,) of architectures; with `return_std` the standard deviations (n,) too."""
        from lpzero.proxies import Measurements

        read = [architecture(self.space, arch) for arch in archs]
        predicted = self.proxy.predict(self.space, read, Measurements(context(**self.running)))
        return tuple(predicted) if return_std else predicted.scores

    def __repr__(self) -> str:
        return self.proxy.definition


class Discovery:
    """A search for the formula that best ranks a table: `Discovery("nano-gpt2").fit()`.

    `data` is a table's name, a file, a table, a DataFrame with a `target`, pairs of an architecture
    of the `space` and its target, or a list of tables. `fit()` searches and judges; `fit(X, y)`
    does so for columns, as scikit-learn's estimators do. Then `predict` scores architectures or new
    rows (larger is better), `score` is Spearman's rho, and

    best_: the winner, with rho on train, valid and test.
    predictor_: the best guess, with standard deviations, which is not a formula.
    hall_of_fame_: the best formulas. history_: a row per generation. result_: everything.
    feature_names_in_, n_features_in_: the columns, if `fit` was given X.

    After an interrupt the object has what was found until then. `warm_start` goes on from what an
    earlier `fit` found. `progress` None shows a bar in a terminal or a notebook. A callback gets a
    `Progress` after every generation and returns True to stop.
    """

    tables_: tuple[Table | ColumnTable, ...]
    run_: CampaignRun
    result_: dict[str, object]
    _predictor: PredictorProxy | None = None
    # Every argument is an attribute; these of the verb are read here.
    out: str | Path | None
    resume: bool
    start: Sequence[str] | None
    smaller_is_better: bool
    weights_seed: int | None

    @of_verb("discover", "quiet", "no_lock")
    def __init__(
        self,
        data: Data | Sequence[Data] | None = None,
        *,
        space: SpaceLike | None = None,
        splits: int | None = 0,
        warm_start: bool = False,
        progress: bool | None = None,
        callbacks: Sequence[Callable[[Progress], bool | None]] = (),
        **options: Any,
    ) -> None:
        defaults = {entry.name: entry.default for entry in _options()}
        _check_names(options, defaults)
        self.data, self.space, self.splits = data, space, splits
        self.warm_start, self.progress, self.callbacks = warm_start, progress, callbacks
        vars(self).update(defaults | options)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every argument by name; None where the preset or the default of the command decides."""
        return {name: getattr(self, name) for name in (*_OWN, *(e.name for e in _options()))}

    def set_params(self, **params: Any) -> Discovery:
        """The object itself, with these arguments changed."""
        _check_names(params, self.get_params())
        vars(self).update(params)
        return self

    def fit(self, X: Any = None, y: Any = None) -> Discovery:
        """Search, then judge on the test rows; of X and y, or of the data alone.

        X is an array or DataFrame (n, p) of columns, y their targets (n,). Without y, X is what
        `data` may be.
        """
        given = {entry.name: getattr(self, entry.name) for entry in _options()}
        given["splits"] = self.splits
        if y is None and isinstance(X, np.ndarray):
            raise InputError("Discovery requires y to be passed, but the target y is None")
        for name in ("feature_names_in_", "n_features_in_"):
            vars(self).pop(name, None)
        if y is not None:
            table, is_named = table_of_matrix(X, y, bool(given.pop("smaller_is_better")))
            headings = list(getattr(X, "columns", [])) if is_named else []
            self.n_features_in_ = np.shape(X)[1]
            if is_named:
                self.feature_names_in_ = np.array(headings, dtype=object)
            tables: tuple[Any, ...] = (table,)
            given |= dict.fromkeys(FILE)
        else:
            tables = self._tables(self.data if X is None else X, given)
        if self.warm_start and hasattr(self, "run_"):
            given |= self._earlier()
        self._run(tables, given)
        return self

    def _tables(self, data: Any, given: dict[str, Any]) -> tuple[Any, ...]:
        if data is None:
            if self.out is not None and self.resume:
                return ()
            raise InputError("there are no data: give Discovery(data), or fit(X, y)")
        several = isinstance(data, list) and not isinstance(next(iter(data), None), tuple)
        reading = {name: given[name] for name in FILE if given[name]}
        tables = tuple(
            table_of(item, self.space, **reading) for item in (data if several else [data])
        )
        if all(isinstance(table, str) for table in tables):
            given["space"] = space_name(self.space)
            ends = (".csv", ".jsonl", ".ndjson", ".parquet", ".pq")
            if self.space is None and any(str(t).lower().endswith(ends) for t in tables):
                given["columns_only"] = True  # without a space there are no networks
        else:
            given |= dict.fromkeys(FILE)
        return tables

    def _earlier(self) -> dict[str, Any]:
        """What lets a campaign go on: its directory, or its formulas as the first ones."""
        if self.out is not None:
            return {"resume": True}
        formulas = [str(row["formula"]) for row in self.run_.hall]
        return {"start": tuple(dict.fromkeys((*(self.start or ()), *formulas)))}

    def _run(self, tables: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        from lpzero.parallel import is_watched, whole_bar
        from lpzero.report.notebook import run_of

        watched = is_watched() if self.progress is None else self.progress
        with _interruptible() as stop, _generations(whole_bar if watched else None) as show:
            watch = [stop, show, *self.callbacks]
            outcome = run_verb("discover", watched, {"tables": tables}, given, watch)
            campaign = outcome.about["campaign"]
            self.tables_ = tuple(campaign.tables)
            run = run_of(campaign)
            assert isinstance(run, CampaignRun)
            self.run_ = run
            self.result_ = dict(outcome.result)
            self._predictor = _predictor(campaign)
        if stop.is_asked:
            raise KeyboardInterrupt("the search was stopped; the object has what was found")

    @classmethod
    def load(cls, out: str | Path) -> Discovery:
        """The campaign in a run's directory, as it was after `fit`."""
        from lpzero.discover.settings import Settings
        from lpzero.export import select
        from lpzero.options import options
        from lpzero.proxies.lookup import predictor_proxy
        from lpzero.runs.run import open_run, report_unexpected_content

        run = open_run(user_path(out))
        if not isinstance(run, CampaignRun):
            raise InputError(f"{out} is a {run.kind}, not a campaign: read it with lpzero.load")
        if run.result is None:
            raise InputError(f"the campaign in {out} has no result yet: resume it")
        with report_unexpected_content(run.folder):
            names = [table["name"] for table in run.tables]
            # Where a run of somebody else computes, and what it writes, is not in its files.
            of_campaign = {entry.name for entry in options(Settings)}
            kept = {k: v for k, v in run.settings.items() if k in of_campaign}
            kept = {k: tuple(v) if isinstance(v, list) else v for k, v in kept.items()}
            made = cls(names if len(names) > 1 else names[0], out=str(out), **kept)
            made.tables_, made.run_, made.result_ = (), run, dict(run.result)
            has_predictor = "predictor" in run.result
            made._predictor = predictor_proxy(select(str(out))) if has_predictor else None
            repr(made)  # what it shows can be read
        return made

    @property
    def best_(self) -> BestFormula:
        """The winner, with its numbers on train, valid and test."""
        self._check_fitted()
        facts = cast("Mapping[str, object]", self.result_["best"])
        text = str(facts["formula"])
        return BestFormula(facts, FormulaObject(text, str(self.out or text)))

    @property
    def predictor_(self) -> PredictorObject:
        """The predictor beside the winner: `predict(archs, return_std=True)`."""
        self._check_fitted()
        if self._predictor is None:
            raise InputError("there is no predictor: it belongs to choose='nested', predictor='gp'")
        # Seeds, batch and definitions are those of the predictor's own options.
        running = {name: getattr(self, name) for name in ("cache", "device", "jobs")}
        return PredictorObject(self._predictor, self._space(), running)

    @property
    def hall_of_fame_(self) -> Rows[FormulaRow]:
        """The best formulas and the front, best first, with their measures on train."""
        self._check_fitted()
        return Rows(self.run_.hall, _HALL)

    @property
    def history_(self) -> Rows[GenerationRow]:
        """A row per generation: evaluations so far and the best so far."""
        self._check_fitted()
        return Rows(self.run_.history)

    @property
    def proxy_source(self) -> str:
        """What `lpzero.rank` and `lpzero.search` take as the proxy: the winner."""
        return self.best_.formula.proxy_source

    def latex(self) -> str:
        """The winner as LaTeX."""
        return self.best_.formula.latex()

    def sympy(self) -> sympy.Expr:
        """The winner as a sympy expression."""
        return self.best_.formula.sympy()

    def export(self, path: str | Path | None = None, to: str = "json", **options: object) -> str:
        """The winner as a file's text, written to the path if there is one."""
        return self.best_.formula.export(path, to, **options)

    def predict(self, X: Any) -> FloatArray:
        """The winner's scores (n,) of architectures of the table's space, or of rows of columns.

        Larger is better. Rows are an array or a DataFrame; one that has no score is NaN.
        """
        winner = self.best_.formula
        home = self._space()
        if home is not None:
            seed = 0 if self.weights_seed is None else self.weights_seed
            running = {name: getattr(self, name) for name in _RUNNING}
            return winner.predict(list(X), home, seed=seed, **running)
        fitted = self.tables_[0] if self.tables_ else None
        fitted_columns = {} if fitted is None or fitted.space is not None else dict(fitted.columns)
        if hasattr(self, "n_features_in_"):
            names = list(getattr(self, "feature_names_in_", ()))
            headings = names or [f"x{place}" for place in range(self.n_features_in_)]
            columns = matching_columns(X, headings, bool(names), type(self).__name__)
        else:
            columns = self._columns(X)
        return winner.predict_columns(columns, fitted_columns)

    def _columns(self, X: Any) -> dict[str, FloatArray]:
        from spaces.tables.row_files import is_frame, rows_of_frame

        if hasattr(X, "columns") and hasattr(X, "digest"):
            return dict(X.columns)
        if not is_frame(X):
            raise InputError("the formula reads columns by name: give rows as a DataFrame")
        rows = rows_of_frame(X, "X")
        read = {name.removeprefix("rank-of-") for name in parse(self.best_.formula.text).columns}
        from lpzero.scores.columns import formula_names

        names = formula_names(rows.headings)
        return {h: np.array(rows.numbers(h)) for h in rows.headings if names[h] in read}

    def score(self, X: Any, y: Any = None) -> float:
        """Spearman's rho of the winner's scores with the targets: in sample on its own rows.

        Of rows X with targets y; or of data as the object takes them, such as another table.
        """
        if y is not None:
            scores, targets = self.predict(X), read_targets(y)
            if self.smaller_is_better:
                targets = -targets
            worst = np.nanmin(scores) - 1 if np.isfinite(scores).any() else 0.0
            return spearman(np.where(np.isnan(scores), worst, scores), targets)
        self._check_fitted()
        reading = {name: getattr(self, name) for name in FILE if getattr(self, name)}
        table = load_table(X, space=self.space, **reading)
        if table.space is None:
            return spearman(self.predict(table), table.targets)
        running = {name: getattr(self, name) for name in _RUNNING}
        return self.best_.formula.score(table, seed=self.weights_seed, **running)

    def plot(self, name: str | None = None) -> Figure:
        """A figure of the report, the winner among its rivals if no name is given (Plotly)."""
        from lpzero.report import notebook

        self._check_fitted()
        return notebook.plot(self.run_, name)

    def report(self) -> Page:
        """The page of the campaign; a notebook shows it in a frame, `save` writes it."""
        from lpzero.report import notebook

        self._check_fitted()
        return notebook.page(self.run_)

    def __repr__(self) -> str:
        defaults = {name: p.default for name, p in _parameters().items()}
        params = self.get_params()
        given = [
            f"{k}={v!r:.60}"
            for k, v in params.items()
            if k in defaults and k != "data" and v is not defaults[k] and v != defaults[k]
        ]
        data = [] if self.data is None else [_shown(self.data)]
        text = f"Discovery({', '.join([*data, *given])})"
        if not hasattr(self, "run_"):
            return text
        lines = [text, f"  {self.best_.formula}", f"  {self.best_.figures}"]
        return "\n".join([*lines, *(f"  {line}" for line in self._sentences())])

    def _sentences(self) -> list[str]:
        """The verdict, which names the best rival, and what was left out of the table."""
        said = [] if self.result_.get("verdict") is None else [str(self.result_["verdict"])]
        return said + [note for table in self.tables_ for note in getattr(table, "remarks", ())]

    def _repr_html_(self) -> str:
        if not hasattr(self, "run_"):
            return f"<p><code>{escape(repr(self))}</code>: not fitted</p>"
        said = "".join(f"<p>{escape(line)}</p>" for line in self._sentences())
        return self.best_._repr_html_() + said + self.hall_of_fame_._repr_html_()

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "run_")

    def _space(self) -> Any:
        if self.tables_:
            return self.tables_[0].space
        name = self.run_.tables[0]["space"]
        return None if name == "none" else spaces.get(name)

    def _check_fitted(self) -> None:
        if not hasattr(self, "run_"):
            raise _not_fitted()(f"the {type(self).__name__} is not fitted: call fit() first")


_OWN = ("data", "space", "splits", "warm_start", "progress", "callbacks")


def _predictor(campaign: Campaign) -> PredictorProxy | None:
    """The predictor beside the campaign's winner as a proxy; None if there is none."""
    from lpzero.proxies.predictor import PredictorProxy

    prediction = campaign.prediction_
    if prediction is None:
        return None
    table = campaign.tables[0]
    assert table.space is not None, "the nested choice has networks"
    name, space = f"{table.name}-predictor", table.space.name
    return PredictorProxy(name, prediction.predictor, space, campaign.options, prediction.n_seeds)


def _options() -> list[Any]:
    return options_of(Discovery.__init__)


def _parameters() -> Mapping[str, inspect.Parameter]:
    from lpzero.python.signatures import sign

    return inspect.signature(sign(Discovery.__init__, Discovery)).parameters


def _check_names(given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in given:
        if name not in known:
            raise InputError(f"unknown option {name!r}; {did_you_mean(name, known)}")


def _shown(data: Any) -> str:
    if isinstance(data, (str, Path)):
        return str(data)
    if isinstance(data, list) and all(isinstance(item, str) for item in data):
        return ", ".join(data)
    name = getattr(data, "name", None)
    return name if isinstance(name, str) else f"{type(data).__name__} of {len(data)} rows"


def _not_fitted() -> type[Exception]:
    """The error of an object that is not fitted: scikit-learn's, too, where that is loaded."""
    loaded = sys.modules.get("sklearn.exceptions")
    kinds: tuple[type[Any], ...] = (InputError, AttributeError)
    if loaded is not None:
        kinds = (InputError, loaded.NotFittedError)
    return type("NotFittedError", kinds, {"__module__": __name__})


class _Stop:
    """Handles Ctrl-C: the generation is finished first; before and after, work is left at once."""

    def __init__(self) -> None:
        self.is_asked = self.is_evolving = False

    def handle(self, number: int, frame: Any) -> None:
        if self.is_asked or not self.is_evolving:
            raise KeyboardInterrupt
        self.is_asked = True
        logger.warning("finishing the generation; interrupt again to stop at once")

    def __call__(self, progress: Progress) -> bool:
        self.is_evolving = True
        return self.is_asked


@contextmanager
def _interruptible() -> Iterator[_Stop]:
    """A context in which an interrupt ends the search after its generation, and judges it."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, stop.handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _generations(whole_bar: Any) -> Iterator[Callable[[Progress], None]]:
    """A function that shows the generations in a bar; it opens with the first of them."""
    bars: list[Any] = []
    with ExitStack() as stack:

        def show(progress: Progress) -> None:
            if whole_bar is None:
                return
            if not bars:
                bars.append(stack.enter_context(whole_bar("generations", progress.generations)))
            bars[0].reach(progress.generation, f"train rho {progress.train:.3f}")
            if progress.generation >= progress.generations:
                stack.close()

        yield show

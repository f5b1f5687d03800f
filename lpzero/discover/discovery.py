"""A campaign as a Python call: configure, run, inspect.

found = Campaign("nano-gpt2", generations=20).run()
found.best_, found.hall_of_fame_, found.history_
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero import plugins
from lpzero.arrays import IntArray
from lpzero.discover import report
from lpzero.discover.campaign import Callback, CampaignOutcome, run
from lpzero.discover.campaign_columns import NetworkRivals, ProxyScores, table_columns
from lpzero.discover.candidate import is_candidate
from lpzero.discover.evolution import Evolution
from lpzero.discover.levels import LearningCurve, learning_sentence
from lpzero.discover.objective import Objective, floors
from lpzero.discover.prediction import TablePrediction
from lpzero.discover.settings import NESTED, NO_PREDICTOR, Settings, preset
from lpzero.discover.storage import (
    KIND,
    InDirectory,
    Storage,
    campaign_config,
)
from lpzero.discover.table_fitness import SketchesOf, TableFitness
from lpzero.discover.table_sources import TableSources
from lpzero.errors import InputError, RunError
from lpzero.judgement.correlation import Stability, stability
from lpzero.judgement.rivals import MeasureStability
from lpzero.parallel import Lost, Workers, stream
from lpzero.runs.config import RunConfig, read_config, table_entries
from lpzero.runs.directory import RunDirectory
from lpzero.runs.layout import CONFIG, PREDICTOR
from lpzero.runs.run import list_of
from lpzero.scores.floor import PERMUTATIONS, check_permutations
from lpzero.scores.formula_rivals import best_count
from lpzero.sketches.sketch import Sketch, SketchOptions
from lpzero.statistics import OURS
from primitives.formula import Formula
from primitives.parser import parse
from spaces.minibatch import Minibatch
from spaces.tables import Split, split
from spaces.tables import load_any as load
from spaces.tables.splits import whole_table_split

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table
    from spaces.tables.readers import ReadOptions

    AnyTable = Table | ColumnTable


class Campaign:
    """A campaign on one table or several, by name or as values.

    Fields of `Settings` are options too: `generations=20, unaries=3, objectives=("rho",
    "partial")`; they override the preset, "default" or "paper". With `out` the campaign is stored
    in that directory, and `resume=True` resumes the campaign there. `sketches` (one sequence per
    table) are used instead of the cache. A table may be a file, read as `reading` says, of columns
    or of architectures of `space`; `proxy_scores` computes the columns of `terms_from`. `jobs` may
    be the `Workers` of a cluster. Without `lock` the directory is not locked, for file systems that
    cannot. A callback gets a `Progress` after each generation and returns
    True to stop.

    After `run`: `best_` (the winner with its numbers on train, valid and test), `hall_of_fame_`
    (rows), `history_` (rows), `result_` (everything), `outcome_`, `prediction_` (the predictor
    beside the winner, if there is one).
    """

    def __init__(
        self,
        table: str | AnyTable | Sequence[str | AnyTable] | None = None,
        *,
        preset: str | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        data: str | Path | None = None,
        space: str | None = None,
        cache: str | Path | None = None,
        device: str = "cpu",
        jobs: int | Workers = 1,
        split_seed: int | None = None,
        sketch_seed: int | None = None,
        batch: Minibatch | None = None,
        definitions: str | None = None,
        sketches: Sequence[Sequence[Sketch]] | None = None,
        reading: ReadOptions | None = None,
        proxy_scores: ProxyScores | None = None,
        time_limit: float | None = None,
        permutations: int = PERMUTATIONS,
        callbacks: Sequence[Callback] = (),
        progress: bool = False,
        lock: bool = True,
        **settings: Any,
    ) -> None:
        self.out = None if out is None else Path(out)
        self.resume, self.data, self.cache, self.device = resume, data, cache, device
        self.workers = jobs if isinstance(jobs, Workers) else Workers(jobs)
        self.progress, self.lock = progress, lock
        self.time_limit, self.callbacks = time_limit, tuple(callbacks)
        if time_limit is not None and not time_limit > 0:
            raise InputError(f"time_limit is {time_limit!r}; expected seconds, more than 0")
        check_permutations(permutations)
        self.permutations = permutations
        if resume and self.out is None:
            raise InputError("there is nothing to resume without the campaign's directory (out)")
        kept = _stored_request(self.out) if self.out is not None and resume else None
        self.settings = _settings(kept, preset, settings)
        names = _names(kept, table)
        spaces = {entry["name"]: entry["space"] for entry in (kept or {}).get("tables", [])}
        self.sources = TableSources(
            lambda name, space: load(name, data, space), reading, (kept or {}).get("files")
        )
        self.tables: list[AnyTable] = [
            self.sources.load(name, space or spaces.get(name)) if isinstance(name, str) else name
            for name in names
        ]
        if any(table.space is None for table in self.tables):
            self.settings = replace(self.settings, columns_only=True)
        self.settings = self.settings.for_tables(len(self.tables))
        self._proxy_scores = proxy_scores
        if split_seed is None:
            split_seed = kept["split_seed"] if kept else 0
        if sketch_seed is None:
            sketch_seed = kept["sketch"]["seed"] if kept else 0
        if batch is None and kept and "batch" in kept["sketch"]:
            batch = Minibatch.from_json(kept["sketch"]["batch"])
        self.split_seed = split_seed
        if definitions is None:
            definitions = kept["sketch"].get("definitions", OURS) if kept else OURS
        self.options = SketchOptions(
            seed=sketch_seed, batch_seed=sketch_seed, batch=batch, definitions=definitions
        )
        self._given = sketches
        self.objective = self._objective()

    def run(self) -> Campaign:
        """Search, then report; the test rows are read only after the search."""
        return self.search().judge()

    def search(self) -> Campaign:
        """Search only; the targets of the test rows are not accessible to it."""
        judge = self.objective
        evolution = Evolution(self.settings, judge, judge.first_formulas, judge.column_facts)
        evolution.language.check_not_empty()
        for text in self.settings.start:
            evolution.language.read(text)
        with ExitStack() as stack:
            storage = Storage()
            if self.out is not None:
                directory = RunDirectory(
                    self.out, self.config, self.resume, is_candidate, self.lock
                )
                storage = InDirectory(stack.enter_context(directory))
            self.remarks_ = storage.remarks
            self.outcome_: CampaignOutcome = run(
                evolution, self.objective, storage, self.callbacks, self.time_limit
            )
        return self

    def judge(self) -> Campaign:
        """Judge the search's formulas, on the test rows too, and write the result."""
        counts = {
            table.name: best_count(table, self._searched(fitness), fitness.train_valid_rows)
            for table, fitness in zip(self.tables, self.objective.tables_fitness, strict=True)
            if table.space is not None
        }
        self.result_ = report.report(
            self.tables, self.objective, self.outcome_, counts, self._stability()
        )
        self.result_ |= {
            "permutations": self.permutations,
            "floor": floors(self.tables, self.objective, self.permutations, self.progress),
            "learning": self._learning(),
        }
        prediction = self.prediction_ = self._prediction()
        if prediction is not None:
            self.result_ |= prediction.to_json(self.tables[0])
        if self.out is not None:
            with RunDirectory(self.out, self.config, True, lock=self.lock) as directory:
                others = NetworkRivals(self._proxy_scores, self.options)
                supervised = [] if prediction is None else [prediction.reference]
                scores = report.scores(
                    self.tables, self.objective, self.result_, others, supervised
                )
                directory.write_sealed(
                    PREDICTOR, None if prediction is None else prediction.stored()
                )
                directory.write_result(self.result_, self.outcome_.seconds, scores)
        return self

    def _prediction(self) -> TablePrediction | None:
        """The predictor beside the winner of one table; None if it is not wanted."""
        s = self.settings
        if not self._has_level_of_rows or s.columns_only or s.predictor == NO_PREDICTOR:
            return None
        [fitness], formula = self.objective.tables_fitness, parse(self.result_["best"]["formula"])
        return TablePrediction(fitness, formula, self.objective.scores([formula], fitness)[0])

    def _learning(self) -> dict[str, Any] | None:
        """What the nested choice reaches on the test rows with fewer rows to choose on."""
        if not self._has_level_of_rows:
            return None
        [table], [fitness] = self.tables, self.objective.tables_fitness
        curve = LearningCurve(
            fitness.level_choice.level,
            fitness.levels,
            table.targets,
            fitness.train_valid_rows,
            fitness.parts.open_test(),
            table.twins(),
            self.split_seed,
        )
        label = f"learning curve of {table.name}" if self.progress else None
        points: dict[int, dict[str, Any] | None] = {}
        for place, point in stream(curve, curve.sizes, self.workers, label):
            if isinstance(point, Lost):
                raise RunError(f"the learning curve with {curve.sizes[place]} rows: {point.reason}")
            points[place] = point
        ordered = [point for _, point in sorted(points.items()) if point is not None]
        return {"points": ordered, "sentence": learning_sentence(ordered)}

    @property
    def _has_level_of_rows(self) -> bool:
        """Whether a level was chosen by leaving rows out, not tables."""
        return self.objective.rule == NESTED and len(self.tables) == 1

    def _searched(self, fitness: TableFitness) -> IntArray:
        """The rows that the search of the best count sees: those of the winner's."""
        is_nested = self.objective.rule == NESTED
        return fitness.train_valid_rows if is_nested else fitness.rows

    def _stability(self) -> MeasureStability | None:
        """What measures how far a formula's scores repeat; None without other seeds."""
        by_table = {fitness.table.name: fitness for fitness in self.objective.tables_fitness}
        if not self.settings.reads_second_seed or any(
            fitness.second_seed is None for fitness in by_table.values()
        ):
            return None

        def measure(formula: Formula, table: AnyTable) -> Stability:
            first, again = by_table[table.name].repeated_scores([formula])
            return stability(first[0], again)

        return measure

    @property
    def table_remarks(self) -> list[str]:
        """What was left out of tables of columns on reading them."""
        return [note for table in self.tables if table.space is None for note in table.remarks]

    @property
    def config(self) -> RunConfig:
        """The configuration as stored in the campaign's directory."""
        tables = table_entries(self.tables)
        sketch = self.options.to_json()
        return campaign_config(self.settings, tables, self.split_seed, sketch, self.sources.files)

    @property
    def best_(self) -> dict[str, Any]:
        """The winner."""
        return dict(self.result_["best"])

    @property
    def hall_of_fame_(self) -> list[dict[str, Any]]:
        """The best formulas and the front, best first, with their measures on train."""
        return self.outcome_.hall.rows([table.name for table in self.tables])

    @property
    def history_(self) -> list[dict[str, Any]]:
        """A row per generation: evaluations so far and the best so far."""
        return list(self.outcome_.tally.history)

    def _objective(self) -> Objective:
        tables_fitness = []
        for index, table in enumerate(self.tables):
            parts = self._parts(table)
            label = f"branches of {table.name}" if self.progress else None
            sources = self._sketch_sources(index, table)
            columns = table_columns(
                table, self.settings, (self.options, self._options(1)), self._proxy_scores
            )
            tables_fitness.append(
                TableFitness(
                    table,
                    parts,
                    sources[0],
                    self.settings,
                    self.workers,
                    label,
                    sources[1:],
                    columns,
                )
            )
        return Objective(tables_fitness, self.settings)

    def _parts(self, table: AnyTable) -> Split:
        """Train, valid and test; with `whole_table` train are the fitness rows, drawn from all."""
        if self.settings.whole_table and self.settings.archs is not None:
            return whole_table_split(table, self.split_seed, self.settings.archs)
        return split(table, self.split_seed)

    def _options(self, number: int) -> SketchOptions:
        """Those of other weights and another batch, 0 for the campaign's own."""
        seed, batch_seed = self.options.seed + number, self.options.batch_seed + number
        return replace(self.options, seed=seed, batch_seed=batch_seed)

    def _sketch_sources(self, index: int, table: AnyTable) -> list[SketchesOf]:
        """What gives the sketches of rows, then the same with other weights and other batches."""
        if self._given is not None:
            given = self._given[index]
            return [lambda rows: given if len(rows) == len(given) else [given[row] for row in rows]]
        if table.space is None:
            return [lambda rows: ()]  # no networks
        n_seeds = max(2, self.settings.weights_seeds)
        return [partial(self._sketches, table, self._options(number)) for number in range(n_seeds)]

    def _sketches(
        self, table: Table, options: SketchOptions, rows: Sequence[int]
    ) -> Sequence[Sketch]:
        from lpzero.sketches.builder import Builder, sketches  # torch, if any are missing
        from lpzero.sketches.store import Store, cache_folder

        store = Store(cache_folder(self.cache))
        label = f"sketches of {table.name}, seed {options.seed}" if self.progress else None
        builder = Builder(options, store, self.workers, self.device, label=label, is_lazy=True)
        return sketches(table if len(rows) == len(table) else table.only(rows), builder)


def _stored_request(folder: Path) -> dict[str, Any] | None:
    """The request of the campaign in the folder, if there is one."""
    stored = read_config(folder)
    if stored is None:
        return None
    stored.check_kind(KIND)
    if not stored.request.keys() >= {"tables", "split_seed", "sketch", "settings"}:
        raise RunError(f"{folder} has a broken {CONFIG}: restore it, or start another campaign")
    own = plugins.own_primitives()
    for name, digest in stored.request.get("primitives", {}).items():
        if own.get(name) != digest:
            state = "changed since" if name in own else "is of a plug-in of"
            given = list_of(stored.request.get("plugins"))
            files = " ".join(f"--plugin {shlex.quote(str(path))}" for path in given)
            raise RunError(
                f"operation {name} {state} the campaign in {folder}: resume with {files or 'it'} as"
                " it was, or start another campaign"
            )
    return dict(stored.request)


def _settings(kept: dict[str, Any] | None, name: str | None, changes: dict[str, Any]) -> Settings:
    """The settings of the preset, or of the campaign to resume, with the changes."""
    changes = {k: tuple(v) if isinstance(v, list) else v for k, v in changes.items()}
    asked = preset(name or "default", **changes)  # refuses unknown options in either case
    if kept is None or name is not None:
        return asked
    return replace(Settings.from_json(kept["settings"]), **changes)


def _names(kept: dict[str, Any] | None, table: Any) -> list[Any]:
    if table is None:
        if kept is None:
            raise RunError("no table is given, and there is no campaign to resume")
        return [entry["name"] for entry in kept["tables"]]
    names = [table] if not isinstance(table, (list, tuple)) else list(table)
    shown = [name if isinstance(name, str) else name.name for name in names]
    if not names or len(set(shown)) < len(shown):
        raise InputError(f"expected one table or several different ones, got {shown}")
    return names

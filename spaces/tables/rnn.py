"""NAS-Bench-NLP: recurrent cells with losses on WikiText-2 and Penn Treebank.

`rnn-wikitext2` is read from the training logs of Klyuchnikov et al. 2022, which hold the recipes of
the cells. Penn Treebank losses are those of the results of Serianni and Kalita 2023, joined with
the recipes on the number of the model in the names of the logs; the logs of all cells on Penn
Treebank are a larger file, which is used too if it lies beside the other.
"""

from __future__ import annotations

import csv
import json
import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import spaces
from spaces.errors import TableError
from spaces.tables.readers import architecture_of, field, read_text, refuse
from spaces.tables.source import Further, Origin, Source
from spaces.untrusted import UntrustedError, check_regular

if TYPE_CHECKING:
    from spaces.tables.table import Table

FOLDER = Path("rnn")
LOGS = "train_logs_wikitext-2.zip"
ALL_LOGS = "train_logs_single_run.zip"  # the user's own download of train_logs_single_run/logs.zip
RESULTS, PARAMETERS = "RNN_results.csv", "RNN_parameters.csv"
SOUND = "OK"
TRAINING_FREE = "aaronserianni/training-free-nas"
TRAINING_FREE_COMMIT = "2d76e01b9586cad7340e8268dadba3056efd070b"
_LOG = re.compile(r"(?:.*/)?log_stats_model_(\d{1,9})_[\w-]+\.json")
_LARGEST_LOG = 1 << 20
_LARGEST_ARCHIVE = 1 << 30
_MOST_LOGS = 40_000
_SHOWN = 60  # characters of a wrong value


class Log(NamedTuple):
    """A training: the model's number, its recipe as JSON text, how it ended and its losses."""

    model: str
    recipe: str
    is_sound: bool
    n_parameters: int
    validation: list[float]


def read_logs(path: Path) -> Iterator[Log]:
    """The trainings in an archive of logs, in the order of their names."""
    try:
        check_regular(path, _LARGEST_ARCHIVE)
        with zipfile.ZipFile(path) as archive:
            names = sorted(filter(_LOG.fullmatch, archive.namelist()))
            if not 0 < len(names) <= _MOST_LOGS:
                refuse(str(path), f"it has {len(names)} logs, expected 1 to {_MOST_LOGS}")
            for name in names:
                if archive.getinfo(name).file_size > _LARGEST_LOG:
                    refuse(f"{path}: {name}", f"more than {_LARGEST_LOG} bytes")
                yield _log(archive.read(name), name, f"{path}: {name}")
    except FileNotFoundError:
        raise TableError(f"{path}: the file is missing") from None
    except UntrustedError as error:
        raise TableError(str(error)) from None
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:
        raise TableError(f"{path}: not a readable archive ({error})") from error


def read_wikitext2(source: Source, path: Path) -> Table:
    """A row per recipe: minus the best validation loss, a mean over the trainings that ended well.

    `runs` is how many they are; the ceiling compares the first two of recipes that have two.
    """
    from spaces.tables.table import make_table, noise_ceiling

    space = spaces.get(source.space)
    trainings: dict[Any, list[tuple[str, float]]] = {}
    n_failed = 0
    for log in read_logs(path):
        where = f"{path}: model {log.model}"
        cell = _cell(space, log.recipe, where)
        losses = [loss for loss in log.validation if math.isfinite(loss)]
        if log.is_sound and not losses:
            refuse(where, "it ended well without a validation loss")
        if not log.is_sound:
            n_failed += 1
            continue
        trainings.setdefault(cell, []).append((log.model, -min(losses)))
    rows = [
        (runs[0][0], cell, sum(target for _, target in runs) / len(runs))
        for cell, runs in trainings.items()
    ]
    extra = {"runs": [float(len(runs)) for runs in trainings.values()]}
    ceiling = noise_ceiling([[target for _, target in runs] for runs in trainings.values()])
    return make_table(
        source.name, space, rows, source.target, source.licence, extra, ceiling, n_failed
    )


def read_ptb(source: Source, path: Path) -> Table:
    """A row per model of the results whose recipe is known, with the published metrics beside."""
    from spaces.tables.table import make_table, noise_ceiling

    space = spaces.get(source.space)
    recipes = _recipes(path.parent)
    rows = []
    extra: dict[str, list[float]] = {}
    by_cell: dict[Any, list[float]] = {}
    for model, values in read_results(path):
        if model in recipes:
            cell = _cell(space, recipes[model], f"model {model}")
            target = -values.pop("loss")
            rows.append((model, cell, target))
            by_cell.setdefault(cell, []).append(target)
            for name, value in values.items():
                extra.setdefault(name, []).append(value)
    if not rows:
        refuse(str(path), f"no model has a recipe in {LOGS}")
    ceiling = noise_ceiling(list(by_cell.values()))
    return make_table(source.name, space, rows, source.target, source.licence, extra, ceiling)


def read_results(path: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Each model of the published results, with its loss and metrics by their names."""
    lines = read_text(path).removeprefix("\ufeff").splitlines()
    for number, row in enumerate(csv.DictReader(lines), start=2):
        where = f"{path}: line {number}"
        match = _LOG.fullmatch(row.pop("log name", None) or "")
        if match is None or None in row or None in row.values():
            refuse(where, "expected the name of a log and a number in every column")
        yield match[1], {name.strip(): _number(value, name, where) for name, value in row.items()}


def read_parameters(path: Path) -> dict[str, int]:
    """The published number of parameters of each model; lines without one are left out."""
    pattern = re.compile(
        r"log_stats_model_(\d{1,9})_[\w-]+\.json(?:,[^,]*){3},(\d{1,12}),(\d{1,12})"
    )
    matches = (pattern.search(line) for line in read_text(path).splitlines())
    return {match[1]: int(match[2]) for match in matches if match is not None}


def count_recipes(path: Path) -> int:
    """The number of different recipes with a training that ended well."""
    recipes = {json.dumps(_json(log.recipe, str(path)), sort_keys=True) for log in _sound(path)}
    return len(recipes)


def count_joined(path: Path) -> int:
    """The number of models in the results whose recipe is known."""
    recipes = _recipes(path.parent)
    return sum(model in recipes for model, _ in read_results(path))


def _sound(path: Path) -> Iterator[Log]:
    return (log for log in read_logs(path) if log.is_sound)


def _recipes(folder: Path) -> dict[str, str]:
    """The recipe of each model in the archives of logs of a folder."""
    others = [path for path in (folder / ALL_LOGS,) if path.is_file()]
    return {log.model: log.recipe for path in (*others, folder / LOGS) for log in read_logs(path)}


def _log(data: bytes, name: str, where: str) -> Log:
    match = _LOG.fullmatch(name)
    assert match is not None
    try:
        record = _json(data.decode("utf-8"), where)
    except UnicodeDecodeError:
        refuse(where, "not UTF-8 text")
    losses = field(record, "val_losses", list, where)
    if not all(isinstance(loss, (int, float)) for loss in losses):
        refuse(where, "val_losses is not a list of numbers")
    status = field(record, "status", str, where)
    return Log(
        match[1],
        field(record, "recepie", str, where),
        status == SOUND,
        field(record, "num_params", int, where),
        [float(loss) for loss in losses],
    )


def _cell(space: Any, recipe: str, where: str) -> Any:
    with architecture_of(where):
        return space.from_json(_json(recipe, where))


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        refuse(where, "its JSON is nested too deep")
    except ValueError as error:
        refuse(where, f"broken JSON ({error})")


def _number(text: str, name: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        refuse(where, f"{name.strip()} = {text[:_SHOWN]!r}, expected a number")
    if not math.isfinite(value):
        refuse(where, f"{name.strip()} = {value}, expected a finite number")
    return value


def _further(name: str, digest: str) -> Further:
    origin = Origin(TRAINING_FREE, TRAINING_FREE_COMMIT, f"data/{name}", digest)
    return Further(FOLDER / name, origin)


_LOGS_ORIGIN = Origin(
    "fmsnew/nas-bench-nlp-release",
    "a6d90a3b19e3966b1d009c0970b3761aa46707d1",
    "train_logs_wikitext-2/logs.zip",
    "f5052d6bea6398001e32c986322a243e8cdedffa906caf242eb0a62ee105aa12",
)
_RESULTS_DIGEST = "4f084a9b437e4f89475ddb2ada896de2d6cb32268c59924e5542dbf017b90852"
_BESIDE: Mapping[str, str] = {
    PARAMETERS: "536548fa3eb073264b7db8c2fa4625ac6e2333aee0ba0f67b4b154048ac86428",
    "RNN_batch_ablation.csv": "e089e73ad5fa2fd420ad97ed36b64a5587a64a4af37ba319097e3a1ccc9bfe8e",
    "RNN_initialization_ablation.csv": (
        "920523728d69078ade80896aa682841f08615a0e4d3b9241078fbc6c87f8dff3"
    ),
}
SOURCES = (
    Source(
        name="rnn-wikitext2",
        space="nlp-rnn-wikitext2",
        n=289,
        target="minus validation loss",
        licence="Apache-2.0",
        path=FOLDER / LOGS,
        read=read_wikitext2,
        count=count_recipes,
        origin=_LOGS_ORIGIN,
    ),
    Source(
        name="rnn-ptb",
        space="nlp-rnn",
        n=275,
        target="minus test loss",
        licence="CC BY 4.0",
        path=FOLDER / RESULTS,
        read=read_ptb,
        count=count_joined,
        origin=Origin(TRAINING_FREE, TRAINING_FREE_COMMIT, f"data/{RESULTS}", _RESULTS_DIGEST),
        further=(
            Further(FOLDER / LOGS, _LOGS_ORIGIN),
            *(_further(name, digest) for name, digest in _BESIDE.items()),
        ),
    ),
)

"""Published metrics without networks: the recurrent cells of NAS-Bench-NLP, and NAS-Bench-301.

`rnn-columns` has the metrics of Serianni and Kalita (2023) for 8,794 trainings of recurrent cells,
`rnn-parameters` their numbers of parameters alone, for all trainings that ended well,
`nasbench301-columns` the zero-cost proxies of Krishnakumar et al. (2022).
"""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

from spaces.tables.readers import read_json, read_text, refuse
from spaces.tables.source import NO_SPACE, Origin, Source

if TYPE_CHECKING:
    from spaces.tables.column_table import ColumnTable

_RESULTS, _PARAMETERS = Path("rnn", "RNN_results.csv"), Path("rnn", "RNN_parameters.csv")
_ZERO_COST = Path("columns", "zc_nasbench301.json")
_TRAINING = re.compile(r"log_stats_model_\d+_[\d_-]+\.json")
_LEADING_NUMBER = re.compile(r"\d+")  # one count of the file has a heading fused to it
# Functions of the loss, which is the target.
_OUTCOMES = ("loss", "perplexity", "bits per word")
# About -71.1 in every row, where the ablation file of the same authors has other values for the
# same models; the two noise variants are computed from it.
_CORRUPT = ("Jacobian Covariance", "Large Noise Jacobian", "More Noised Jacobian")


def read_recurrent(source: Source, path: Path) -> ColumnTable:
    """The metrics and numbers of parameters of 8,794 trainings; target minus the loss."""
    from spaces.tables.column_table import make_column_table

    parameters = {training: count for training, _, count in _counts(path.parent / _PARAMETERS.name)}
    rows = list(csv.DictReader(io.StringIO(_text(path))))
    headings = [h for h in rows[0] if h != "log name" and h not in (*_OUTCOMES, *_CORRUPT)]
    columns = {h: [_number(path, row["log name"], h, row[h]) for row in rows] for h in headings}
    ids = [row["log name"] for row in rows]
    missing = [training for training in ids if training not in parameters]
    if missing:
        refuse(str(path.parent / _PARAMETERS.name), f"there is no row for {missing[0]}")
    columns["parameters"] = [parameters[training] for training in ids]
    losses = [_number(path, row["log name"], "loss", row["loss"]) for row in rows]
    return make_column_table(
        source.name, ids, [-loss for loss in losses], columns, source.target, source.licence
    )


def read_parameters(source: Source, path: Path) -> ColumnTable:
    """The numbers of parameters of the trainings that ended with a loss; target minus the loss."""
    from spaces.tables.column_table import make_column_table

    finite = [row for row in _counts(path) if math.isfinite(row[1])]
    return make_column_table(
        source.name,
        [training for training, _, _ in finite],
        [-loss for _, loss, _ in finite],
        {"parameters": [count for _, _, count in finite]},
        source.target,
        source.licence,
    )


def read_zero_cost(source: Source, path: Path) -> ColumnTable:
    """The zero-cost proxies of NAS-Bench-301; target validation accuracy."""
    from dataclasses import replace

    from spaces.tables.column_files import read_naslib
    from spaces.tables.readers import ReadOptions

    columns = read_naslib(path, ReadOptions())
    return replace(columns, name=source.name, target=source.target, licence=source.licence)


def count_lines(path: Path) -> int:
    """The number of rows below the headings."""
    return max(0, len(_text(path).splitlines()) - 1)


def count_parameters(path: Path) -> int:
    """The number of trainings with a loss."""
    return sum(math.isfinite(loss) for _, loss, _ in _counts(path))


def count_zero_cost(path: Path) -> int:
    """The number of architectures, over all tasks."""
    return sum(len(records) for records in read_json(path).values())


def _text(path: Path) -> str:
    return read_text(path).removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")


def _counts(path: Path) -> list[tuple[str, float, float]]:
    """(training, loss or NaN, parameters) of the whole rows; ids are taken by their pattern."""
    rows: dict[str, tuple[str, float, float]] = {}
    for line in csv.reader(io.StringIO(_text(path))):
        if len(line) < 6 or not _TRAINING.fullmatch(line[0]):
            continue
        count = _LEADING_NUMBER.match(line[5])
        if count is not None:
            loss = _number(path, line[0], "loss", line[1])
            rows.setdefault(line[0], (line[0], loss, float(count[0])))
    if not rows:
        refuse(str(path), "no row has an id of a training and a number of parameters")
    return list(rows.values())


def _number(path: Path, row: str, heading: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        refuse(f"{path}: {row}, column {heading}", f"{text[:40]!r} is not a number")


_TRAINING_FREE = "aaronserianni/training-free-nas", "2d76e01b9586cad7340e8268dadba3056efd070b"
SOURCES = (
    Source(
        name="rnn-columns",
        space=NO_SPACE,
        n=8794,
        target="minus Penn Treebank loss",
        licence="CC BY 4.0",
        path=_RESULTS,
        read=read_recurrent,
        count=count_lines,
        origin=Origin(
            *_TRAINING_FREE,
            path="data/RNN_results.csv",
            digest="4f084a9b437e4f89475ddb2ada896de2d6cb32268c59924e5542dbf017b90852",
        ),
    ),
    Source(
        name="rnn-parameters",
        space=NO_SPACE,
        n=10032,
        target="minus Penn Treebank loss",
        licence="CC BY 4.0",
        path=_PARAMETERS,
        read=read_parameters,
        count=count_parameters,
        origin=Origin(
            *_TRAINING_FREE,
            path="data/RNN_parameters.csv",
            digest="536548fa3eb073264b7db8c2fa4625ac6e2333aee0ba0f67b4b154048ac86428",
        ),
    ),
    Source(
        name="nasbench301-columns",
        space=NO_SPACE,
        n=725,
        target="CIFAR-10 validation accuracy",
        licence="Apache-2.0",
        path=_ZERO_COST,
        read=read_zero_cost,
        count=count_zero_cost,
        origin=Origin(
            repository="automl/NASLib",
            commit="a06ba0e9931fcfd4605ddbddb6ed068eb58e58f1",
            path="naslib/data/zc_nasbench301.json",
            digest="537e9abd6f0b14fdffdfcb3c07b18a037647b5c80808b3b2cf9a51b1b491aba1",
        ),
    ),
)

"""The FlexiBERT benchmark: 500 encoders with GLUE scores (Serianni and Kalita, 2023)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import spaces
from spaces.errors import shown
from spaces.tables.readers import architecture_of, field, read_json, refuse
from spaces.tables.source import Origin, Source

if TYPE_CHECKING:
    from spaces.tables.table import Table

TASKS = ("cola", "mnli", "mrpc", "qnli", "qqp", "rte", "sst", "sts")
OPERATIONS = {
    ("SA", "SDP"): "sdp",
    ("SA", "WMA"): "wma",
    ("LT", "DFT"): "dft",
    ("LT", "DCT"): "dct",
    ("DSC", 5): "dsc5",
    ("DSC", 9): "dsc9",
}


def read(source: Source, path: Path) -> Table:
    """The table, with the scores of the eight tasks as extra columns."""
    from spaces.tables.table import make_table

    space = spaces.get(source.space)
    records = _records(path)
    rows = []
    extra: dict[str, list[float]] = {task: [] for task in TASKS}
    for index, record in enumerate(records):
        where = f"{path}: row {index}"
        with architecture_of(where):
            arch = space.from_json(_architecture(record, where))
        rows.append((str(field(record, "id", int, where)), arch, _score(record, "glue", where)))
        for task in TASKS:
            extra[task].append(_score(record, task, where))
    return make_table(source.name, space, rows, source.target, source.licence, extra)


def count(path: Path) -> int:
    """The number of rows."""
    return len(_records(path))


def _records(path: Path) -> list[Any]:
    records = read_json(path)
    if not isinstance(records, list) or not records:
        refuse(str(path), "expected a list of architectures")
    return records


def _score(record: Any, name: str, where: str) -> float:
    return field(record, f"scores.{name}", float, where)


def _architecture(record: Any, where: str) -> dict[str, Any]:
    """The architecture as this project writes it."""
    prefix = "hparams.model_hparam_overrides"
    layers = field(record, f"{prefix}.nas_config.encoder_layers", list, where)
    return {
        "hidden": field(record, f"{prefix}.hidden_size", int, where),
        "layers": [_layer(layer, f"{where} layer {i}") for i, layer in enumerate(layers)],
    }


def _layer(layer: Any, where: str) -> dict[str, Any]:
    kind = field(layer, "operation_type", str, where)
    parameter = field(layer, "operation_parameter", object, where)
    operation = next((v for k, v in OPERATIONS.items() if k == (kind, parameter)), None)
    if operation is None:
        names = ", ".join(f"{k} {p}" for k, p in OPERATIONS)
        refuse(where, f"operation {kind:.40} {shown(parameter)} is unknown: use one of {names}")
    return {
        "operation": operation,
        "heads": field(layer, "num_operation_heads", int, where),
        "ffn": field(layer, "feed_forward_dimension", int, where),
        "stacks": field(layer, "num_feed_forward", int, where),
    }


SOURCES = (
    Source(
        name="flexibert",
        space="flexibert",
        n=500,
        target="glue",
        licence="CC BY 4.0",
        path=Path("flexibert/BERT_benchmark.json"),
        read=read,
        count=count,
        origin=Origin(
            repository="aaronserianni/training-free-nas",
            commit="2d76e01b9586cad7340e8268dadba3056efd070b",
            path="data/BERT_benchmark.json",
            digest="fa2ff7198dcd71e0b8021ed2ace1c221672c33cc56931b6dff31fda3d044784f",
        ),
    ),
)

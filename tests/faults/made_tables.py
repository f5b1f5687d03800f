"""Small tables for the fault script: the rows of a nano table, and made-up ones in other formats.

They are registered under the names of real tables in this process alone, with the digest of what
was written, so that a changed file is one that differs from the published table.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

import spaces
from spaces.tables import registry
from spaces.tables.flexibert import OPERATIONS, TASKS
from spaces.tables.source import table_digest
from spaces.tables.vit import DATASETS

N_ROWS = 22
NANO, LTS, FLEXIBERT, PIT = "nano-gpt2", "gpt2-wt103", "flexibert", "pit-c100"


def write(root: Path) -> None:
    """Write the tables under the root."""
    for name, make in ((NANO, _nano), (LTS, _lts), (FLEXIBERT, _flexibert), (PIT, _pit)):
        path = _path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)


def register(root: Path, published: Path) -> None:
    """Register the tables under the root; those under `published` are the published ones."""
    for name in (NANO, LTS, FLEXIBERT, PIT):
        source, original = registry.source(name), _path(published, name)
        if source.origin is None:
            digest = table_digest(original, None)
            made = replace(source, path=_path(root, name), n=N_ROWS, shipped_digest=digest)
        else:
            digest = table_digest(original, source.origin.members)
            made = replace(source, n=N_ROWS, origin=replace(source.origin, digest=digest))
        registry._SOURCES[name] = made


def _path(root: Path, name: str) -> Path:
    return root / ("nano-gpt2.json" if name == NANO else registry.source(name).path)


def _nano(path: Path) -> None:
    """The smallest rows of the shipped table: their networks are the quickest to run."""
    space = spaces.get(NANO)
    document = json.loads(registry.source(NANO).path.read_text())
    rows = document["rows"]
    rows.sort(key=lambda row: space.parameters(space.from_json(row["arch"])))
    document["rows"] = rows[:N_ROWS]
    path.write_text(json.dumps(document, indent=1))


def _drawn(name: str) -> list[Any]:
    space, rng = spaces.get(name), random.Random(0)
    return [space.to_json(space.sample(rng)) for _ in range(N_ROWS)]


def _lts(folder: Path) -> None:
    space: Any = spaces.get("gpt2")
    summary = {}
    for number, arch in enumerate(_drawn("gpt2")):
        fixed = {
            "n_token": space.vocabulary,
            "tgt_len": space.context,
            "cutoffs": [*space.cutoffs, 199997],
            "n_layer": len(arch["d_inner"]),
        }
        place = folder / f"config_{number}" / "j0"
        place.mkdir(parents=True)
        (place / "model_config.yaml").write_text(yaml.safe_dump({**arch, **fixed}))
        summary[f"config_{number}_j0"] = {"valid_ppl": 30.0 + 0.7 * number}
    (folder / "ppl_summary.yaml").write_text(yaml.safe_dump(summary))


def _flexibert(path: Path) -> None:
    path.write_text(json.dumps(flexibert_records(_drawn("flexibert"))))


def flexibert_records(archs: list[Any]) -> list[dict[str, Any]]:
    """The records of the published file for these architectures, with made-up scores."""
    words = {name: (kind, parameter) for (kind, parameter), name in OPERATIONS.items()}
    records = []
    for number, arch in enumerate(archs):
        layers = [
            {
                "operation_type": words[layer["operation"]][0],
                "operation_parameter": words[layer["operation"]][1],
                "num_operation_heads": layer["heads"],
                "feed_forward_dimension": layer["ffn"],
                "num_feed_forward": layer["stacks"],
            }
            for layer in arch["layers"]
        ]
        model = {"hidden_size": arch["hidden"], "nas_config": {"encoder_layers": layers}}
        scores = dict.fromkeys(("glue", *TASKS), 0.5 + number / 100)
        records.append(
            {"id": number, "hparams": {"model_hparam_overrides": model}, "scores": scores}
        )
    return records


def _pit(path: Path) -> None:
    import torch

    records = [
        {
            "arch": {
                "base_dim": arch["base_dim"],
                "mlp_ratio": arch["ratio"],
                "depth": arch["depths"],
                "num_heads": arch["heads"],
            },
            **{key: 50.0 + number / 3 for key, _ in DATASETS.values()},
        }
        for number, arch in enumerate(_drawn("pit"))
    ]
    torch.save(records, path)

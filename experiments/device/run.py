"""Whether a device, or bfloat16, ranks networks as the processor does in float32.

    python -m experiments.device.run --device cuda > device.json
    python -m experiments.device.run --device cpu --dtype bfloat16

Networks of two nano tables are scored twice, with the same weights and batch. For each table and
proxy: the rank correlation (Spearman) of the two scores over the networks, seconds per network of
all proxies together, and the accelerator's peak memory. JSON on stdout.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
import torch

from experiments.measured import prints_measured
from lpzero.arrays import FloatArray
from lpzero.judgement.correlation import spearman
from lpzero.options import Device
from lpzero.proxies.model_scores import score_networks
from lpzero.proxies.network import Network
from lpzero.statistics.isolation import capability, resolve_device, synchronise
from spaces.tables import load

TABLES = ("nano-gpt2", "nano-flexibert")
PROXIES = ("snip", "grad-norm", "fisher", "synflow", "ntkt", "engine-universal",
           "sum(mul(abs(G), abs(W)))")  # fmt: skip


@prints_measured
def main(form: str) -> None:
    """Print the comparison; the only form is json."""
    assert form == "json"
    parser = argparse.ArgumentParser(description="Compare a device with the processor.")
    parser.add_argument("--device", default="auto", help=str(Device().metavar))
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--rows", type=int, default=32)
    asked = parser.parse_args()
    device = resolve_device(asked.device)
    if (device.type, asked.dtype) == ("cpu", "float32"):
        sys.exit("this is what is compared with: give --device, or --dtype bfloat16")
    found = {
        name: compare(name, device, getattr(torch, asked.dtype), asked.rows) for name in TABLES
    }
    about = {"device": capability(asked.device), "dtype": asked.dtype, "rows": asked.rows}
    print(json.dumps(about | {"tables": found}, indent=1))


def compare(name: str, device: torch.device, dtype: torch.dtype, rows: int) -> dict[str, Any]:
    """The rank agreement of each proxy on the table, seconds per network, peak bytes."""
    here, here_seconds = scores(name, torch.device("cpu"), torch.float32, rows)
    there, there_seconds = scores(name, device, dtype, rows)
    peak = torch.accelerator.memory.max_memory_allocated(device) if device.type != "cpu" else None
    return {
        "rho": {proxy: round(spearman(here[proxy], there[proxy]), 4) for proxy in PROXIES},
        "seconds_cpu": round(here_seconds, 3),
        "seconds": round(there_seconds, 3),
        "peak_bytes": peak,
    }


def scores(
    name: str, device: torch.device, dtype: torch.dtype, rows: int
) -> tuple[dict[str, FloatArray], float]:
    """The scores of the table's first rows by proxy, and the seconds per network."""
    table = load(name)
    found: dict[str, FloatArray] = {proxy: np.empty(rows) for proxy in PROXIES}
    start = time.perf_counter()
    for index, arch in enumerate(table.archs[:rows]):
        model = table.space.build(arch, 0).to(device, dtype)
        for row in score_networks({"": Network(model, table.space.batch(0))}, PROXIES):
            found[row.proxy][index] = row.score
        synchronise(device)
    return found, (time.perf_counter() - start) / rows


if __name__ == "__main__":
    main(form="json")

"""How far sketches, scores and ranks move with the vector instructions of the processor.

    python -m experiments.benchmarks.capability nano-gpt2 nano-flexibert

Each table is sketched and exhausted (chains of one) with AVX-512, with AVX2 and with neither, in a
process of their own: torch, oneDNN, MKL, OpenBLAS and NumPy are told so by environment variables.
Everything is compared with AVX-512.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from experiments.measured import measured

# What the libraries are told: ATen, oneDNN, MKL, OpenBLAS; NumPy's list follows from its build.
LEVELS = {
    "AVX512": ("avx512", "AVX512_CORE", "AVX512", "SkylakeX"),
    "AVX2": ("avx2", "AVX2", "AVX2", "Haswell"),
    "DEFAULT": ("default", "SSE41", "SSE4_2", "Nehalem"),
}
VARIABLES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS",
             "OPENBLAS_CORETYPE")  # fmt: skip


def main() -> None:
    """Print a row per table and level."""
    parser = argparse.ArgumentParser(description="Compare the processor's vector instructions.")
    parser.add_argument("tables", nargs="*", default=["nano-gpt2", "nano-flexibert"])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measure(asked.tables[0], Path(asked.measure))
        return
    print("| table | instead of AVX512 | numbers that differ | 99.9% differ by at most |"
          " ranks that change, best 200 | least rho with the others | rho moves by over 0.001 |"
          " and by at most | same winner |")  # fmt: skip
    print("|" + "---|" * 9)
    for table in asked.tables:
        with tempfile.TemporaryDirectory() as folder:
            found = {level: _in_process(table, level, Path(folder)) for level in LEVELS}
            (_, first), *others = found.items()
            for level, other in others:
                print(f"| {table} | {level} | " + " | ".join(_row(first, other)) + " |", flush=True)
    print(measured())


def _in_process(table: str, level: str, folder: Path) -> dict[str, Any]:
    settings = dict(zip(VARIABLES, LEVELS[level], strict=True))
    command = [sys.executable, "-m", __spec__.name, table, "--measure", str(folder / level)]
    disabled = _numpy_features(level)
    settings |= {"NPY_DISABLE_CPU_FEATURES": " ".join(disabled)} if disabled else {}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings}
    subprocess.run(command, env=environment, check=True)
    info = json.loads((folder / level / "info.json").read_text())
    if info["capability"] != level:
        sys.exit(f"torch works with {info['capability']} here, {level} was asked for")
    return {**info, **np.load(folder / level / "numbers.npz")}


def _numpy_features(level: str) -> list[str]:
    """What NumPy must not use at this level, of what it was built to choose between."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    have = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    if level == "AVX512":
        return []
    return [n for n in have if level == "DEFAULT" or "512" in n or n == "X86_V4"]


def measure(name: str, folder: Path) -> None:
    """Write the sketches' numbers, the scores of the best formulas, and every formula's rho."""
    from lpzero.exhaust import ExhaustSettings, Query, exhaust
    from lpzero.scores.values import Values
    from lpzero.sketches.builder import Builder, sketches
    from lpzero.sketches.store import Store
    from lpzero.statistics.isolation import capability
    from spaces.tables import load, split

    table = load(name)
    found = sketches(table, Builder(store=Store(folder / "cache")))
    results, branches = exhaust(table, found, split(table, 0), folder / "run", ExhaustSettings())
    rho = np.concatenate([values[0].ravel() for _, values in results.measured()])  # type: ignore[union-attr]
    evaluator = Values(branches)
    best = results.best(Query(top=200))[:200]
    np.savez(
        folder / "numbers.npz",
        numbers=np.concatenate([one.numbers for one in found]),
        rho=rho,
        scores=np.stack([np.asarray(evaluator.score(entry.formula)) for entry in best]),
    )
    text = {"capability": capability(), "formulas": [str(entry.formula) for entry in best]}
    (folder / "info.json").write_text(json.dumps(text))


def _row(first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    from lpzero.judgement.correlation import spearman
    from lpzero.judgement.ranks import rank_many

    a, b = first["numbers"].astype(float), other["numbers"].astype(float)
    scale = np.maximum(np.abs(a), np.abs(b))
    apart = np.abs(a - b) / np.where(scale > 0, scale, 1.0)
    # The scores of the formulas that both have among their best.
    places = {text: i for i, text in enumerate(other["formulas"])}
    shared = [(i, places[t]) for i, t in enumerate(first["formulas"]) if t in places]
    here = first["scores"][[i for i, _ in shared]]
    there = other["scores"][[j for _, j in shared]]
    moved = (rank_many(here) != rank_many(there)).mean()
    least = min(spearman(x, y) for x, y in zip(here, there, strict=True))
    change = np.abs(first["rho"] - other["rho"])
    change = change[np.isfinite(change)]
    return [
        f"{(a != b).mean():.0%}",
        f"{np.quantile(apart, 0.999):.0e}",
        f"{moved:.3%}",
        f"{least:.6f}",
        f"{(change > 1e-3).mean():.2%} of {len(change):,} formulas",
        f"{change.max():.3f}",
        "yes" if first["formulas"][0] == other["formulas"][0] else "no",
    ]


if __name__ == "__main__":
    main()

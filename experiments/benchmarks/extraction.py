"""What extraction costs: against a bare forward and backward, in bytes, and with two jobs.

A bare pass is the same forward pass and loss, and the loss's gradient at every parameter: what a
step of training differentiates. Extraction needs the weights of the blocks and of both ends.

Everything is timed in one run, the ways to be compared taking turns, because the speed of a
machine changes from one minute to the next. Costs are processor time of one thread; filling a
store with one or two jobs is timed by the clock.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import click
import torch

import spaces
from experiments.measured import prints_measured
from lpzero.cli.options import format_option
from lpzero.cli.output import print_rows
from lpzero.parallel import Workers
from lpzero.sketches.builder import Builder, build
from lpzero.sketches.sketch import SketchOptions
from lpzero.sketches.store import Store
from lpzero.statistics.extraction import extract, weight_matrices
from lpzero.statistics.objective import objective
from spaces.tables import load


@click.command()
@click.option("--space", "names", multiple=True, default=("flexibert", "gpt2"), show_default=True)
@click.option("--table", "tables", multiple=True, help="Architectures of a table instead.")
@click.option("--archs", "n_archs", default=20, show_default=True)
@click.option("--repeats", default=5, show_default=True)
@format_option
@prints_measured
def main(
    names: tuple[str, ...], tables: tuple[str, ...], n_archs: int, repeats: int, form: str
) -> None:
    """Print the cost per architecture and the gain of a second job for each space or table."""
    torch.set_num_threads(1)
    drawn = [of_table(name) for name in tables] or [of_space(name, 2 * n_archs) for name in names]
    print_rows([cost(*one, n_archs, repeats) for one in drawn], form, "one at a time")
    print_rows([scaling(*one, n_archs) for one in drawn], form, "with two jobs")


def of_space(name: str, n: int) -> tuple[str, Any, list[Any]]:
    """The name, the space and its first `n` samples."""
    space, rng = spaces.get(name), random.Random(0)
    return name, space, [space.sample(rng) for _ in range(n)]


def of_table(name: str) -> tuple[str, Any, list[Any]]:
    """The name, the space and the architectures in an order of their own."""
    table = load(name)
    archs = list(table.archs)
    random.Random(0).shuffle(archs)
    return name, table.space, archs


def cost(name: str, space: Any, archs: list[Any], n_archs: int, repeats: int) -> dict[str, Any]:
    """Medians over architectures; each time is the least of its repeats.

    bare: forward, loss, gradients of every parameter. blocks: the same, gradients of the blocks'
    weight matrices only, as a pass that knows nothing of the ends would need.
    """
    times: list[dict[str, float]] = []
    for arch in archs[:n_archs]:
        start = time.process_time()
        model, tokens = space.build(arch, 0), space.batch(0)
        building = time.process_time() - start
        ways = {
            "bare": lambda m=model, t=tokens: bare(m, t),
            "blocks": lambda m=model, t=tokens: blocks_only(m, t),
            "extract": lambda m=model, t=tokens: extract(m, t, limit=4096),
        }
        times.append({"build": building, **least(ways, repeats)})
    seconds = {f"{name}_ms": 1e3 * median(t[name] for t in times) for name in times[0]}
    ratios = {
        f"over_{name}": median(t["extract"] / t[name] for t in times) for name in ("bare", "blocks")
    }
    ratios["most_over_bare"] = max(t["extract"] / t["bare"] for t in times)
    return {"of": name, "archs": len(times), **seconds, **ratios}


def least(ways: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The least processor time of each way, taking turns after one round to warm up."""
    found = dict.fromkeys(ways, float("inf"))
    for round_ in range(repeats + 1):
        for name, way in ways.items():
            start = time.process_time()
            way()
            if round_:
                found[name] = min(found[name], time.process_time() - start)
    return found


def loss_of(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    loss = objective(model, "auto", tokens, 0)
    return loss(model(tokens), tokens, slice(0, len(tokens)))


def bare(model: Any, tokens: torch.Tensor) -> None:
    torch.autograd.grad(loss_of(model, tokens), list(model.parameters()), allow_unused=True)


def blocks_only(model: Any, tokens: torch.Tensor) -> None:
    weights = [w for block in model.blocks for w in weight_matrices(block)]
    torch.autograd.grad(loss_of(model, tokens), weights)


def scaling(name: str, space: Any, archs: list[Any], n_archs: int) -> dict[str, Any]:
    """Seconds to fill an empty store with 1 and with 2 jobs, workers already started."""
    archs = archs[: 2 * n_archs]
    reports = {}
    for jobs in (1, 2):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as warm:
            workers = Workers(jobs)
            build(space, archs[:4], Builder(SketchOptions(), Store(Path(warm)), workers))
            reports[jobs], _ = build(
                space, archs, Builder(SketchOptions(), Store(Path(folder)), workers)
            )
    one, two = reports[1], reports[2]
    return {
        "of": name,
        "archs": one.n,
        "bytes_per_arch": one.bytes // one.n,
        "seconds_per_arch_1": one.seconds / one.n,
        "seconds_per_arch_2": two.seconds / two.n,
        "gain": one.seconds / two.seconds,
    }


if __name__ == "__main__":
    main()

"""What a network costs a search at the papers' budgets, and whether quick networks rank alike.

Three ways to score the same architectures, taking turns, in processor time of one thread:

    before     each part of the proxy builds and runs the network anew, with every gradient
    as-ranked  all parts from one network, as `lpzero rank` has it
    quick      all parts from one network, as a search has it

Two seeds of the networks as ranked say how much a draw matters: quick networks should rank like
those as ranked no worse than two of their seeds rank like each other.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click
import torch

import spaces
from experiments.measured import prints_measured
from lpzero.cli.options import format_option
from lpzero.cli.output import print_rows
from lpzero.judgement.correlation import spearman
from lpzero.proxies import Context, Measurements, find
from lpzero.proxies.base import Measure, NetworkProxy
from lpzero.proxies.network import Network
from lpzero.search.ledger import Ledger
from lpzero.search.scorer import Scorer
from spaces.base import Space

CORES = 2


class Budget(NamedTuple):
    """A search of a paper: where, by which proxy, over how many networks, in how many minutes."""

    space: str
    proxy: str
    networks: int
    minutes: float


BUDGETS = (Budget("autoformer-tiny", "dss++", 8050, 30), Budget("gpt2", "ntsr", 1300, 10))


@click.command()
@click.option("--archs", "n_archs", default=40, show_default=True)
@format_option
@prints_measured
def main(n_archs: int, form: str) -> None:
    """Print the cost per network, the minutes of the searches, and rank correlations."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        rows = [measured(budget, n_archs, Path(folder)) for budget in BUDGETS]
    for title, columns in (
        ("processor seconds per network", ("before", "as_ranked", "quick", "least_gain")),
        (f"minutes of the search on {CORES} cores", ("networks", "limit", *MINUTES)),
        ("rank correlation", ("rho_quick", "rho_seeds")),
    ):
        shown = ("space", "proxy", "archs", *columns)
        print_rows([{name: row[name] for name in shown} for row in rows], form, title)


MINUTES = ("minutes_before", "minutes_quick")


def measured(budget: Budget, n_archs: int, folder: Path) -> dict[str, Any]:
    """The row of a budget."""
    space, rng = spaces.get(budget.space), random.Random(0)
    archs = [space.sample(rng) for _ in range(n_archs + 1)]
    ranked, other, quick = (
        scorer(budget.proxy, space, Context(seed=seed, is_quick=is_quick, folder=folder / name))
        for name, seed, is_quick in (("ranked", 0, False), ("other", 1, False), ("quick", 0, True))
    )
    taken: dict[str, list[float]] = {"before": [], "as_ranked": [], "quick": []}
    for arch in archs:
        taken["before"].append(timed(before, ranked.leaves, space, arch, folder / "before"))
        taken["as_ranked"].append(timed(ranked.scores, [arch]))
        taken["quick"].append(timed(quick.scores, [arch]))
    # The first of each loads what is loaded once.
    seconds = {way: mean(times[1:]) for way, times in taken.items()}
    gains = [a / b for a, b in zip(taken["before"][1:], taken["quick"][1:], strict=True)]
    scores = ranked.scores(archs)
    return {
        "space": budget.space,
        "proxy": budget.proxy,
        "archs": n_archs,
        **seconds,
        "least_gain": min(gains),
        "networks": budget.networks,
        "limit": budget.minutes,
        **{
            column: budget.networks * seconds[way] / 60 / CORES
            for column, way in zip(MINUTES, ("before", "quick"), strict=True)
        },
        "rho_quick": spearman(quick.scores(archs), scores),
        "rho_seeds": spearman(other.scores(archs), scores),
    }


def scorer(proxy: str, space: Space[Any], context: Context) -> Scorer:
    """A scorer of its own, whose measurements are cached in the context's folder."""
    return Scorer(find(proxy), space, Measurements(context), Ledger(space))


def before(leaves: list[Any], space: Space[Any], arch: Any, folder: Path) -> None:
    """Measure the network leaf by leaf, the tangent kernel from the gradients of each sequence."""
    for leaf in leaves:
        if isinstance(leaf, NetworkProxy):
            measure = WITH_GRADIENTS if leaf.name == "ntkt" else leaf.measure
            Measurements(Context(folder=folder)).records(space, [arch], [measure])


def _ntkt(network: Network) -> float:
    return float(network.tangent.trace()) / network.entry[0] ** 2


WITH_GRADIENTS = Measure("ntkt-with-gradients", _ntkt)


def timed(run: Callable[..., Any], *arguments: Any) -> float:
    """The processor seconds of the call."""
    start = time.process_time()
    run(*arguments)
    return time.process_time() - start


if __name__ == "__main__":
    main()

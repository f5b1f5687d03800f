"""One pass of the supernet against SNIP of every subnet with inherited weights: time and ranks.

Everything is measured in one run, in processor time of one thread, and everything is charged: to
the one pass the supernet, the batch, the prefix sums and the scores, to the other way the same
supernet, and the copy and the pass of each subnet.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

import click
import numpy as np

import spaces
from experiments.measured import prints_measured
from lpzero.arrays import FloatArray
from lpzero.cli.options import format_option
from lpzero.cli.output import print_rows
from lpzero.judgement.correlation import spearman
from lpzero.proxies import Network, evaluate, get
from lpzero.statistics import LOSSES
from lpzero.statistics.isolation import single_thread
from lpzero.supernet import Saliency
from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace

T = TypeVar("T")
MILLI = 1000


@click.command()
@click.option("--space", "name", default="autoformer-tiny", show_default=True)
@click.option("--many", default=10_000, show_default=True, help="Subnets scored by the one pass.")
@click.option("--each", default=150, show_default=True, help="Subnets that are run themselves.")
@click.option("--isomers", "n_isomers", default=30, show_default=True, help="Of one group.")
@click.option("--loss", type=click.Choice(LOSSES), default="auto", show_default=True)
@click.option("--seed", default=0, show_default=True)
@format_option
@prints_measured
def main(name: str, many: int, each: int, n_isomers: int, loss: str, seed: int, form: str) -> None:
    """Print what a subnet costs either way, and how alike the two rank."""
    space = spaces.get(name)
    assert isinstance(space, AutoFormerSpace)
    rng = random.Random(seed)
    archs = [space.sample(rng) for _ in range(many)]
    group = _shuffled(space.sample(rng), n_isomers, rng)
    with single_thread():
        of_pass, (saliency, _) = _timed(lambda: _one_pass(space, archs, loss, seed))
        of_each, own = _timed(lambda: _each(space, archs[:each], loss, seed))
        within = _isomers(space, group, loss, seed)
    one, other = of_pass / many, of_each / each
    times = [("one pass", many, one), ("each subnet", each, other)]
    print_rows([{"way": w, "n": n, "ms per subnet": MILLI * t} for w, n, t in times], form)
    print_rows([{"times faster": round(other / one)}], form)
    print_rows(_agreement(saliency, archs[:each], own), form)
    print_rows(within, form)


def _one_pass(
    space: AutoFormerSpace, archs: list[AutoFormerArch], loss: str, seed: int
) -> tuple[Saliency, FloatArray]:
    saliency = Saliency.of(space, seed=seed, batch_seed=seed, loss=loss)
    return saliency, saliency.scores(archs)


def _each(space: AutoFormerSpace, archs: list[AutoFormerArch], loss: str, seed: int) -> FloatArray:
    """SNIP of each architecture with the supernet's weights and gradients of its own."""
    supernet, images = space.supernet(seed), space.batch(seed)
    snip = get("snip").measure  # type: ignore[attr-defined]
    networks = (Network(supernet.subnet(arch), images, loss, seed=seed) for arch in archs)
    return np.array([evaluate(snip, network).score for network in networks])


def _agreement(
    saliency: Saliency, archs: list[AutoFormerArch], own: FloatArray
) -> list[dict[str, object]]:
    """Over all of them and over those of one width, beside what counting parameters gives."""
    scores = saliency.scores(archs)
    parameters = np.array([float(saliency.space.parameters(arch)) for arch in archs])
    widths = np.array([arch.hidden for arch in archs])
    rows = []
    for what, kept in [
        ("all", np.full(len(archs), True)),
        *((f"hidden {hidden}", widths == hidden) for hidden in saliency.space.hidden),
    ]:
        rows.append(
            {
                "architectures": what,
                "n": int(kept.sum()),
                "one pass": _shown(spearman(scores[kept], own[kept])),
                "parameters": _shown(spearman(parameters[kept], own[kept])),
            }
        )
    return rows


def _isomers(
    space: AutoFormerSpace, group: list[AutoFormerArch], loss: str, seed: int
) -> list[dict[str, object]]:
    """Among isomers: the two ways against each other, and each against itself with other seeds."""
    seeds = (seed, seed + 1)
    one = [_one_pass(space, group, loss, s)[1] for s in seeds]
    own = [_each(space, group, loss, s) for s in seeds]
    compared = [
        ("one pass, each subnet", one[0], own[0]),
        ("one pass, two seeds", one[0], one[1]),
        ("each subnet, two seeds", own[0], own[1]),
    ]
    return [
        {
            "isomers": what,
            "n": len(group),
            "rho": _shown(spearman(first, second)),
            "spread": f"{first.std() / first.mean():.2%}, {second.std() / second.mean():.2%}",
        }
        for what, first, second in compared
    ]


def _shown(rho: float) -> str:
    return f"{rho:.4f}"


def _shuffled(arch: AutoFormerArch, n: int, rng: random.Random) -> list[AutoFormerArch]:
    """The architecture with heads and ratios in n different orders."""
    found: dict[AutoFormerArch, None] = {}
    heads, ratios = ([getattr(layer, f) for layer in arch.layers] for f in ("heads", "ratio"))
    while len(found) < n:
        rng.shuffle(heads)
        rng.shuffle(ratios)
        layers = tuple(map(AutoFormerLayer, heads, ratios))
        found[AutoFormerArch(arch.hidden, layers)] = None
    return list(found)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()

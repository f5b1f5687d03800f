"""Figures 2, 4, 5, 6, 7 and Table XI of T-Razor on the released tables of accuracies.

    python -m experiments.t_razor.figures --rows 60 --variants 20

What is measured of every network is kept in OUT as soon as it is there, so that after an
interruption the same command continues; the figures and tables are drawn from it at the end
(`experiments/t_razor/draw.py`). `--rows` architectures are drawn for Figures 2 (a),
4, 5 and Table XI, `--variants` of them for the initialisations, inputs and losses of Figures 6, 7.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.measured import prints_measured
from experiments.resumable import Row, random_rows, resume
from experiments.t_razor import passes
from experiments.t_razor.draw import Measured, write_all
from lpzero.cli.options import data_option, jobs_option
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies.families.activations import activation_distance
from lpzero.proxies.families.pruning import snip
from lpzero.proxies.network import Network
from lpzero.proxies.ranking import prefetch
from lpzero.statistics.isolation import single_thread
from spaces.tables import load

if TYPE_CHECKING:
    from spaces.tables import Table

FAMILIES = {"autoformer": "autoformer-c100-kd", "pit": "pit-c100-kd"}
OF_SUPERNET = "autoformer-imagenet"  # accuracies of a supernet, as in Figure 5
# Of Table XI, beside DSS and DSS++ of the pass here. The slow ones take longer than all others
# together.
PROXIES = ("snip", "activation-distance", "mgm", "grad-norm")
SLOW = ("grasp", "te-score", "ntk-trace", "gradsign")
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
N_PRUNED = 5  # architectures of Figure 2 (b) and (c)
# Beside DSS and DSS++ in Figure 6.
INDICATORS = {"snip": snip, "activation-distance": activation_distance}


@click.command()
@click.option("--rows", default=100, show_default=True, help="Architectures of each table.")
@click.option("--variants", default=30, show_default=True, help="Architectures of Figures 6, 7.")
@click.option("--slow", is_flag=True, help="Also GraSP, TE-score, NTK-trace, GradSign in Table XI.")
@click.option("--out", type=Path, default=Path("runs/trazor_figures"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(rows: int, variants: int, slow: bool, out: Path, jobs: int, data: str | None) -> None:
    """Measure what is missing, print the tables and write the figures to OUT."""
    tables = {family: random_rows(load(name, data), rows) for family, name in FAMILIES.items()}
    supernet = random_rows(load(OF_SUPERNET, data), rows)
    few = random_rows(load(FAMILIES["autoformer"], data), variants)
    with single_thread():
        measured = Measured(
            tables,
            supernet,
            few,
            plain={f: _plain(table, f, out) for f, table in tables.items()},
            initialised=_initialised(few, out),
            varied=_varied(few, out),
            pruned={family: _pruned(table, family, out) for family, table in tables.items()},
        )
    names = (*PROXIES, *(SLOW if slow else ()))
    context = Context(workers=Workers(jobs), label="proxies of Table XI")
    first, measurements = tables["autoformer"], Measurements(context)
    prefetch(first, [get(name) for name in names], measurements)
    scores = {name: get(name).score(first.space, first.archs, measurements) for name in names}
    click.echo(write_all(measured, scores, out))


def _plain(table: Table, family: str, out: Path) -> list[Row]:
    """A row per architecture: the sums of the pass with ones and the sum of logits."""

    def work(key: str) -> Iterator[Row]:
        arch = table.archs[table.ids.index(key)]
        yield passes.measure(passes.build(table.space, arch))

    return resume(out / f"plain-{family}.jsonl", table.ids, work)


def _initialised(table: Table, out: Path) -> list[Row]:
    """Rows per architecture and initialisation, with the scores of other indicators."""

    def work(key: str) -> Iterator[Row]:
        arch = table.archs[table.ids.index(key)]
        for name in passes.INITIALISATIONS:
            model = passes.build(table.space, arch, name)
            network = Network(model, table.space.batch(0))
            others = {indicator: _total(of(network)) for indicator, of in INDICATORS.items()}
            yield {"initialisation": name, **passes.measure(model), **others}

    return resume(out / "initialised.jsonl", table.ids, work)


def _total(found: Any) -> float:
    """A measure's value: its terms added up, if it gives terms of blocks."""
    return float(found if isinstance(found, float) else sum(map(sum, found)))


def _varied(table: Table, out: Path) -> list[Row]:
    """Rows per architecture and input with the sum of logits, and per loss with ones."""

    def work(key: str) -> Iterator[Row]:
        model = passes.build(table.space, table.archs[table.ids.index(key)])
        for name in passes.INPUTS:
            yield {"input": name, **passes.measure(model, image=name)}
        for name in passes.LOSSES:
            yield {"loss": name, **passes.measure(model, loss=name)}

    return resume(out / "varied.jsonl", table.ids, work)


def _pruned(table: Table, family: str, out: Path) -> list[Row]:
    """Rows per architecture, part and share of weights that are zeroed, untrained weights."""
    rng = random.Random(0)
    archs = {str(place): table.space.sample(rng) for place in range(N_PRUNED)}
    images = table.space.batch(0)

    def work(key: str) -> Iterator[Row]:
        model = passes.build(table.space, archs[key])
        for part in ("attention", "feed-forward"):
            for share in SHARES:
                moved = passes.pruned_change(model, part, share, images)
                yield {"part": part, "share": share, "change": moved}

    return resume(out / f"pruned-{family}.jsonl", list(archs), work)


if __name__ == "__main__":
    main()

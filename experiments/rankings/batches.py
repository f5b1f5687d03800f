"""How rho moves with the batch: 2 to 16 sequences of 32 to 192 tokens, proxies and formulas.

    python -m experiments.rankings.batches gpt2-wt103 --every 6
    python -m experiments.rankings.batches flexibert --every 12

Every network is run anew for each batch, on the same rows of the table. Values are kept in the
cache, so that an interrupted run continues. Prints a table and draws the picture.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero.cli.options import data_option, jobs_option
from lpzero.judgement.correlation import spearman
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies.ranking import prefetch
from spaces.minibatch import Minibatch
from spaces.tables import load

if TYPE_CHECKING:
    from lpzero.proxies.ranking import Row
    from spaces.tables import Table

BATCHES, LENGTHS = (2, 4, 8, 16), (32, 64, 128, 192)
LENGTH, BATCH = 64, 2  # while the other one varies
PROXIES = (
    "snip",
    "grad-norm",
    "synaptic-saliency",
    "head-importance",
    "fisher",
    "attention-confidence",
    "softmax-confidence",
    "activation-distance",
    "jacobian-cosine",
    "jacobian-covariance",
)
FORMULAS = ("lpzero-gpt2", "lpzero-flexibert", "engine-universal@0.2")


def settings() -> list[Minibatch]:
    """The batches at one length, then the lengths at one batch, each once."""
    found = [Minibatch(batch, LENGTH) for batch in BATCHES]
    found += [Minibatch(BATCH, length) for length in LENGTHS]
    return list(dict.fromkeys(found))


def name_of(batch: Minibatch) -> str:
    return f"{batch.inputs} × {batch.length}"


def measure(table: Table, context: Context) -> list[Row]:
    """A row for each proxy and formula with its rho on every batch, and how far it moves."""
    rows: dict[str, Row] = {
        name: {"proxy": name, "n": len(table)} for name in (*PROXIES, *FORMULAS)
    }
    for batch in settings():
        measurements = Measurements(replace(context, batch=batch))
        proxies = [get(name) for name in rows]
        prefetch(table, proxies, measurements)
        for proxy in proxies:
            scores = proxy.score(table.space, table.archs, measurements)
            known = np.isfinite(scores)
            rho = spearman(scores[known], table.targets[known]) if known.sum() > 2 else np.nan
            rows[proxy.name][name_of(batch)] = float(rho)
    for row in rows.values():
        values = [row[name_of(batch)] for batch in settings()]
        row["largest change"] = max(values) - min(values)
    return list(rows.values())


def draw(rows: list[Row], title: str, path: Path) -> None:
    """Rho against the number of sequences, and against their length."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    FigureCanvasSVG(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    for row in rows:
        style = "-" if row["proxy"] in FORMULAS else "--"
        of_batch = [row[name_of(Minibatch(batch, LENGTH))] for batch in BATCHES]
        of_length = [row[name_of(Minibatch(BATCH, length))] for length in LENGTHS]
        left.plot(BATCHES, of_batch, style, marker=".", label=row["proxy"])
        right.plot(LENGTHS, of_length, style, marker=".")
    left.set_xscale("log", base=2)
    left.set_xticks(BATCHES, [str(batch) for batch in BATCHES])
    right.set_xticks(LENGTHS)
    left.set_xlabel(f"sequences of {LENGTH} tokens")
    right.set_xlabel(f"tokens of {BATCH} sequences")
    left.set_ylabel("Spearman's rho")
    figure.suptitle(f"{title}, {rows[0]['n']} architectures")
    figure.legend(loc="outside right upper", fontsize="small")
    figure.savefig(path, metadata={"Date": None})


@click.command()
@click.argument("table", type=click.Choice(["gpt2-wt103", "flexibert"]))
@click.option("--every", "step", type=click.IntRange(min=1), default=1, help="Every so many rows.")
@click.option("--out", type=Path, default=Path("runs/batch_and_length"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(**given: Any) -> None:
    """Print rho on every batch, and draw it."""
    table = load(given["table"], given["data"])
    table = table.only(range(0, len(table), given["step"]))
    context = Context(workers=Workers(given["jobs"]), label=given["table"])
    rows = measure(table, context)
    columns = ["proxy", *(name_of(batch) for batch in settings()), "largest change"]
    given["out"].mkdir(parents=True, exist_ok=True)
    draw(rows, given["table"], given["out"] / f"{given['table']}.svg")
    print(f"{len(table)} architectures\n")
    print(markdown(rows, columns))


if __name__ == "__main__":
    main()

"""The one-shot trainings that the other scripts read: four samplers, several seeds.

    python -m experiments.prenas.nano_trainings --out runs/one_shot

Each is a run directory; a stopped script continues.
"""

from __future__ import annotations

from pathlib import Path

import click

from lpzero.supernet.one_shot import SupernetRequest, SupernetSettings, train_supernet
from lpzero.supernet.selection import SAMPLERS

SPACE, STEPS = "nano-autoformer", 1500


def folder_of(out: Path, sampler: str, seed: int) -> Path:
    """The run directory of a training."""
    return out / f"{sampler}-{seed}"


def training(out: Path, sampler: str, seed: int) -> Path:
    """Train, or continue, or find finished; the run's directory."""
    settings = SupernetSettings(sampler=sampler, steps=STEPS, seed=seed, every=500)
    folder = folder_of(out, sampler, seed)
    train_supernet(SupernetRequest.of(SPACE, settings), folder)
    return folder


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option("--seeds", default=3, show_default=True)
@click.option("--only", "samplers", multiple=True, help="Only this sampler; repeatable.")
def main(out: Path, seeds: int, samplers: tuple[str, ...]) -> None:
    """Train supernets with every sampler and seed."""
    for seed in range(seeds):
        for sampler in samplers or SAMPLERS:
            click.echo(training(out, sampler, seed))


if __name__ == "__main__":
    main()

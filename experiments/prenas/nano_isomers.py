"""Tables 4, 7 and 8 of PreNAS at nano scale: which isomer does SNIP choose, and is it good?

    python -m experiments.prenas.nano_isomers --out runs/one_shot

Tables 7 and 8: all networks of width 64 and depth 4 that differ in where the larger MLP ratio (case
1: 1 or 2, two heads) or the larger number of heads (case 2: 1 or 4, ratio 2) is, grouped by how
many layers have it. Accuracies are those in redundant supernets, on test fonts. Table 4: of one
group the isomer of layer-normalised SNIP, that of plain SNIP and a random one, each trained alone.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np

import spaces
from experiments.measured import prints_measured
from experiments.prenas.nano_trainings import SPACE, folder_of
from experiments.student import interval
from lpzero import files
from lpzero.cli.options import format_option
from lpzero.cli.output import print_rows
from lpzero.statistics.isolation import single_thread
from lpzero.supernet import Saliency, isomers, mean_best_rank
from lpzero.supernet.one_shot import SupernetSettings
from lpzero.supernet.trained import open_supernet
from lpzero.supernet.trainer import Trainer, measure
from spaces.autoformer import AutoFormerArch, AutoFormerLayer
from spaces.training.shared_tasks import task_of

DRAWS, ALONE_STEPS, WIDTHS = 2000, 1500, (64,)
CASES = {
    "case 1 (ratios)": [AutoFormerLayer(2, ratio) for ratio in (1.0, 2.0)],
    "case 2 (heads)": [AutoFormerLayer(heads, 2.0) for heads in (1, 4)],
}


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option("--seeds", default=3, show_default=True)
@click.option("--alone", is_flag=True, help="Train the isomers of Table 4 instead.")
@format_option
@prints_measured
def main(out: Path, seeds: int, alone: bool, form: str) -> None:
    """Print mBR beside chance, or the accuracies of isomers trained alone."""
    table4(out, seeds, form) if alone else table8(out, seeds, form)


def table8(out: Path, seeds: int, form: str) -> None:
    """Print the spans of accuracy in the groups, and the mean best rank."""
    space = spaces.get(SPACE)
    passes = [Saliency.of(space, seed=seed, batch_seed=seed) for seed in range(seeds)]
    supernets = [open_supernet(folder_of(out, "redundant", seed)) for seed in range(seeds)]
    rows = []
    for case, layers in CASES.items():
        archs = [AutoFormerArch(64, chosen) for chosen in itertools.product(layers, repeat=4)]
        groups = [isomers(space, arch) for arch in archs]
        targets = [np.array([s.measure(a, "test").value for a in archs]) for s in supernets]
        sizes = Counter(groups)
        spans = [
            max(t[i] for i in inside) - min(t[i] for i in inside)
            for t in targets
            for group in sizes
            if len(inside := [i for i, g in enumerate(groups) if g == group]) > 1
        ]
        rng = np.random.default_rng(0)
        chance = [mean_best_rank(rng.random(len(archs)), targets[0], groups) for _ in range(DRAWS)]
        row: dict[str, Any] = {"case": case, "mean span": round(float(np.mean(spans)), 3)}
        for name, normalised in (("SNIP", False), ("by layer", True)):
            pairs = zip(passes, targets, strict=True)
            found = [mean_best_rank(p.scores(archs, normalised), t, groups) for p, t in pairs]
            row[name] = interval(np.array(found)).lstrip("+")
        row["chance"] = f"{np.mean(chance):.2f} ± {np.std(chance):.2f}"
        rows.append(row)
    print_rows(rows, form, f"mBR in redundant supernets, {seeds} seeds, test fonts")


def table4(out: Path, seeds: int, form: str) -> None:
    """Train isomers alone and print their accuracies and paired differences."""
    space, found = spaces.get(SPACE), {}
    heads, ratios = (1, 1, 2, 4), (0.5, 1.0, 2.0, 2.0)
    for seed, hidden in itertools.product(range(seeds), WIDTHS):
        every = [
            AutoFormerArch(hidden, tuple(map(AutoFormerLayer, h, r)))
            for h in sorted(set(itertools.permutations(heads)))
            for r in sorted(set(itertools.permutations(ratios)))
        ]
        saliency = Saliency.of(space, seed=seed, batch_seed=seed)
        chosen = {
            "by layer (PreNAS)": every[int(np.argmax(saliency.scores(every, True)))],
            "SNIP": every[int(np.argmax(saliency.scores(every)))],
            "random isomer": random.Random(seed).choice(every),
        }
        for name, arch in chosen.items():
            path = out / "alone" / f"{name.split()[0]}-{hidden}-{seed}.json"
            found[name, hidden, seed] = _trained(path, arch, seed)
    rows = []
    names = dict.fromkeys(name for name, _, _ in found)
    by_seed = {
        name: np.array([np.mean([found[name, h, s] for h in WIDTHS]) for s in range(seeds)])
        for name in names
    }
    for name, values in by_seed.items():
        difference = interval(values - by_seed["random isomer"])
        is_random = name == "random isomer"
        shown = "-" if is_random else difference
        rows.append({"isomer": name, "accuracy": values.mean(), "minus random": shown})
    print_rows(rows, form, f"trained alone for {ALONE_STEPS} steps, {seeds} seeds, test fonts")


def _trained(path: Path, arch: AutoFormerArch, seed: int) -> float:
    """The accuracy of the architecture trained alone; kept in the file."""
    if path.exists():
        return float(json.loads(path.read_text())["test"])
    space = spaces.get(SPACE)
    task, settings = task_of(space), SupernetSettings(steps=ALONE_STEPS, seed=seed)
    with single_thread():
        trainer = Trainer(space, task, settings, [arch])
        for _ in range(settings.steps):
            trainer.step()
        value = measure(trainer.supernet, task, arch, settings, "test").value
    files.write_json(path, {"arch": space.to_json(arch), "test": value})
    return value


if __name__ == "__main__":
    main()

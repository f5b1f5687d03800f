"""Twelve real trainings: the loop `budget` against Optuna, random search and the largest first.

    python -m experiments.budget.trainings --seeds 3

A small space of one's own: networks that predict the next character of Python's own help texts from
the eight before it, trained for 120 steps. Every way chooses twelve trainings; what it found best
is trained again from three more seeds. A training depends on architecture and seed alone, and is
done once for all ways. All of them are kept in --out, so that a stopped run continues.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from torch import nn

import lpzero
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from experiments.resumable import resume
from lpzero.runs.journal import Journal

CONTEXT, STEPS, BATCH, RATE = 8, 120, 128, 3e-3
BUDGET, N_AGAIN = 12, 3
CHARACTERS = 96
CHOICES: dict[str, Any] = {
    "layers": [1, 2, 3, 4],
    "width": [16, 24, 32, 48, 64, 96],
    "embedding": [2, 4, 8, 16],
    "activation": ["relu", "gelu", "tanh"],
    "residual": [0, 1],
}
ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "gelu": nn.functional.gelu,
    "tanh": torch.tanh,
}


class Characters(nn.Module):
    """Predicts the character after each of the contexts (B, CONTEXT)."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding(CHARACTERS, config.embedding)
        self.first = nn.Linear(CONTEXT * config.embedding, config.width)
        self.blocks = nn.ModuleList(
            nn.Linear(config.width, config.width) for _ in range(config.layers)
        )
        self.head = nn.Linear(config.width, CHARACTERS)
        self.activation, self.residual = ACTIVATIONS[config.activation], config.residual

    def forward(self, tokens: torch.Tensor) -> Any:
        x = self.activation(self.first(self.embedding(tokens).flatten(1)))
        for block in self.blocks:
            x = self.activation(block(x)) + self.residual * x
        return self.head(x)


def n_parameters(config: Any) -> int:
    """The parameters of the network."""
    e, w = config.embedding, config.width
    return int(
        CHARACTERS * e + (CONTEXT * e + 1) * w + config.layers * (w + 1) * w + (w + 1) * CHARACTERS
    )


SPACE = lpzero.space(
    CHOICES,
    build=Characters,
    name="characters",
    batch=(4, CONTEXT),
    vocabulary=CHARACTERS,
    parameters=n_parameters,
)


@cache
def _windows() -> tuple[torch.Tensor, torch.Tensor]:
    """Contexts and the next characters, of training and of held-out text."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    ids = torch.tensor([min(max(ord(letter) - 32, 0), CHARACTERS - 1) for letter in text])
    every = ids.unfold(0, CONTEXT + 1, 1)
    edge = len(every) * 9 // 10
    return every[:edge], every[edge + CONTEXT :: 20]


def train(arch: Any, seed: int) -> float:
    """Minus the held-out loss after training, in nats per character."""
    known, held_out = _windows()
    torch.manual_seed(seed)
    model = Characters(arch)
    steps = torch.optim.Adam(model.parameters(), RATE)
    for _ in range(STEPS):
        some = known[torch.randint(len(known), (BATCH,))]
        loss = nn.functional.cross_entropy(model(some[:, :-1]), some[:, -1])
        steps.zero_grad()
        loss.backward()
        steps.step()
    with torch.no_grad():
        lost = nn.functional.cross_entropy(model(held_out[:, :-1]), held_out[:, -1])
    return -float(lost)


Trained = Callable[[Any, int], float]


def by_loop(seed: int, trained: Trained) -> list[Any]:
    found = lpzero.search(SPACE, budget=BUDGET, train=trained, seed=seed, progress=False)
    return [SPACE.from_json(entry["arch"]) for entry in found["trace"]]


def by_optuna(seed: int, trained: Trained, n_starts: int = 0) -> list[Any]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for params in lpzero.optuna.starts(SPACE, n_starts, seed=seed) if n_starts else ():
        study.enqueue_trial(params)
    distributions = lpzero.optuna.to_distributions(SPACE)
    archs = []
    for _ in range(BUDGET):
        trial = study.ask(distributions)
        archs.append(lpzero.optuna.architecture(SPACE, trial.params))
        study.tell(trial, trained(archs[-1], 0))
    return archs


def with_starts(seed: int, trained: Trained) -> list[Any]:
    return by_optuna(seed, trained, 6)


def at_random(seed: int, trained: Trained) -> list[Any]:
    return [_all()[i] for i in np.random.default_rng(seed).permutation(len(_all()))[:BUDGET]]


def largest_first(seed: int, trained: Trained) -> list[Any]:
    return sorted(_all(), key=n_parameters, reverse=True)[:BUDGET]


@cache
def _all() -> list[Any]:
    """Every architecture of the space."""
    import itertools

    values = itertools.product(*CHOICES.values())
    return [SPACE.from_json(dict(zip(CHOICES, of, strict=True))) for of in values]


WAYS: dict[str, Callable[[int, Trained], list[Any]]] = {
    "loop": by_loop,
    "Optuna TPE, the same six starts": with_starts,
    "Optuna TPE, cold": by_optuna,
    "random": at_random,
    "parameters, the largest first": largest_first,
}


class Trainings:
    """Trains once, and keeps what is trained in a journal."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.known = {record["training"]: record["target"] for record in journal.records()}
        journal.go_to(len(journal))

    def __call__(self, arch: Any, seed: int) -> float:
        key = f"{seed} {json.dumps(SPACE.to_json(arch), sort_keys=True)}"
        if key not in self.known:
            self.known[key] = train(arch, seed)
            self.journal.append([{"training": key, "target": self.known[key]}])
            self.journal.sync()
        return float(self.known[key])


def measured(key: str, trained: Trained) -> Iterator[dict[str, Any]]:
    """What the way of that key finds from its seed."""
    seed, name = key.split(" ", 1)
    archs = WAYS[name](int(seed), trained)
    targets = [trained(arch, 0) for arch in archs]
    best = archs[int(np.argmax(targets))]
    again = [trained(best, 1 + number) for number in range(N_AGAIN)]
    yield {
        "way": name,
        "seed": int(seed),
        "after six": max(targets[:6]),
        "after twelve": max(targets),
        "again": float(np.mean(again)),
        "n_parameters": n_parameters(best),
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Means over seeds."""
    numbers = ("after six", "after twelve", "again", "n_parameters")
    for name in WAYS:
        own = [row for row in rows if row["way"] == name]
        means = {column: float(np.mean([row[column] for row in own])) for column in numbers}
        yield {"way": name, "seeds": len(own), **means}


@click.command()
@click.option("--seeds", default=3, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/budget-trainings"))
@prints_measured
def main(seeds: int, out: Path) -> None:
    """Print what each way found after six and twelve trainings, and its best trained again."""
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "trainings.jsonl"
    with Journal(path, lambda record, number: "training" in record, path.name) as journal:
        trained = Trainings(journal)
        keys = [f"{seed} {name}" for seed in range(seeds) for name in WAYS]
        rows = resume(out / "rows.jsonl", keys, lambda key: measured(key, trained))
        n = len(trained.known)
    columns = ("way", "seeds", "after six", "after twelve", "again", "n_parameters")
    click.echo(markdown(list(summary(rows)), columns))
    click.echo(f"{n} trainings in all")


if __name__ == "__main__":
    main()

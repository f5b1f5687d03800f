"""A trained supernet as the evaluator: an architecture's measure with inherited weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lpzero.errors import InputError
from lpzero.supernet.trained import open_supernet
from spaces.base import Space


class SupernetEvaluator:
    """Measures every architecture on the data that the supernet's training held out for choices."""

    name = "supernet"
    is_free = False
    pool: Sequence[Any] | None = None

    def __init__(self, space: Space[Any], folder: str) -> None:
        self.trained = open_supernet(folder)
        found = self.trained.supernet.space.name
        if found != space.name:
            raise InputError(f"{folder} has a supernet of space {found}, not {space.name}")
        self.folder = folder
        self.target = f"{self.trained.task.target_name} in the supernet"

    def describe(self) -> dict[str, Any]:
        settings = self.trained.request.settings
        return {
            "evaluator": self.name,
            "directory": self.folder,
            "dataset": self.trained.request.dataset,
            "sampler": settings.sampler,
            "steps": settings.steps,
        }

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        return (self.trained.measure(arch).value for arch in archs)

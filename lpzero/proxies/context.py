"""How networks are built and run for proxies: plain options, with no state."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lpzero.parallel import Workers
from lpzero.sketches.sketch import SketchOptions
from lpzero.sketches.store import default_folder
from lpzero.statistics.definitions import OURS
from spaces.minibatch import Minibatch


@dataclass(frozen=True, slots=True)
class Context:
    """Seeds of weights and batch, loss, device, sequences per pass, cache folder, workers, batch.

    `batch` is its size, length and text where they are not the space's own; `definitions` of H, W
    and G are for formulas alone.
    """

    seed: int = 0
    batch_seed: int = 0
    loss: str = "auto"
    device: str = "cpu"
    chunk: int | None = None
    folder: Path = field(default_factory=default_folder)
    workers: Workers = field(default_factory=Workers)
    label: str | None = None
    batch: Minibatch | None = None
    definitions: str = OURS

    @property
    def options(self) -> SketchOptions:
        """The options that determine the values of a network's measures."""
        return SketchOptions(None, self.loss, self.seed, self.batch_seed, self.batch)

"""How networks are built and run for proxies: plain options, with no state."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from lpzero.parallel import Workers
from lpzero.sketches.sketch import SketchOptions, address
from lpzero.sketches.store import default_folder
from lpzero.statistics.definitions import OURS
from spaces.base import Space
from spaces.minibatch import Minibatch

_QUICK = "quick 2"  # another one whenever the passes of quick networks change


@dataclass(frozen=True, slots=True)
class Context:
    """Seeds of weights and batch, loss, device, sequences per pass, cache folder, workers, batch.

    `batch` is its size, length and text where they are not the space's own; `definitions` of H, W
    and G are for formulas alone. `is_quick`: networks as a search has them, with weights drawn by
    name (`spaces.initialisation.ByName`) and less exact passes (`Network.is_quick`). Their scores
    are cached apart from the others.
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
    is_quick: bool = False

    def address(self, space: Space[Any], arch: Any) -> str:
        """The name under which the measures of the architecture's network are cached."""
        found = address(space, arch, self.options)
        return sha256(f"{_QUICK} {found}".encode()).hexdigest() if self.is_quick else found

    @property
    def options(self) -> SketchOptions:
        """The options that determine the values of a network's measures."""
        return SketchOptions(None, self.loss, self.seed, self.batch_seed, self.batch)

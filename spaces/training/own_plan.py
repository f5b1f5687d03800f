"""A table trained by a user's own function: `train(arch, seed)`, which the space brings."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import spaces
from spaces.errors import SpaceError, shown

N_ARCHS, N_SEEDS = 128, 1
_SHARE_REPEATED = 8  # one architecture in so many is trained again, for the noise of targets


class OwnTrainingError(SpaceError, RuntimeError):
    """The user's training function failed, or gave no number."""


@dataclass(frozen=True, slots=True)
class OwnPlan:
    """What to train, as in a `TablePlan`; `address` names the space, my_module:SPACE."""

    address: str
    n_archs: int
    n_seeds: int
    n_repeated: int
    n_repeated_seeds: int
    sampling_seed: int = 20

    def seeds_of(self, index: int) -> range:
        """The seeds from which the architecture of that index is trained."""
        return range(self.n_repeated_seeds if index < self.n_repeated else self.n_seeds)

    @property
    def name(self) -> str:
        return str(self.space.name)

    @property
    def space(self) -> Any:
        return spaces.get(self.address)

    @property
    def target_name(self) -> str:
        return str(self.space.target)

    def request(self) -> dict[str, Any]:
        """What determines the table: the plan, the space and the source of its training."""
        space = self.space
        return {"plan": asdict(self), "identity": space.identity(), "train": space.train_source}

    def run(self, arch: Any, seed: int) -> dict[str, Any]:
        """One training as a journal line; a target that is not finite is a failure."""
        import torch

        start = time.perf_counter()
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                given = self.space.train(arch, seed)
        except Exception as error:
            raise OwnTrainingError(
                f"train of space {self.name} failed with seed {seed} on"
                f" {shown(self.space.to_json(arch))}: {type(error).__name__}: {error}"
            ) from error
        try:
            target = float(given)
        except (TypeError, ValueError):
            raise OwnTrainingError(
                f"train of space {self.name} gave {shown(given)}, expected a number"
            ) from None
        line = {"seed": seed, "target": target, "seconds": time.perf_counter() - start}
        if math.isfinite(target):
            return line
        return line | {"target": None, "failure": f"the target is {target}"}


def own_plan(
    address: str, n_archs: int | None = None, n_seeds: int | None = None
) -> OwnPlan | None:
    """The plan of the space at the address; None if it brings no training."""
    space = spaces.get(address)
    if getattr(space, "train", None) is None:
        return None
    archs, seeds = n_archs or N_ARCHS, n_seeds or N_SEEDS
    repeated = min(archs, max(2, archs // _SHARE_REPEATED))
    return OwnPlan(address, archs, seeds, repeated, 2 * seeds)

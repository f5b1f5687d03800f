"""The latency of an architecture: the median time of a forward pass on this machine.

Unlike the other costs it depends on the machine and its load. A search therefore records each
latency and never measures an architecture twice, even after resuming.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

from spaces.base import Space

WARM_UP, RUNS = 3, 11
_MILLI = 1000.0


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Times forward passes of the default batch, one thread, on one device."""

    space: Space[Any]
    device: str = "cpu"

    def __call__(self, arch: Any) -> float:
        """Milliseconds, rounded to microseconds."""
        import torch

        from lpzero.statistics.isolation import resolve_device, single_thread

        device = resolve_device(self.device)
        model = self.space.build(arch, 0).to(device)
        batch = self.space.batch(0).to(device)
        seconds = []
        with single_thread(), torch.no_grad():
            for turn in range(WARM_UP + RUNS):
                start = time.perf_counter()
                model(batch)
                if device.type == "cuda":
                    torch.cuda.synchronize(device)
                if turn >= WARM_UP:
                    seconds.append(time.perf_counter() - start)
        return round(_MILLI * statistics.median(seconds), 3)

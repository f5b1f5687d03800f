"""The loss of a training at a bounded number of steps, from the losses that it computes anyway."""

from __future__ import annotations

POINTS = 32  # of a curve, at most
_DIGITS = 6


class LossCurve:
    """Collects the losses of a training's steps; a point is the mean since the point before it."""

    def __init__(self, steps: int) -> None:
        self.points: list[list[float]] = []  # [steps done, mean loss]
        self._steps = steps
        self._losses: list[float] = []

    def add(self, loss: float) -> None:
        """The loss of the next step."""
        before = len(self._losses) + (int(self.points[-1][0]) if self.points else 0)
        self._losses.append(loss)
        if (before + 1) * POINTS // self._steps > before * POINTS // self._steps:
            mean = sum(self._losses) / len(self._losses)
            self.points.append([before + 1, float(f"{mean:.{_DIGITS}g}")])
            self._losses.clear()

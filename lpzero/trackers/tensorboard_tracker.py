"""A campaign's progress as TensorBoard events: `tensorboard --logdir FOLDER` shows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lpzero.trackers.tracker import missing, numbers

if TYPE_CHECKING:
    from lpzero.discover.campaign import Progress


class TensorBoardTracker:
    """Writes the numbers of every generation, and the best formula whenever it changes.

    Every generation is flushed, so that a killed campaign loses none; a resumed campaign writes
    another file into the same folder, which TensorBoard shows as one curve.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise missing("tensorboard", "tensorboard") from None
        self._writer = SummaryWriter(str(folder))
        self._formula = ""

    def __call__(self, progress: Progress) -> None:
        """Write the generation."""
        for name, value in numbers(progress).items():
            self._writer.add_scalar(name, value, progress.generation)
        formula = str(progress.best.formula)
        if formula != self._formula:
            self._writer.add_text("formula/best", f"    {formula}", progress.generation)
            self._formula = formula
        self._writer.flush()

    def close(self) -> None:
        """Close the file of events."""
        self._writer.close()

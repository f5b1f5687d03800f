"""What every tracker shares: the numbers of a generation, and trackers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from lpzero.errors import InputError

if TYPE_CHECKING:
    from lpzero.discover.campaign import Progress

# Name on the command line -> module and class; imported when it is asked for.
TRACKERS: Mapping[str, tuple[str, str]] = {
    "tensorboard": ("lpzero.trackers.tensorboard_tracker", "TensorBoardTracker"),
    "mlflow": ("lpzero.trackers.mlflow_tracker", "MLflowTracker"),
}


class Tracker(Protocol):
    """A callback of a campaign; `close` ends what it writes, and may be called twice."""

    def __call__(self, progress: Progress) -> None: ...
    def close(self) -> None: ...


def tracker(text: str) -> Tracker:
    """The tracker of "tensorboard:FOLDER" or "mlflow:FOLDER"."""
    name, colon, place = text.partition(":")
    if name not in TRACKERS or not colon or not place:
        known = ", ".join(f"{known}:FOLDER" for known in TRACKERS)
        raise InputError(f"tracker {text!r} is not known; expected one of {known}")
    module, kind = TRACKERS[name]
    make: Callable[[str], Tracker] = getattr(import_module(module), kind)
    return make(place)


def numbers(progress: Progress) -> dict[str, float]:
    """What is tracked of a generation, by name."""
    tried = max(1, progress.tried)
    return {
        "fitness/train": progress.train,
        "fitness/valid": progress.valid,
        "formula/complexity": float(progress.best.complexity),
        "search/evaluated": float(progress.evaluated),
        "search/rejected_share": progress.rejected.total() / tried,
        "search/repeated_share": progress.repeats / tried,
        "search/evaluations_per_second": progress.per_second,
    }


def missing(package: str, extra: str) -> InputError:
    """The error of a package that is not installed."""
    return InputError(f"{package} is not installed: install it with pip install 'lpzero[{extra}]'")

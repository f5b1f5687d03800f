"""A one-shot training, which `lpzero train --supernet` starts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.runs.run import Kind
from lpzero.verbs import Outcome, Screen
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from lpzero.verbs.train import Request

KIND = Kind(
    "supernet training",
    read="lpzero.supernet.trained:read",
    page="lpzero.report.training_page:supernet_content",
)


def run(request: Request, screen: Screen) -> Outcome:
    """The measures of the preferred networks with the trained weights."""
    from lpzero.supernet.one_shot import SupernetRequest, SupernetSettings, train_supernet

    if request.where.backend != "loky":
        raise InputError("a supernet is one training, step after step: --backend has no effect")
    start, select = (None if p is None else user_path(p) for p in (request.weights, request.select))
    given = dict(request.settings)
    if request.steps is not None:
        given["steps"] = request.steps
    settings = SupernetSettings(**given)
    asked = SupernetRequest.of(request.space, settings, select, request.dataset, start)
    if start is not None:
        _say_what_fits(asked, start, screen)
    began = time.perf_counter()

    def show(record: dict[str, Any]) -> None:
        mean = sum(record["valid"]) / len(record["valid"])
        screen.say(
            f"step {record['step']:,}/{settings.steps:,}  loss {record['loss']:.4f}  held out"
            f" {min(record['valid']):.4f} to {max(record['valid']):.4f}, mean {mean:.4f}"
        )

    folder = user_path(request.out or Path("runs", f"supernet-{request.space}"))
    quiet = {"show": show} if screen.progress else {}
    result = train_supernet(asked, folder, start, lock=request.work.lock, **quiet)
    seconds = round(time.perf_counter() - began, 3)
    return Outcome({**result, "directory": str(folder), "seconds": seconds})


def _say_what_fits(request: Any, start: Path, screen: Screen) -> None:
    """Note what of the file does not fit the supernet."""
    from lpzero.supernet import weights

    supernet = request.made_space.supernet(0)
    fit = weights.load_into(supernet.largest, weights.read(start))
    for text in fit.lines():
        screen.say(f"{start}: {text}")
    if not (fit.loaded or fit.cut):
        raise InputError(f"{start} has nothing that fits space {request.space}")

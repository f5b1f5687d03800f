"""A trained supernet: its run, the supernet in it, and networks taken out of it.

The file of a network is safetensors; its header names the space and the architecture, so that the
file alone is enough to build the network again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spaces
from lpzero.errors import InputError
from lpzero.runs.config import StoredConfig, with_article
from lpzero.runs.directory import file_digest
from lpzero.runs.journal import read_journal
from lpzero.runs.layout import JOURNAL, RESULT, place
from lpzero.runs.run import Run, open_run, read_file
from lpzero.supernet.one_shot import (
    KIND,
    WEIGHTS,
    SupernetRequest,
    is_complete,
    is_measurement,
    request_of,
)
from lpzero.supernet.selection import candidates
from spaces.errors import ArchitectureError, UnknownNameError
from spaces.untrusted import open_regular, parse_json
from spaces.user_modules import UserCodeError

if TYPE_CHECKING:
    from spaces.base import Space
    from spaces.supernet import Supernet
    from spaces.training.shared_tasks import MeanWithError, SharedTask

N_MEASURED = 24  # candidates that are measured where nothing was preferred
_LARGEST_HEADER = 1 << 20  # bytes


@dataclass(frozen=True, eq=False)
class SupernetRun(Run):
    """A one-shot training; `history` is the journal."""

    history: Sequence[dict[str, Any]] = ()


def read(config: StoredConfig) -> SupernetRun:
    """The training with that config; a remark if it is not finished."""
    remarks: list[str] = []
    result = read_file(config, RESULT, remarks)
    journal = read_journal(config.folder / JOURNAL, is_measurement, place(config.hash, JOURNAL))
    if result is None:
        remarks.append("The training is not finished: run the same command again to continue it.")
    elif not is_complete(journal.records, _stated_steps(config)):
        remarks.append(
            f"{JOURNAL} lacks lines of the training: run the same command again to repeat it."
        )
    return SupernetRun(config, result, remarks, journal.records)


def _stated_steps(config: StoredConfig) -> Any:
    settings = config.request.get("settings")
    return settings.get("steps") if isinstance(settings, Mapping) else None


@dataclass(frozen=True, eq=False)
class TrainedSupernet:
    """A trained supernet, and the task that it was trained on."""

    folder: Path
    request: SupernetRequest
    supernet: Supernet[Any]
    task: SharedTask

    def measure(self, arch: Any, part: str = "valid") -> MeanWithError:
        """The architecture's measure with inherited weights on held-out data; one thread."""
        from lpzero.statistics.isolation import single_thread
        from lpzero.supernet.trainer import measure

        with single_thread():
            return measure(self.supernet, self.task, arch, self.request.settings, part)

    def subnet(self, arch: Any) -> Any:
        """A separate model with the architecture's weights, BatchNorms recomputed."""
        from lpzero.statistics.isolation import single_thread
        from lpzero.supernet.trainer import norm_state

        with single_thread():
            state = norm_state(self.supernet, self.task, arch, self.request.settings)
            return self.supernet.subnet(arch, state)


def open_supernet(folder: str | Path) -> TrainedSupernet:
    """The supernet of a finished training; its weights must be those that were written."""
    from lpzero.supernet import weights
    from spaces.training.shared_tasks import task_of

    run = open_run(folder)
    if run.kind != KIND:
        raise InputError(
            f"{folder} is {with_article(run.kind)}: expected the directory of a supernet training"
        )
    if run.result is None:
        raise InputError(f"the training in {folder} is not finished: run it again to continue")
    path = Path(folder) / WEIGHTS
    if file_digest(path) != run.result["weights"]:
        raise InputError(f"{path} is missing or was changed: train the supernet again")
    request = request_of(run.request)
    supernet = request.made_space.supernet(request.settings.seed)
    fit = weights.load_into(supernet.largest, weights.read(path))
    if not fit.is_complete:
        raise InputError(f"{path} does not fit the space: {'; '.join(fit.lines())}")
    task = task_of(request.made_space, request.dataset)
    if task.digest() != request.data_digest:
        raise InputError(f"dataset {request.dataset} is not the one that {folder} was trained on")
    return TrainedSupernet(Path(folder), request, supernet, task)


@dataclass(frozen=True, eq=False)
class Specialised:
    """A network of the supernet: its architecture, measures and weights."""

    space: Space[Any]
    arch: Any
    valid: MeanWithError
    test: MeanWithError
    n_candidates: int
    model: Any


def specialise(
    trained: TrainedSupernet, allows: Callable[[Any], bool], n_measured: int = N_MEASURED
) -> Specialised:
    """The best network by `valid` among the preferred ones within the bounds.

    If no preferred one is, or none was preferred, the largest of the allowed architectures are
    measured: representatives of isomers, or drawn ones.
    """
    pool: Sequence[Any] = [arch for arch in trained.request.preferred if allows(arch)]
    if not pool:
        pool = _largest_allowed(trained, allows, n_measured)
    if not pool:
        raise InputError("no architecture is within the bounds: choose wider ones")
    best = max(pool, key=lambda arch: trained.measure(arch).value)
    return of_architecture(trained, best, len(pool))


def of_architecture(trained: TrainedSupernet, arch: Any, n_candidates: int = 1) -> Specialised:
    """The network of that architecture."""
    valid, test = (trained.measure(arch, part) for part in ("valid", "test"))
    model = trained.subnet(arch)
    return Specialised(trained.supernet.space, arch, valid, test, n_candidates, model)


def _largest_allowed(trained: TrainedSupernet, allows: Callable[[Any], bool], n: int) -> list[Any]:
    from lpzero.supernet.saliency import Saliency

    space = trained.supernet.space
    allowed = [arch for arch in candidates(Saliency.of(space)) if allows(arch)]
    if not allowed:
        rng = random.Random(0)
        drawn = (space.sample(rng) for _ in range(20_000))
        allowed = list(dict.fromkeys(arch for arch in drawn if allows(arch)))
    return sorted(allowed, key=space.parameters, reverse=True)[:n]


def write(network: Specialised, path: Path) -> None:
    """Write the network's weights with its space and architecture."""
    from lpzero.supernet import weights

    arch = json.dumps(network.space.to_json(network.arch))
    about = {"space": network.space.name, "arch": arch}
    weights.write(path, network.model.state_dict(), about)


def load_network(path: str | Path) -> Any:
    """The standalone torch module in a file that `specialise` wrote, in eval mode."""
    from lpzero.supernet import weights

    path = Path(path)
    tensors = weights.read(path)
    space, arch = _about(path)
    model = space.build(arch, 0)
    wanted = model.state_dict().keys()
    if tensors.keys() != wanted:
        name = sorted(tensors.keys() ^ wanted)[0]
        problem = "lacks" if name in wanted else "has an unknown tensor"
        raise InputError(f"{path} {problem} {name}")
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(f"{path}: {str(error).splitlines()[-1].strip()[:200]}") from None
    return model


def _about(path: Path) -> tuple[Space[Any], Any]:
    """The space and the architecture in the file's header."""
    from lpzero.supernet.weights import ABOUT

    with open_regular(path) as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _LARGEST_HEADER:
            raise InputError(f"{path} has too long a header")
        header = parse_json(file.read(length), path).get("__metadata__", {})
    try:
        about = json.loads(header[ABOUT])
        space = spaces.get(about["space"])
        return space, space.from_json(json.loads(about["arch"]))
    except UserCodeError:  # it says which option to give
        raise
    except (KeyError, ValueError, TypeError, ArchitectureError, UnknownNameError):
        raise InputError(f"{path} names no space and architecture: use lpzero specialise") from None

"""The Auto-Prox tables: AutoFormer-tiny and PiT with accuracies on four datasets (Wei et al. 2024).

One file per space, `torch.save` of a list of {"arch": {...}, "c100_base_acc": ..., ...}: trained
from scratch on a small dataset, with and without distillation from a ResNet-56, or, for ImageNet,
taken from a supernet. Read with `weights_only=True`, which allows only plain values and tensors.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spaces
from spaces.errors import TableError
from spaces.tables.readers import architecture_of, field, refuse
from spaces.tables.source import Origin, Source
from spaces.untrusted import (
    UntrustedError,
    check_tensors,
    check_unpacked,
    open_regular,
    read_regular,
)

if TYPE_CHECKING:
    from spaces.tables.table import Table

REPOSITORY = "lliai/Auto-Prox-AAAI24"
COMMIT = "90ed458eff6948a6f0d23e440a8d21bbec50d091"
LARGEST = 1 << 20  # bytes; the published files have 0.03 MB
# The end of a table's name: the file's field, and a description of the target.
DATASETS = {
    "c100": ("c100_base_acc", "CIFAR-100 accuracy"),
    "c100-kd": ("c100_kd_acc", "CIFAR-100 accuracy, distilled"),
    "flowers": ("flower_base_acc", "Flowers accuracy"),
    "flowers-kd": ("flower_kd_acc", "Flowers accuracy, distilled"),
    "chaoyang": ("chaoyang_base_acc", "Chaoyang accuracy"),
    "chaoyang-kd": ("chaoyang_kd_acc", "Chaoyang accuracy, distilled"),
}
SUPERNET = {"imagenet": ("imagenet_super_acc", "ImageNet accuracy in the supernet")}
Fields = Callable[[Any, str], dict[str, Any]]


def _read(
    source: Source, path: Path, datasets: dict[str, tuple[str, str]], architecture: Fields
) -> Table:
    """The table, with the accuracies on the other datasets as extra columns."""
    from spaces.tables.table import make_table

    space = spaces.get(source.space)
    own = source.name.split("-", 1)[1]
    rows = []
    extra: dict[str, list[float]] = {name: [] for name in datasets if name != own}
    for index, record in enumerate(_records(path)):
        where = f"{path}: row {index}"
        with architecture_of(where):
            arch = space.from_json(architecture(field(record, "arch", dict, where), where))
        accuracies = {name: _accuracy(record, key, where) for name, (key, _) in datasets.items()}
        rows.append((str(index), arch, accuracies[own]))
        for name, column in extra.items():
            column.append(accuracies[name])
    return make_table(source.name, space, rows, source.target, source.licence, extra)


def count(path: Path) -> int:
    """The number of rows, from the pickle's opcodes: nothing is executed, torch is not needed.

    A row is a dict that contains another dict, its architecture.
    """
    _check_archive(path)
    try:
        with zipfile.ZipFile(path) as archive:
            [name] = [n for n in archive.namelist() if n.endswith("/data.pkl")]
            opcodes = [code.name for code, _, _ in pickletools.genops(archive.read(name))]
    except (ValueError, OSError, LookupError, RuntimeError, zipfile.BadZipFile) as error:
        raise TableError(f"{path}: not a file of torch.save ({error})") from error
    return opcodes.count("EMPTY_DICT") // 2


def _records(path: Path) -> list[Any]:
    import torch

    _check_archive(path)
    try:
        data = io.BytesIO(read_regular(path, LARGEST))
        records = torch.load(data, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken file can make torch raise anything
        reason = str(error).strip().splitlines() or [""]
        refuse(str(path), f"cannot be read as plain values ({type(error).__name__}: {reason[0]})")
    if not isinstance(records, list) or not records:
        refuse(str(path), "expected a list of architectures")
    return records


def _check_archive(path: Path) -> None:
    """Raise TableError unless the path is an archive of tensors and of limited size.

    Before torch 1.6 files were not archives; torch still reads those, but the tables are newer.
    """
    try:
        with open_regular(path, LARGEST) as file:
            check_unpacked(file, path)
            check_tensors(file, path)
    except UntrustedError as error:
        refuse(str(path), f"not a file of torch.save: it {error.strerror}")
    except OSError:
        refuse(str(path), "not a file of torch.save")


def _accuracy(record: Any, key: str, where: str) -> float:
    value = field(record, key, float, where)
    if not 0 <= value <= 100:
        refuse(where, f"{key} = {value!r}, expected a percentage")
    return value


def _autoformer(arch: Any, where: str) -> dict[str, Any]:
    """The architecture as this project writes it."""
    depth = field(arch, "depth", int, where)
    ratios, heads = (field(arch, name, list, where) for name in ("mlp_ratio", "num_heads"))
    if not depth == len(ratios) == len(heads):
        refuse(where, f"depth = {depth} with {len(ratios)} mlp_ratio and {len(heads)} num_heads")
    layers = [{"heads": n, "ratio": r} for n, r in zip(heads, ratios, strict=True)]
    return {"hidden": field(arch, "hidden_dim", int, where), "layers": layers}


def _pit(arch: Any, where: str) -> dict[str, Any]:
    return {
        "base_dim": field(arch, "base_dim", int, where),
        "ratio": field(arch, "mlp_ratio", int, where),
        "depths": field(arch, "depth", list, where),
        "heads": field(arch, "num_heads", list, where),
    }


def _sources(
    family: str, space: str, digest: str, datasets: dict[str, tuple[str, str]], fields: Fields
) -> list[Source]:
    file = f"gt_{family}.pth"
    origin = Origin(REPOSITORY, COMMIT, f"gt_results/{file}", digest)
    path, licence = Path("vit") / file, "Apache-2.0"
    read = partial(_read, datasets=datasets, architecture=fields)
    return [
        Source(f"{family}-{name}", space, 100, target, licence, path, read, count, origin)
        for name, (_, target) in datasets.items()
    ]


SOURCES = (
    *_sources(
        "autoformer",
        "autoformer-tiny",
        "712ad277546d9f7f565ce07885be7e0b98dcd8d0724fdd1120f595b517436eca",
        DATASETS | SUPERNET,
        _autoformer,
    ),
    *_sources(
        "pit",
        "pit",
        "bdda89841d4105f99ab759e3243e7a2402929ba7a8430dac12a50256aa533bb2",
        DATASETS,
        _pit,
    ),
)

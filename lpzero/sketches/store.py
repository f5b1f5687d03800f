"""The cache folder: one file per sketch, named by its address, written whole or not at all.

Layout: `SPACE/ab/ab12....sketch`, and `ab12....failure.json` for an architecture that could not be
sketched. Any number of processes may read and write: equal names hold equal bytes, and a file
appears under its name only when it is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lpzero import files
from lpzero.errors import LPZeroError
from lpzero.sketches.sketch import Sketch, SketchError, decode

ENVIRONMENT = "LPZERO_CACHE"
SKETCH, FAILURE = ".sketch", ".failure.json"


class StoreError(LPZeroError, OSError):
    """The cache folder cannot be used."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an architecture has no sketch; `identity` is what the sketch's header would say."""

    reason: str
    identity: Mapping[str, Any] = field(default_factory=dict)


def default_folder() -> Path:
    """$LPZERO_CACHE, else ~/.cache/lpzero."""
    given = os.environ.get(ENVIRONMENT)
    return Path(given) if given else Path.home() / ".cache" / "lpzero"


@dataclass(frozen=True)
class Store:
    """The sketches under one folder."""

    folder: Path

    def path(self, space: str, address: str, ending: str = SKETCH) -> Path:
        """Where the file of that address is or would be."""
        return self.folder / space / address[:2] / (address + ending)

    def has(self, space: str, address: str) -> bool:
        """Whether there is a file; `load` tells whether it is whole."""
        return self.path(space, address).is_file()

    def size(self, space: str, address: str) -> int:
        """The bytes of the sketch, 0 when there is none."""
        return file_size(self.path(space, address))

    def load(self, space: str, address: str) -> Sketch:
        """The verified sketch; SketchError names the file when it is missing or broken."""
        path = self.path(space, address)
        try:
            return decode(path.read_bytes())
        except FileNotFoundError:
            raise SketchError(f"no sketch {path}: run `lpzero stats` first") from None
        except SketchError as error:
            raise SketchError(f"{path}: {error}") from None

    def write(self, space: str, address: str, data: bytes) -> None:
        """Put the file in its place and forget an earlier failure."""
        files.write_bytes(self.path(space, address), data)
        self.path(space, address, FAILURE).unlink(missing_ok=True)

    def failure(self, space: str, address: str) -> Failure | None:
        """The recorded failure, if there is one that can be read."""
        try:
            record = json.loads(self.path(space, address, FAILURE).read_bytes())
            return Failure(str(record.pop("reason")), record)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def record_failure(self, space: str, address: str, failure: Failure) -> None:
        """Remember why there is no sketch."""
        record = {**failure.identity, "reason": failure.reason}
        data = json.dumps(record, sort_keys=True, indent=1).encode()
        files.write_bytes(self.path(space, address, FAILURE), data)

    def groups(self, space: str | None = None) -> dict[tuple[str, str], list[Path]]:
        """By space and address: the sketch or failure record, and what was derived from it."""
        groups: dict[tuple[str, str], list[Path]] = {}
        for path in sorted(self.folder.glob(f"{space or '*'}/??/[0-9a-f]*")):
            groups.setdefault((path.parts[-3], path.name.partition(".")[0]), []).append(path)
        return groups

    def sweep(self) -> int:
        """Remove what interrupted writers left behind; the number of files removed."""
        removed = 0
        for path in self.folder.glob(f"*/??/.*{files.TEMPORARY}"):
            if files.is_abandoned(path):
                path.unlink(missing_ok=True)
                removed += 1
        return removed


def file_size(path: Path) -> int:
    """0 for a file that another process has just removed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0

"""The shards of an exhaustive run on disk: NumPy archives, each sealed with its run and number."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from lpzero.files import SEAL, array_seal, write_bytes
from lpzero.runs.layout import SHARDS, place
from spaces.regular_files import read_regular

Arrays = Mapping[str, NDArray[Any]]
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """The files in `shards/` of a run's directory; `run` is the hash of its config."""

    folder: Path
    run: str

    def path(self, number: int) -> Path:
        """The path of the shard with that number."""
        return self.folder / SHARDS / f"{number:05d}.npz"

    def write(self, number: int, arrays: Arrays) -> None:
        """Write the shard atomically; what a power failure leaves of it is measured again."""
        buffer = io.BytesIO()
        stored = {**arrays, SEAL: array_seal(self._place(number), arrays)}
        np.savez(buffer, **stored)  # type: ignore[arg-type]  # names, not options
        write_bytes(self.path(number), buffer.getvalue(), is_flushed=False)

    def read(self, number: int) -> dict[str, NDArray[Any]] | None:
        """The shard's arrays; None if there is no file, or with a note if it is not as written."""
        path = self.path(number)
        try:
            with np.load(io.BytesIO(read_regular(path)), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        except FileNotFoundError:
            return None
        # A broken archive can make zipfile and NumPy raise almost anything.
        except (OSError, ValueError, LookupError, EOFError, BadZipFile, MemoryError, TypeError,
                RuntimeError, SyntaxError) as error:  # fmt: skip
            logger.warning("%s cannot be read (%s); it is ignored", path, type(error).__name__)
            return None
        seal = arrays.pop(SEAL, None)
        if seal is None or not np.array_equal(seal, array_seal(self._place(number), arrays)):
            logger.warning("%s was changed or belongs elsewhere; it is ignored", path)
            return None
        return arrays

    def _place(self, number: int) -> str:
        return place(self.run, f"{SHARDS}/{number}")

"""The line under an experiment's figures: when they were measured, with what, and by which command.

the running script  ->  one line for its page; `tests/experiments/test_pages.py` looks for it there
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from functools import wraps
from typing import Any

import numpy as np
import torch

from lpzero.version import VERSION


def prints_measured(main: Callable[..., None]) -> Callable[..., None]:
    """The script's main function, which ends with the line; on stderr where it prints JSON."""

    @wraps(main)
    def measuring(*args: Any, **given: Any) -> None:
        main(*args, **given)
        print(measured(), file=sys.stderr if given.get("form") == "json" else sys.stdout)

    return measuring


def measured(command: str | None = None) -> str:
    """`Measured DATE with VERSIONS by COMMAND.`; the command is the running script by default."""
    date = datetime.now(timezone.utc).date().isoformat()
    torch_version = torch.__version__.partition("+")[0]
    versions = f"lpzero {VERSION}, torch {torch_version}, NumPy {np.__version__}"
    return f"Measured {date} with {versions} by `{command or _running()}`."


def _running() -> str:
    """The command line of this process, with the module's name for the script's path."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    name = ["-m", spec.name] if spec is not None else sys.argv[:1]
    return shlex.join(["python", *name, *sys.argv[1:]])

"""Digests of a user's functions, so that stored results belong to the code that gave them."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from spaces.user_modules import digest_of


def source_digest(function: Callable[..., Any]) -> str:
    """SHA-256 of the source file that defines the function.

    Where there is no file, as in a notebook, of the function's own source, else of its byte code.
    What the file imports is not part of it.
    """
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    is_plain = inspect.isroutine(function) or inspect.isclass(function)
    defined: Any = function if is_plain else type(function)
    known = digest_of(str(getattr(defined, "__module__", "")))
    if known is not None:  # the file may have changed since it was run
        return known
    try:
        return hashlib.sha256(Path(inspect.getfile(defined)).read_bytes()).hexdigest()
    except (OSError, TypeError):
        pass
    try:
        return hashlib.sha256(inspect.getsource(defined).encode()).hexdigest()
    except (OSError, TypeError):
        code = getattr(defined, "__code__", None)
        content = [] if code is None else [code.co_code, code.co_names, code.co_varnames]
        return hashlib.sha256(repr([defined.__qualname__, *content]).encode()).hexdigest()

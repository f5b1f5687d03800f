"""Plotly's script, from its Python package, packed so that a page can carry it."""

from __future__ import annotations

import base64
import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Bundle:
    """The script as base64 of gzip, and the digest of its text for a content security policy."""

    packed: str
    digest: str


@lru_cache(maxsize=1)
def bundle() -> Bundle:
    """The installed version's bundle: 4.8 MB as text, 2 MB packed."""
    code = script()
    packed = gzip.compress(code.encode(), 9, mtime=0)  # without a date: equal bytes
    return Bundle(base64.b64encode(packed).decode(), digest(code))


def script() -> str:
    """The text of plotly.min.js."""
    return files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")


def digest(text: str) -> str:
    """The SHA-256 of a text, as a content security policy has it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

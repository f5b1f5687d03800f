"""The Python face: what `import lpzero` offers, as objects that a notebook shows."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Names by the module that has them, imported when they are used.
HOMES = {
    "Discovery": "lpzero.python.discovery",
    "Layout": "lpzero.statistics.layout",
    "exhaust": "lpzero.python.functions",
    "formula": "lpzero.python.formula",
    "load": "lpzero.python.functions",
    "load_table": "lpzero.python.functions",
    "rank": "lpzero.python.functions",
    "score": "lpzero.python.functions",
    "search": "lpzero.python.functions",
    "space": "lpzero.own",
    "train": "lpzero.python.functions",
}


def get(name: str) -> Any:
    """What has that name in Python, with its signature."""
    from lpzero.python.signatures import sign

    offered = getattr(import_module(HOMES[name]), name)
    if name == "Discovery":
        sign(offered.__init__, offered)
        return offered
    return sign(offered)

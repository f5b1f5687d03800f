"""Sketches on disk: made once, found by what they are, shared by every command."""

from lpzero.store.build import Builder, Report, Sketches, build, sketches
from lpzero.store.folder import Failure, Store, default_folder

__all__ = [
    "Builder",
    "Failure",
    "Report",
    "Sketches",
    "Store",
    "build",
    "default_folder",
    "sketches",
]

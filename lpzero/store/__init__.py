"""Sketches on disk: made once, found by what they are, shared by every command."""

from lpzero.store.filling import Builder, Report, Sketches, build, sketches
from lpzero.store.folder import Failure, Store, StoreError, default_folder
from lpzero.store.upkeep import listing, prune

__all__ = [
    "Builder",
    "Failure",
    "Report",
    "Sketches",
    "Store",
    "StoreError",
    "build",
    "default_folder",
    "listing",
    "prune",
    "sketches",
]

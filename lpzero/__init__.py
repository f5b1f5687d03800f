"""LPZero engine: discovers formulas that rank untrained transformers."""

from lpzero.version import VERSION as __version__

__all__ = ["__version__"]

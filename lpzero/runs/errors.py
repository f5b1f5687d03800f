"""What can go wrong with a campaign's directory."""

from __future__ import annotations

from lpzero.errors import InputError, LPZeroError


class RunError(InputError):
    """The directory cannot be used as asked: in use, of another campaign, table or schema."""


class WriteError(LPZeroError, OSError):
    """The campaign could not be written down; what was written before is safe."""

"""The engine's errors; a message says what was given, what was expected and what to do.

Each concrete error also inherits the matching builtin. The command line exits with code 2 (bad
input) for a ValueError or LookupError and with code 1 (failure) for every other error.
"""

from __future__ import annotations


class LPZeroError(Exception):
    """Root of every error raised by this package."""


class InputError(LPZeroError, ValueError):
    """The user's input cannot be used."""


class FitnessError(LPZeroError, ValueError):
    """Scores and targets that cannot be compared: unequal lengths, too few, not finite."""


class RunError(InputError):
    """A run's directory cannot be used: it is locked, broken, too old or holds another run."""


class WriteError(LPZeroError, OSError):
    """A file could not be written; the previous file is unchanged."""


class EnvelopeError(LPZeroError, RuntimeError):
    """Bytes that are not a complete sealed file of the expected kind."""


class UnsealedError(EnvelopeError):
    """A JSON object without a seal, as versions before 0.2.0 wrote it."""

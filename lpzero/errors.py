"""What can go wrong in the engine; a message says what was given, what was expected, what to do.

A leaf also inherits the fitting builtin. The command line turns ValueError and LookupError leaves
into exit code 2 (bad input) and every other one into exit code 1 (failure).
"""

from __future__ import annotations


class LPZeroError(Exception):
    """Root of every error raised by this package."""


class InputError(LPZeroError, ValueError):
    """What the user gave cannot be used."""


class FitnessError(LPZeroError, ValueError):
    """Scores and targets that cannot be compared: unequal lengths, too few, not finite."""


class RunError(InputError):
    """A run's directory cannot be used as asked: in use, of another run, broken, too old."""


class WriteError(LPZeroError, OSError):
    """A file could not be written; what was there before is untouched."""


class EnvelopeError(LPZeroError, RuntimeError):
    """Bytes that are not a whole sealed file of the kind asked for."""

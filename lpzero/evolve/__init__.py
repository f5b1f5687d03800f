"""Evolution of formulas: settings, the space searched, variation, and one step after another."""

from lpzero.evolve.brood import State
from lpzero.evolve.candidates import Candidate, Judge, Verdict
from lpzero.evolve.language import Language
from lpzero.evolve.settings import OBJECTIVES, PRESETS, Settings, preset
from lpzero.evolve.steps import Evolution

__all__ = [
    "OBJECTIVES",
    "PRESETS",
    "Candidate",
    "Evolution",
    "Judge",
    "Language",
    "Settings",
    "State",
    "Verdict",
    "preset",
]

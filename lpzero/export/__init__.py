"""Formulas as files: JSON, a Python module, LaTeX, sympy, CSV; one exporter per file.

Everything goes through one middle form, `record.Exported`, and comes back verified.
"""

from lpzero.export.forms import FORMS, export
from lpzero.export.gathering import Choice, Gathered, from_file, gather
from lpzero.export.record import Exported, Figures, Provenance

__all__ = [
    "FORMS",
    "Choice",
    "Exported",
    "Figures",
    "Gathered",
    "Provenance",
    "export",
    "from_file",
    "gather",
]

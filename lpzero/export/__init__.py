"""Formulas as files: JSON, a Python module, LaTeX, sympy, CSV; one exporter per file.

Everything goes through one intermediate form, `record.Exported`, and is verified when read back.
"""

from lpzero.export.forms import FORMS, export
from lpzero.export.record import Exported, Figures, Provenance
from lpzero.export.source import Choice, Selection, from_file, select

__all__ = [
    "FORMS",
    "Choice",
    "Exported",
    "Figures",
    "Provenance",
    "Selection",
    "export",
    "from_file",
    "select",
]

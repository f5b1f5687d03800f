"""Formulas as files: JSON, a Python module, LaTeX, sympy, CSV; one exporter per file.

Everything goes through one intermediate form, `record.Exported`, and is verified when read back.
"""

from lpzero.export.record import EXPORTERS, Exported, Figures, Provenance, export
from lpzero.export.source import Choice, Selection, from_file, select

__all__ = [
    "EXPORTERS",
    "Choice",
    "Exported",
    "Figures",
    "Provenance",
    "Selection",
    "export",
    "from_file",
    "select",
]

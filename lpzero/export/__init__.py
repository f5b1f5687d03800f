"""Formulas as files: JSON, a Python module, LaTeX, sympy, CSV; one exporter per file.

Everything goes through one intermediate form, `exported.Exported`, and is verified when read back.
"""

from lpzero.export.exported import Exported, Figures, Provenance
from lpzero.export.exporter import EXPORTERS, export
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

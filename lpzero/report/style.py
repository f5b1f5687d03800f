"""One style for all figures: colours safe for colour blindness and grey print, plain axes.

Figures are saved without dates and with fixed identifiers, so that equal data give equal bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lpzero.errors import InputError
from lpzero.files import write_bytes

# Okabe and Ito's colours; their lightness differs, and so do the markers and dashes beside them.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 2)))
GREY = "#5f5f5f"
MAP = "cividis"
FORMATS = ("pdf", "png", "svg")

_SETTINGS = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "lpzero",
    "text.parse_math": False,  # names come from files and may contain a dollar sign
}
# Metadata that would otherwise contain the date or the machine.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Creator": "lpzero", "Producer": None},
    "png": {"Software": "lpzero"},
    "svg": {"Date": None, "Creator": "lpzero"},
}


@contextmanager
def look() -> Iterator[None]:
    """Matplotlib's settings while a figure is drawn or saved, restored afterwards."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def new(width: float = 5.0, height: float = 3.6) -> Figure:
    """An empty figure of that size in inches, drawn without a screen."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def encode(figure: Figure, form: str) -> bytes:
    """The figure as a file of that format."""
    if form not in FORMATS:
        raise InputError(f"figures are saved as {', '.join(FORMATS)}, not {form!r}")
    buffer = io.BytesIO()
    with look(), warnings.catch_warnings():
        # A letter that the font does not have is drawn as a box; no warning is needed.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(buffer, format=form, dpi=150, metadata=_METADATA[form])
    return buffer.getvalue()


def save(figure: Figure, path: str | Path) -> Path:
    """Write the figure atomically, in the format of the file's extension."""
    path = Path(path)
    write_bytes(path, encode(figure, path.suffix.lstrip(".")))
    return path

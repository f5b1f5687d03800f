"""Test rho of every split as a dot, a row per language and search, with the best count's median.

rows of the journal  ->  one picture, a panel per table
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lpzero.report import style

RULE = "stable"


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the picture of what the rule `stable` chose."""
    chosen = [row for row in rows if row["rule"] == RULE]
    tables = list(dict.fromkeys(row["table"] for row in chosen))
    arms = list(dict.fromkeys((row["language"], row["search"]) for row in chosen))
    with style.look():
        figure = style.new(5 * len(tables), 1.2 + 0.4 * len(arms))
        panels = figure.subplots(1, len(tables), squeeze=False, sharey=True)[0]
        for panel, table in zip(panels, tables, strict=True):
            here = [row for row in chosen if row["table"] == table]
            for height, arm in enumerate(arms):
                rho = [row["rho"] for row in here if (row["language"], row["search"]) == arm]
                if rho:
                    panel.plot(
                        rho, np.full(len(rho), height), ".", color=style.COLOURS[0], alpha=0.4
                    )
                    panel.plot(np.median(rho), height, "|", markersize=14, color=style.COLOURS[0])
            count = float(np.median([row["count"] for row in here]))
            panel.axvline(count, linestyle=":", color=style.COLOURS[1], label="best count, median")
            panel.set_title(table)
            panel.set_xlabel("rho on test rows")
            panel.legend()
        panels[0].set_yticks(range(len(arms)), [", ".join(arm) for arm in arms])
        panels[0].invert_yaxis()
        style.save(figure, path)

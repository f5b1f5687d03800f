"""The pictures of the README and the documentation, all from one run on the nano table.

    python -m experiments.pictures.draw runs/nano-gpt2

writes `docs/pictures/*.svg` with matplotlib, `docs/pictures/page-*.png` with Chromium, and
`docs/pictures/source.json`, which says which run they show and holds their digests: a test compares
them, so that a picture cannot be exchanged or kept when the run that the README quotes changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from lpzero.files import write_json
from lpzero.report import style, write
from lpzero.report.drawn_chart import draw
from lpzero.report.page import content_of
from lpzero.runs.formula_run import FormulaRun
from lpzero.runs.run import open_run

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
FIGURES = {"rivals-nano-gpt2": "rivals", "ranks-nano-gpt2": "ranks", "front": "front"}
SCHEMES = {"light": 1, "dark": 0}  # Chromium's numbers for what a reader prefers
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main(folder: str) -> None:
    """Draw every picture from the run in the folder."""
    run = open_run(folder)
    assert isinstance(run, FormulaRun), "a campaign has these figures"
    assert run.best is not None, "it is finished"
    charts = {chart.name: chart for chart in content_of(run).figures}
    written = [
        style.save(draw(charts[name]), FOLDER / f"{target}.svg") for name, target in FIGURES.items()
    ]
    page = write(run).page
    written += [photograph(page, FOLDER / f"page-{name}.png", name) for name in SCHEMES]
    source = {
        "command": "lpzero discover nano-gpt2 --out runs/nano-gpt2",
        "formula": run.best["formula"],
        "rho_test": run.best["rho"]["test"],
        "sha256": {path.name: digest(path) for path in written},
    }
    write_json(FOLDER / "source.json", source)


def photograph(page: Path, target: Path, scheme: str) -> Path:
    """The first screen of the page at 1,280 pixels, as a reader who prefers the scheme sees it."""
    named = os.environ.get("LPZERO_BROWSER")
    browser = named or next(path for name in _BROWSERS if (path := shutil.which(name)))
    with tempfile.TemporaryDirectory() as profile:
        words = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        words += ["--virtual-time-budget=20000", "--window-size=1280,900"]
        words += [f"--user-data-dir={profile}", f"--screenshot={target.resolve()}"]
        words += [f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"]
        subprocess.run([*words, page.resolve().as_uri()], check=True, capture_output=True)
    return target


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main(sys.argv[1])

"""Builds the wheel, in which `primitives` and `spaces` are below `lpzero`.

The repository has three packages side by side (docs/decisions/0007-three-packages.md). Installed
like that, two common words would be taken: a user's own `spaces.py` could not be imported. So the
wheel has `lpzero/primitives` and `lpzero/spaces`, and the import lines of its files say so. An
editable install is the repository as it is. The pages of the documentation are `lpzero/docs`, for
readers without the repository.
"""

import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

INSIDE = ("primitives", "spaces")
_FROM = re.compile(rf"^(\s*)from ({'|'.join(INSIDE)})\b", re.MULTILINE)
# A link or a picture that is not a page of the same folder, or an address.
_AWAY = re.compile(r"!?\[([^\]]*)\]\((?!https?:|#|[\w-]+\.md\b)[^)]*\)")
_IMPORT = re.compile(rf"^(\s*)import ({'|'.join(INSIDE)})$", re.MULTILINE)


def nested(text):
    """The source with its imports of the two packages from below lpzero."""
    return _IMPORT.sub(r"\1from lpzero import \2", _FROM.sub(r"\1from lpzero.\2", text))


class BuildNested(build_py):
    """Copies the packages, then moves two of them below the third."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        home = Path(self.build_lib, "lpzero")
        for name in INSIDE:
            shutil.rmtree(home / name, ignore_errors=True)  # of an earlier build
            shutil.move(Path(self.build_lib, name), home / name)
        (home / "docs").mkdir(exist_ok=True)
        for path in Path("docs").glob("*.md"):
            text = _AWAY.sub(r"\1", path.read_text(encoding="utf-8"))
            (home / "docs" / path.name).write_text(text, encoding="utf-8")
        for path in (*home.rglob("*.py"), *home.rglob("*.pyi")):
            text = path.read_text(encoding="utf-8")
            if nested(text) != text:
                path.write_text(nested(text), encoding="utf-8")


setup(cmdclass={"build_py": BuildNested})

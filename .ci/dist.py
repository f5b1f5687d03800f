"""Builds the wheel and the sdist into dist/ and checks them.

    python .ci/dist.py

They are built from a copy in which the README has no links to files and no pictures, because a
package has no files beside it: the documentation is inside, and `lpzero --help` names its folder.
"""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
PACKAGES = ("lpzero", "primitives", "spaces")
FILES = (
    *("setup.cfg", "setup.py", "pyproject.toml", "MANIFEST.in"),
    *("README.md", "LICENSE", "CITATION.cff"),
)


def main() -> None:
    """Write dist/lpzero-VERSION.tar.gz and the wheel."""
    from lpzero.version import VERSION

    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        source.mkdir()
        for name in PACKAGES:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        shutil.copytree(ROOT / "docs", source / "docs", ignore=_all_but_pages)
        for name in FILES:
            shutil.copy(ROOT / name, source / name)
        readme = source / "README.md"
        readme.write_text(without_files(readme.read_text(encoding="utf-8")), encoding="utf-8")
        for kind in ("build_wheel", "build_sdist"):
            code = f"from setuptools import build_meta; build_meta.{kind}({str(out)!r})"
            out.mkdir(exist_ok=True)
            subprocess.run(
                [sys.executable, "-c", code], cwd=source, check=True, capture_output=True
            )
    check(out / f"lpzero-{VERSION}-py3-none-any.whl", out / f"lpzero-{VERSION}.tar.gz")


def _all_but_pages(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".md")]


def without_files(text: str) -> str:
    """The README without pictures and without links to files of the repository."""
    text = re.sub(r"!\[[^\]]*\]\((?!https?:)[^)]+\)\n*", "", text)
    return re.sub(r"\[([^\]]*)\]\((?!https?:|#)[^)]+\)", r"\1", text)


def check(wheel: Path, sdist: Path) -> None:
    """Raise AssertionError unless both hold what is needed, and the README has no path."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        message = email.message_from_bytes(archive.read(metadata))
    text = str(message.get_payload())
    assert not re.search(r"\]\((?!https?:|#)", text), "the description has a path"
    assert message["Author"] == "the LPZero engine developers"
    assert "lpzero/docs/tutorial.md" in names, "the documentation is missing"
    assert "lpzero/spaces/data/nano-gpt2.json" in names, "the nano tables are missing"
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"lpzero"}
    with tarfile.open(sdist) as archive:
        members = archive.getnames()
    for name in ("lpzero/version.py", "docs/tutorial.md"):
        assert any(member.endswith(f"/{name}") for member in members), name
    for path in (wheel, sdist):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

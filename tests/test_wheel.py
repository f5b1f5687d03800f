"""The wheel, outside the repository and beside folders that have the names of our packages."""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, unpacked into a folder."""
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    source.mkdir()
    for name in ("lpzero", "primitives", "spaces"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    words = [sys.executable, "-m", "pip", "wheel", str(source), "--no-deps"]
    built = subprocess.run(
        [*words, "--no-build-isolation", "-q", "-w", str(place)], capture_output=True, text=True
    )
    if "No module named pip" in built.stderr or "Cannot import" in built.stderr:
        pytest.skip("pip or setuptools is not installed")
    assert built.returncode == 0, built.stderr
    [wheel] = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place / "site")
    return place / "site"


def test_the_description_is_the_readme(site: Path) -> None:
    [metadata] = site.glob("*.dist-info/METADATA")
    message = email.message_from_string(metadata.read_text(encoding="utf-8"))
    assert message["Description-Content-Type"] == "text/markdown"
    text = message.get_payload()
    assert text == (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("```") % 2 == 0
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows
    assert all(line.endswith("|") for line in rows)


@pytest.mark.parametrize("is_package", [False, True])
def test_folders_with_our_names_do_not_break_it(
    site: Path, tmp_path: Path, is_package: bool
) -> None:
    for name in ("spaces", "primitives"):
        (tmp_path / name).mkdir()
        if is_package:
            (tmp_path / name / "__init__.py").write_text("")
    around = {**os.environ, "PYTHONPATH": str(site)}
    around.pop("PYTHONDONTWRITEBYTECODE", None)  # the first process compiles for all

    def output(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=around, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    # With -m the working directory is first on the path.
    assert "nano-gpt2" in output("-m", "lpzero", "tables")
    if is_package:  # which hides more: a verb that imports nearly everything
        assert "104" in output("-m", "lpzero", "rank", "nano-gpt2", "--proxy", "depth")
    code = "import lpzero, spaces, primitives; print(spaces.__file__, primitives.__file__)"
    assert output("-c", code).count(str(site)) == 2


def test_a_package_that_was_imported_first_is_named(site: Path, tmp_path: Path) -> None:
    (tmp_path / "spaces").mkdir()
    (tmp_path / "spaces" / "__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", "import spaces; import lpzero"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert "import lpzero first, or rename yours" in done.stderr
    assert str(tmp_path / "spaces") in done.stderr

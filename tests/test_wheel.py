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
    for name in ("setup.cfg", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
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

    # With -m the working directory is first on the path.
    assert "nano-gpt2" in run(site, tmp_path, "-m", "lpzero", "tables")
    if is_package:  # which hides more: a verb that imports nearly everything
        words = ("-m", "lpzero", "rank", "nano-gpt2", "--proxy", "depth")
        assert "104" in run(site, tmp_path, *words)


def run(path: Path, folder: Path, *words: str) -> str:
    """The output of Python with these words in the folder, and with the path before others."""
    around = {**os.environ, "PYTHONPATH": str(path)}
    around.pop("PYTHONDONTWRITEBYTECODE", None)  # the first process compiles for all
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=around, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


USERS = """
{imports}
from lpzero.parallel import Workers, stream
assert spaces.MINE == 7, spaces
assert lpzero.load_table("nano-gpt2").space.name == "nano-gpt2"

def double(item):
    import spaces
    return item * spaces.MINE

if __name__ == "__main__":
    print(sorted(value for _, value in stream(double, [1, 2], Workers(2))))
"""


@pytest.mark.parametrize("imports", ["import spaces, lpzero", "import lpzero, spaces"])
def test_a_users_own_spaces_is_the_users(site: Path, tmp_path: Path, imports: str) -> None:
    (tmp_path / "spaces.py").write_text("MINE = 7")
    (tmp_path / "script.py").write_text(USERS.format(imports=imports))
    assert run(site, tmp_path, "script.py") == "[7, 14]"
    code = USERS.format(imports=imports).partition("def double")[0]  # as a notebook runs it
    assert run(site, tmp_path, "-c", f"{code}\nprint(spaces.__file__)").endswith("spaces.py")


# The environment of the tests has the repository itself, as an editable install.
ALONE = """
import os, sys
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in repr(f).lower()]
sys.path[:] = [p for p in sys.path if not os.path.isdir(os.path.join(p, "spaces"))]
"""


def test_without_another_one_the_short_names_are_ours(site: Path, tmp_path: Path) -> None:
    code = "import lpzero, spaces.taps, lpzero.spaces.taps as t; print(spaces.taps is t)"
    assert run(site, tmp_path, "-c", ALONE + code) == "True"
    code = "import lpzero; from primitives import parse; print(parse('sum(l1(W))'))"
    assert run(site, tmp_path, "-c", ALONE + code) == "sum(l1(W))"


def test_the_wheel_exports_the_bytes_of_the_repository(site: Path, tmp_path: Path) -> None:
    words = ("-m", "lpzero", "export", "sum(mul(abs(G), abs(W)))", "--to", "python")
    assert run(site, tmp_path, *words) == run(ROOT, tmp_path, *words)


def test_in_the_repository_both_names_are_one_module(tmp_path: Path) -> None:
    code = "import lpzero.spaces.taps as t, spaces.taps; print(spaces.taps is t, t.__name__)"
    assert run(ROOT, tmp_path, "-c", code) == "True spaces.taps"


def test_in_the_repository_another_package_that_came_first_is_named(tmp_path: Path) -> None:
    (tmp_path / "spaces").mkdir()
    (tmp_path / "spaces" / "__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", "import spaces; import lpzero"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert "import lpzero first, or install a wheel" in done.stderr
    assert str(tmp_path / "spaces") in done.stderr

"""What a module declares is found by the registry it belongs to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import spaces
from spaces.declarations import declared


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / f"newcomers_{tmp_path.name}"  # modules stay imported: each test its own
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_modules_are_found_in_the_order_of_their_names(package: Path) -> None:
    for name in ("b", "a", "c"):
        (package / f"{name}.py").write_text(f"THING = {name!r}\n")
    (package / "other.py").write_text("")
    assert declared(package.name, [str(package)], "THING") == ["a", "b", "c"]


def test_modules_that_are_not_wanted_are_not_imported(package: Path) -> None:
    (package / "broken.py").write_text("raise RuntimeError")
    (package / "sound.py").write_text("THING = 1")
    found = declared(package.name, [str(package)], "THING", lambda m: m.name != "broken")
    assert found == [1]


def test_every_family_is_registered() -> None:
    folder = Path(spaces.__path__[0])
    families = {path.parent.name for path in folder.glob("*/__init__.py")} - {
        "own",
        "tables",
        "training",
    }
    encoders = {"autoformer", "bert", "flexibert", "pit", "shunted"}
    decoders = {"gpt2", "openlm", "transformer_xl"}
    assert families == encoders | decoders | {"bignas", "nlp_rnn"}
    assert all(spaces.get(name).name == name for name in spaces.names())


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["spaces", "spaces.tables", "lpzero.search.loops", "lpzero.export", "lpzero.report"]
)
def test_registries_do_not_need_torch(module: str) -> None:
    code = f"import sys, {module}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

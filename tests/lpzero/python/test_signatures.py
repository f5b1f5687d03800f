"""Signatures, help and types of what `import lpzero` offers: every option of every verb."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lpzero
from lpzero.options import options
from lpzero.python import signatures
from lpzero.verbs import module

STUB = Path(lpzero.__file__).with_suffix(".pyi")
# Options that are arguments of another name in Python, or of the command line alone.
ELSEWHERE = {
    "Discovery": {"quiet", "no_lock"},
    "exhaust": set(),
    "rank": set(),
    "score": {"hf", "inputs", "show_layout", "corpus", "tokenizer", "memory", "length", "dtype"},
    "search": {"proxies", "loops", "hf", "quiet"},
    "train": {"quiet"},
}


def test_the_stub_is_what_the_requests_give() -> None:
    assert STUB.read_text(encoding="utf-8") == signatures.stub(), (
        "run: python -m lpzero.python.signatures > lpzero/__init__.pyi"
    )


@pytest.mark.parametrize("name", ELSEWHERE)
def test_every_option_is_in_the_signature_and_in_the_help(name: str) -> None:
    offered = getattr(lpzero, name)
    verb = "discover" if name == "Discovery" else name
    declared = {o.name: o for o in options(module(verb).Request) if not o.is_argument}
    shown = inspect.signature(offered).parameters
    assert set(declared) - set(shown) == ELSEWHERE[name]
    text = " ".join(pydoc.render_doc(offered, renderer=pydoc.plaintext).split())
    counted = 0
    for option in set(declared) & set(shown):
        if declared[option].help and "Options:" in offered.__doc__ and option in offered.__doc__:
            counted += 1
            assert option in text
    assert counted > 5
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in shown.values())


SCRIPT = """
import lpzero
found = lpzero.Discovery("nano-gpt2", generations=2)
reveal_type(lpzero.Discovery)
reveal_type(found.fit())
reveal_type(found.best_.rho["test"])
reveal_type(found.best_.interval)
reveal_type(found.best_.formula.latex())
reveal_type(found.predict([]))
reveal_type(found.score("nano-gpt2"))
reveal_type(lpzero.rank("nano-gpt2", ["snip", found]).column("rho"))
best = lpzero.search("nano-gpt2", found, "random", max_parameters=1e6, samples=10)
reveal_type(best.arch)
reveal_type(best.best_["target"])
reveal_type(lpzero.rank("nano-gpt2")[0]["rho"])
reveal_type(found.hall_of_fame_[0]["formula"])
reveal_type(found.history_[0]["fitness"])
reveal_type(found.result_)
reveal_type(found.generations)
reveal_type(found.predictor_.predict([], return_std=True))
reveal_type(best.parameters)
reveal_type(lpzero.exhaust("nano-gpt2", unaries=1).formula)
reveal_type(lpzero.train("nano-gpt2", n_archs=2).table)
reveal_type(lpzero.load("runs/a"))
reveal_type(lpzero.load_table("nano-gpt2").targets)
reveal_type(lpzero.formula("sum(l1(W))"))
reveal_type(lpzero.__version__)
lpzero.rank("nano-gpt2", sedes=3)
lpzero.Discovery("nano-gpt2", generations="many")
"""


@pytest.mark.slow
def test_mypy_knows_the_types_of_a_users_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    words = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports"]
    words += ["--config-file", str(STUB.parents[1] / "setup.cfg"), str(script)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=STUB.parents[1])
    lines = [line for line in done.stdout.splitlines() if "script.py" in line]
    revealed = [line for line in lines if "Revealed type" in line]
    assert len(revealed) == SCRIPT.count("reveal_type("), done.stdout
    in_types = [re.sub(r"Space\[Any\]", "Space", line) for line in revealed[1:]]
    assert not [line for line in in_types if "Any" in line.replace("tuple[Any, ...]", "")]
    errors = [line for line in lines if "error" in line]
    assert len(errors) == 2, errors
    assert '"sedes"' in errors[0]
    assert '"generations"' in errors[1]

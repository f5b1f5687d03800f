"""Every verb on untrusted files: nothing of them is run, fetched or followed.

The verbs and their options are listed from their declarations, so a new one fails until the
commands that attack it are declared in `attacks`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lpzero import verbs
from lpzero.options import Names, Option, Repeated, Text, options
from tests.faults.attempt import BUSY, attempt
from tests.lpzero.verbs.attacks import COMMANDS, HOSTILE, LOOK_UP, NOT_FILES, WRITTEN
from tests.lpzero.verbs.audited import ROOT, main


def _reads_files(verb: str) -> list[Option]:
    """The options and arguments of the verb whose values may be files of others."""
    entries = options(verbs.module(verb).Request)
    texts = [entry for entry in entries if isinstance(entry.kind, (Text, Repeated, Names))]
    return [
        entry
        for entry in texts
        if not entry.is_code and entry.name not in NOT_FILES and (verb, entry.name) not in WRITTEN
    ]


@pytest.mark.parametrize("verb", sorted(verbs.commands()))
def test_every_option_that_reads_a_file_is_attacked(verb: str) -> None:
    assert verb in COMMANDS, f"declare the attacks on {verb} in attacks.COMMANDS"
    lines = [line.split() for line in COMMANDS[verb]]
    for entry in _reads_files(verb):
        word = verb if entry.is_argument else entry.flag
        follows = {line[line.index(word) + 1].rpartition(":")[2] for line in lines if word in line}
        assert follows & HOSTILE, f"declare an attack by way of {entry.name} of {verb}"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the commands of every verb did."""
    pytest.importorskip("transformers", reason="the extra lpzero[hf] is not installed")
    folder = tmp_path_factory.mktemp("attacked").resolve()
    (folder / "tmp").mkdir()
    done = attempt([], folder.with_name("said"), act=lambda _: main(folder), limit=BUSY)
    assert done.code == 0, done.err[-3000:]
    found: dict[str, Any] = json.loads((folder / "seen.json").read_text())
    return found


@pytest.mark.slow
def test_nothing_is_run_fetched_started_or_written_elsewhere(seen: dict[str, Any]) -> None:
    assert seen["problems"] == {}


@pytest.mark.slow
def test_every_command_ends_with_a_result_or_in_one_line(seen: dict[str, Any]) -> None:
    assert seen["codes"].keys() == verbs.commands().keys()
    for verb, codes in seen["codes"].items():
        if verb == "dashboard":
            assert codes[0] > 50, "every hostile run is in its list"
        else:
            assert set(codes) <= {0, 2}, verb


@pytest.mark.slow
def test_without_the_boundary_the_attacks_succeed(seen: dict[str, Any]) -> None:
    assert {verb for verb, n_run in seen["reached"].items() if n_run} == LOOK_UP


@pytest.mark.slow
def test_the_hook_sees_what_it_looks_for(tmp_path: Path) -> None:
    script = f"""
import os, pathlib, pickle, runpy, socket, subprocess, sys
from tests.lpzero.verbs.audited import Audit
folder = pathlib.Path({str(tmp_path)!r}, "inside")
folder.mkdir()
(folder / "evil.py").write_text("x = 1")
audit = Audit(folder)
with audit.watching() as seen:
    runpy.run_path(str(folder / "evil.py"))
    open(folder / "allowed", "w").close()
    open(folder.parent / "outside", "w").close()
    subprocess.run(["true"], check=True)
    try:
        socket.create_connection(("192.0.2.1", 9), timeout=0.01)
    except OSError:
        pass
    pickle.loads(pickle.dumps(print))
print(sorted(line.split()[0] for line in set(seen)))
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    kinds = set(done.stdout.strip("[]\n").replace("'", "").split(", "))
    assert kinds == {"asks", "runs", "starts", "unpickles", "writes"}

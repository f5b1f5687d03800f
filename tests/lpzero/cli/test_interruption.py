"""A command with workers that is killed or terminated: no process is left, finished work is."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click
import pytest

from lpzero.cli.main import run
from lpzero.cli.screens import handling, same_command, terminable
from lpzero.sketches.sketch import Sketch, SketchOptions, address, encode, identity
from lpzero.sketches.store import Store
from spaces.tables import load
from tests.lpzero import random_sketches

ROOT = Path(__file__).parents[3]
SECONDS = 60  # how long after its parent a worker may live


def of_session(leader: int) -> list[int]:
    """The living processes of the session that this process leads or led."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, *_, session = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        if int(session) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def wait_for(condition: Callable[[], bool], seconds: float = 600) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def draw_sketches(folder: Path) -> None:
    """Sketches of random numbers for nano-gpt2, so that no network is run."""
    table, store, options = load("nano-gpt2"), Store(folder), SketchOptions()
    for index, arch in enumerate(table.archs):
        one = random_sketches.sketch(index, n_blocks=1)  # tabulated soon
        header = {**identity(table.space, arch, options), **one.header}
        name = address(table.space, arch, options)
        store.write(table.space.name, name, encode(Sketch(header, one.numbers)))


# A verb whose processes import no torch, and the files that show that it is in the middle of its
# work. Every verb has the same workers and the same signals.
WORDS = ["exhaust", "nano-gpt2", "--unaries", "2", "--cache", "FOLDER/c", "--out", "FOLDER/out"]
WORKED = "c/**/*.branches"


def start(words: list[str]) -> subprocess.Popen[str]:
    """The command with two jobs, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "lpzero.cli.main", *words, "--jobs", "2"],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_is_left_of_a_killed_or_terminated_command(
    number: signal.Signals, tmp_path: Path
) -> None:
    draw_sketches(tmp_path / "c")
    given = [word.replace("FOLDER", str(tmp_path)) for word in WORDS]
    with start(given) as process, ExitStack() as stack:
        stack.callback(process.kill)
        assert wait_for(lambda: any(tmp_path.glob(WORKED)))
        assert len(of_session(process.pid)) >= 3, "it has two workers"
        process.send_signal(number)
        process.wait(SECONDS)
        assert wait_for(lambda: not of_session(process.pid), SECONDS)
        out, err = process.communicate()
    if number == signal.SIGKILL:
        return
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    again = shlex.join(["lpzero", *given, "--jobs", "2"])
    assert err.endswith(f"stopped; finished work is saved, continue with: {again}\n")


def test_sigterm_is_an_interruption_and_the_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), terminable():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
    heard = []
    with handling((signal.SIGINT, signal.SIGTERM), lambda number, frame: heard.append(number)):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
    assert heard == [signal.SIGTERM, signal.SIGINT]


def test_the_command_that_continues_is_quoted_and_has_each_word_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands = []

    def stopped(folder: Path, **options: object) -> None:
        commands.append(same_command(click.get_current_context(), "--resume"))
        raise KeyboardInterrupt

    monkeypatch.setattr("spaces.tables.describe", stopped)
    assert run(["tables", "--data", "a b"]) == 130
    assert commands == ["lpzero tables --data 'a b' --resume"]
    resumed = click.Context(click.Command("discover"), obj=("discover", "--resume", "--out", "x"))
    assert same_command(resumed, "--resume") == "lpzero discover --resume --out x"

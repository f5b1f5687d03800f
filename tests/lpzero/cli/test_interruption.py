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
from subprocess import PIPE

import click
import pytest

from lpzero.cli.main import run
from lpzero.cli.screens import handling, same_command, terminable

ROOT = Path(__file__).parents[3]


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


def wait_for(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 600
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


# A verb whose work is that of workers which import no torch; each leaves a file in the folder.
WORKING = """
import os, sys, time
from pathlib import Path
from lpzero.cli.main import run
from lpzero.parallel import stream
from lpzero.verbs import stats

def sleep(request, screen):
    def work(item):
        Path(request.table, str(os.getpid())).touch()
        time.sleep(0.05)
    list(stream(work, range(100_000), request.running.workers))

stats.run = sleep
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_is_left_of_a_killed_or_stopped_command(
    number: signal.Signals, tmp_path: Path
) -> None:
    words = ["stats", str(tmp_path), "--jobs", "2"]
    command = [sys.executable, "-c", WORKING, *words]
    with (
        subprocess.Popen(
            command, cwd=ROOT, text=True, stdout=PIPE, stderr=PIPE, start_new_session=True
        ) as process,
        ExitStack() as stack,
    ):
        stack.callback(process.kill)
        assert wait_for(lambda: len(list(tmp_path.iterdir())) >= 2 or process.poll() is not None)
        assert len(of_session(process.pid)) >= 3, "it has two workers"
        if number == signal.SIGINT:  # as a terminal does, to every process of the command
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        assert wait_for(lambda: not of_session(process.pid))
        out, err = process.communicate()
    if number == signal.SIGKILL:
        return
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    again = shlex.join(["lpzero", *words])
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

"""`lpzero dashboard` as a process: its address, its end, and its errors in one line."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from lpzero.cli.main import run
from lpzero.verbs.dashboard import _redirect

pytest.importorskip("starlette", reason="the extra lpzero[dashboard] is not installed")
pytest.importorskip("uvicorn", reason="the extra lpzero[dashboard] is not installed")


@pytest.mark.slow
def test_it_prints_its_address_answers_there_alone_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lpzero.cli.main", "dashboard", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as answer:
            assert b"There is no run yet." in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.rsplit("/", 2)[0])
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=600)
    assert running.returncode == 130
    assert "Traceback" not in errors


def test_what_is_not_a_folder_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["dashboard", str(tmp_path / "none")]) == 2
    assert "is not a folder: name one with runs below it" in capsys.readouterr().err


def test_a_port_in_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["dashboard", str(tmp_path), "--port", str(port)]) == 2
    assert f"port {port} of 127.0.0.1 cannot be used" in capsys.readouterr().err


def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run(["dashboard", str(tmp_path)]) == 2
    assert "pip install 'lpzero[dashboard]'" in capsys.readouterr().err


def test_an_unknown_tracker_ends_a_campaign_before_it_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["discover", "nano-gpt2", "--out", str(tmp_path / "x"), "--track", "wandb:y"]) == 2
    assert "expected one of tensorboard:FOLDER, mlflow:FOLDER" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_browser_is_given_no_token(tmp_path: Path) -> None:
    shown = _redirect(tmp_path, "http://127.0.0.1:8787/token/")
    assert shown.startswith("file://")
    assert "token" not in shown.removeprefix(tmp_path.as_uri())
    assert "url=http://127.0.0.1:8787/token/" in (tmp_path / "dashboard.html").read_text()

"""Proxies that another package offers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lpzero.proxies import find, get, names, registry
from spaces.errors import UnknownNameError

MODULE = '''
from lpzero.proxies import Needs, get, proxy

FORMULA = "sum(fro(W))"
BAD = "sum(blur(W))"
NOTHING = object()
ALIAS = get("snip")

@proxy(needs=Needs.FORWARD, paper="Nobody 2026")
def fake_sum(network):
    """the sum of all weights"""
    return float(sum(weight.sum() for weight in network.weights))
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution on the path; what it registers is forgotten afterwards."""
    before = registry.snapshot()
    monkeypatch.setattr(registry, "_has_plugins", False)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    registry.restore(before)
    for name in [name for name in sys.modules if name.startswith("fake_proxies")]:
        del sys.modules[name]


def offer(folder: Path, entries: str, distribution: str = "fake", module: str = MODULE) -> None:
    """Install a package that is one module and these entry points."""
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lpzero.proxies]\n{entries}\n")
    (folder / f"{distribution}_proxies.py").write_text(module)


def test_a_module_a_formula_and_a_function_are_taken(package: Path) -> None:
    offer(package, "any = fake_proxies\nweights = fake_proxies:FORMULA\nf = fake_proxies:fake_sum")
    assert get("fake-sum").paper == "Nobody 2026"
    assert find("weights").definition == "sum(fro(W))"
    assert {"fake-sum", "weights"} <= set(names())


def test_nothing_is_loaded_for_a_proxy_of_ours(
    package: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offer(package, "any = fake_proxies", module="raise SystemExit('at import')")
    assert find("snip") is get("snip")
    assert caplog.messages == []
    assert "snip" in names()
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("entries", "module", "reason"),
    [
        ("x = fake_proxies", "raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
        ("x = fake_proxies", "import no_such_module_at_all", "ModuleNotFoundError"),
        ("x = fake_proxies", "def f(:", "SyntaxError"),
        ("x = fake_proxies", "raise SystemExit(3)", "SystemExit: 3"),
        ("x = fake_proxies", "", "fake_proxies declares no proxy"),
        ("x = fake_proxies:gone", MODULE, "AttributeError"),
        ("x = fake_proxies:BAD", MODULE, "unknown name 'blur'"),
        ("snip = fake_proxies:FORMULA", MODULE, "there is a proxy snip already"),
        ("a/b = fake_proxies:FORMULA", MODULE, "cannot be a proxy's name"),
    ],
)
def test_a_broken_plug_in_costs_one_line(
    entries: str, module: str, reason: str, package: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = registry.snapshot()
    offer(package, entries, module=module)
    offer(package, "good = good_proxies:TEXT", "good", "TEXT = 'sum(fro(A))'")
    assert "good" in names()
    (line,) = caplog.messages
    assert reason in line
    assert line.startswith(f"plug-in {entries.split(' ')[0]} of fake is ignored: ")
    assert "\n" not in line
    assert set(registry.snapshot()) == {*before, "good"}


def test_of_two_packages_with_one_name_the_second_is_left_out(
    package: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offer(package, "same = alpha_proxies:TEXT", "alpha", "TEXT = 'sum(A)'")
    offer(package, "same = beta_proxies:TEXT", "beta", "TEXT = 'sum(H)'")
    assert find("same").definition == "sum(A)"
    (line,) = caplog.messages
    assert "same of beta is ignored: InputError: there is a proxy same already" in line


def test_a_name_that_nobody_offers_is_still_unknown(package: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'snip'"):
        get("snipp")


@pytest.mark.slow
def test_the_command_line_knows_a_plug_in_and_reports_another(tmp_path: Path) -> None:
    offer(tmp_path, "any = fake_proxies\nbad = fake_proxies:BAD\nweights = fake_proxies:FORMULA")
    done = subprocess.run(
        [sys.executable, "-m", "lpzero.cli.main", "export", "weights", "--to", "json"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"formula": "sum(fro(W))"' in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("note: plug-in bad of fake is ignored: ")

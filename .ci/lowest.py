"""Runs the fast tests with the lowest version of every dependency that setup.cfg declares.

    python .ci/lowest.py ENVIRONMENT [pytest arguments]

Makes the virtual environment if it is not there. A version without a wheel for this Python is
replaced by the next one that has one, and torch by the version of constraints.txt where the
lowest has no CPU build: the output names both.
"""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("test",)
NOT_NEEDED = {"mypy", "ruff", "types-PyYAML"}  # check the code, do not run it
MOST_TRIED = 6
# torch's newest wheels need more than the lowest sympy; this lists what it imports besides.
TORCH_NEEDS = ("filelock", "fsspec", "jinja2", "networkx", "typing-extensions")


def main() -> int:
    """The exit code of the tests."""
    environment, *arguments = sys.argv[1:] or [".lowest"]
    python = _python(Path(environment))
    chosen, remarks = [], []
    for name, least in _declared():
        version = _first_with_wheel(python, name, least)
        if version is None:
            version = _pinned(name)
            remarks.append(f"{name} {least}: not to be had here, tested with {version}")
        elif version != least and _numbers(version) != _numbers(least):
            remarks.append(f"{name} {least}: no wheel here, tested with {version}")
        chosen.append((name, version))
    torch = [f"{name}=={version}" for name, version in chosen if name == "torch"]
    others = [f"{name}=={version}" for name, version in chosen if name != "torch"]
    _pip(python, "install", "--quiet", "--only-binary", ":all:", *others, *TORCH_NEEDS)
    _pip(python, "install", "--quiet", "--no-deps", *torch)
    print("lowest versions:", ", ".join(f"{name} {version}" for name, version in chosen))
    for remark in remarks:
        print("not the lowest:", remark)
    sys.stdout.flush()
    # Old libraries are deprecated by newer ones that they use.
    quiet = ("-W", "ignore::DeprecationWarning")
    command = [str(python), "-m", "pytest", "-m", "not slow", *quiet, *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def _declared() -> list[tuple[str, str]]:
    """(name, lowest version) of what runs the package and its tests."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options"]["install_requires"].splitlines()
    for extra in EXTRAS:
        lines += setup["options.extras_require"][extra].splitlines()
    found = [re.fullmatch(r"([\w.-]+)>=([\d.]+)", line.strip()) for line in lines]
    return [(one[1], one[2]) for one in found if one and one[1] not in NOT_NEEDED]


def _first_with_wheel(python: Path, name: str, least: str) -> str | None:
    """The lowest version from `least` on that has a wheel; None if none of the first few has."""
    download = ("download", "--quiet", "--no-deps", "--dest", str(python.parents[1] / "wheels"))
    if name == "torch":
        found = _pip(python, *download, f"torch=={least}+cpu", check=False)
        return f"{least}+cpu" if found.returncode == 0 else None
    listed = _pip(python, "index", "versions", name, check=False).stdout
    line = next((x for x in listed.splitlines() if x.startswith("Available versions:")), "")
    versions = [v.strip() for v in line.removeprefix("Available versions:").split(",")]
    plain = [v for v in versions if re.fullmatch(r"[\d.]+", v)]
    allowed = sorted((v for v in plain if _numbers(v) >= _numbers(least)), key=_numbers)
    for version in allowed[:MOST_TRIED]:
        wanted = ("--only-binary", ":all:", f"{name}=={version}")
        done = _pip(python, *download, *wanted, check=False)
        if done.returncode == 0:
            return version
    return None


def _numbers(version: str) -> tuple[int, ...]:
    parts = [int(part) for part in version.split("+")[0].split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def _pinned(name: str) -> str:
    """The version that constraints.txt pins."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return next(line.split("==")[1] for line in lines if line.startswith(f"{name}=="))


def _python(environment: Path) -> Path:
    python = environment.absolute() / "bin" / "python"
    if not python.exists():
        venv.create(environment, with_pip=True)
    return python


def _pip(python: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *words]
    return subprocess.run(command, cwd=ROOT, check=check, capture_output=True, text=True)


if __name__ == "__main__":
    sys.exit(main())

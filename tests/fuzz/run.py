"""Coverage-guided fuzzing of the readers of untrusted files; a finding is kept with its input.

    python -m tests.fuzz.run [--only NAME] [--seconds 300] [--out runs/fuzz]

Every target (`targets.py`) runs in a process of its own (`child.py`), one after the other. A
finding is an error that is not one of the project's one-line errors for wrong input, more than 2 s
of processor time or more than 300 MB. The exit code is 1 if there is one. Needs the extra `fuzz`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from experiments.measured import measured
from tests.fuzz.child import REASON
from tests.fuzz.targets import TARGETS

_CHILD = "from tests.fuzz.child import fuzz; fuzz()"
_PROGRESS = re.compile(r"^#(\d+)\s+[A-Za-z]+\s+cov: (\d+)", re.M)
_PATIENCE = 900  # seconds beyond those asked for: imports on a busy machine, and the last input


@dataclass(frozen=True)
class Fuzzed:
    """How often a target was executed, and how many edges of its code that reached."""

    executions: int
    edges: int


def main() -> None:
    """Run the targets and print a line for each."""
    asked = _arguments()
    print("| target | executions | edges | findings |\n|---|---|---|---|")
    n_findings = 0
    for name in TARGETS:
        if asked.only in (None, name):
            findings = _run(name, asked.seconds, asked.out)
            n_findings += len(findings)
            for finding in findings:
                print(f"{finding}: {_reason(finding)}", file=sys.stderr)
    print(measured())
    raise SystemExit(1 if n_findings else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--only", choices=list(TARGETS), help="run this target alone")
    parser.add_argument("--seconds", type=int, default=300, help="for each target")
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"), help="for the findings")
    return parser.parse_args()


def _run(name: str, seconds: int, out: Path) -> list[Path]:
    """Run a target and print its line; the inputs that it read in a wrong way."""
    kept, log = out / name, out / f"{name}.log"
    kept.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", _CHILD, name, str(seconds), str(kept.resolve())]
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            code = process.wait(seconds + _PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
    found = fuzzed(log.read_text(errors="replace"))
    findings = sorted(path for path in kept.iterdir() if path.suffix != REASON)
    if code != 0 and not findings:
        findings = [log]
    print(f"| {name} | {found.executions:,} | {found.edges:,} | {len(findings)} |", flush=True)
    return findings


def fuzzed(log: str) -> Fuzzed:
    """The last numbers that libFuzzer printed."""
    lines = _PROGRESS.findall(log)
    return Fuzzed(*map(int, lines[-1])) if lines else Fuzzed(0, 0)


def _reason(finding: Path) -> str:
    """What is written beside the input, or where what ended the process is."""
    beside = finding.with_suffix(REASON)
    return beside.read_text().strip() if beside.exists() else "the process ended, see the log"


if __name__ == "__main__":
    main()

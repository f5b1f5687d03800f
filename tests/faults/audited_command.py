"""One command of lpzero under an audit hook; what no command may do is written to a file.

    python -m tests.faults.audited_command FOLDER SEEN VERB ...

FOLDER is where the command may write, SEEN the file for what the hook saw. `dashboard RUNS` serves
the folder to this process, which opens the list and every page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lpzero.cli.main import run
from tests.lpzero.verbs.audited import Audit


def browse(folder: Path) -> int:
    """Open the list, every page and a comparison; 0 if the dashboard answered all of them."""
    from tests.lpzero.dashboard.served import serving

    with serving(folder) as served:
        runs = [line["id"] for line in served.ask("api/runs").json()["runs"]]
        pages = ["", *(f"run/{run}" for run in runs)]
        pages.append("compare?" + "&".join(f"run={run}" for run in runs[:2]))
        answers = {page: served.ask(page).status for page in pages}
    failures = {page: status for page, status in answers.items() if status >= 500}
    if failures or not runs:
        print(f"unexpected answers of {len(runs)} runs: {failures}", file=sys.stderr)
    return 1 if failures or not runs else 0


def main(folder: Path, seen_file: Path, words: list[str]) -> int:
    """Run the command; its exit code."""
    audit = Audit(folder)
    with audit.watching() as seen:
        code = browse(Path(words[1])) if words[0] == "dashboard" else run(words)
    seen_file.write_text(json.dumps(seen))
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]), sys.argv[3:]))

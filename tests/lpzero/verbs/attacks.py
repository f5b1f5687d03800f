"""Commands of every verb on hostile files, and what they did.

Words in capitals stand for files. Those of HOSTILE are an attacker's: a command is performed with
each of them. `perform` runs in the process of `audited`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from lpzero.cli.main import run
from lpzero.runs import layout
from spaces import user_modules
from tests.lpzero.dashboard.served import serving
from tests.lpzero.verbs import test_reproduce
from tests.lpzero.verbs.audited import Audit
from tests.lpzero.verbs.hostile_files import Attacker

_SMALL = "--quiet --generations 1 --population 4 --offspring 2 --permutations 0 --splits 0"
_ROWS = "HONEST_ROWS --space nano-gpt2 --target accuracy --batch 2 --length 8"
_COLUMNS = "HONEST_COLUMNS --target accuracy"
_LOOP = "--loop random --proxy depth --samples 2 --quiet"
_HF = "--hf HONEST_CONFIG --batch 2 --length 8"
_SUPERNET = "train nano-autoformer --supernet --steps 1 --batch 2 --images 2 --quiet"
_BOARD = "leaderboard nano-rnn --proxy depth --quiet"
_BUILD = "train nano-rnn --n 2 --seeds 2 --steps 1 --quiet"

# A command for every option and argument whose value is a file or a folder.
COMMANDS: dict[str, tuple[str, ...]] = {
    "classics": ("classics",),
    "counters": (
        "counters TABLE",
        "counters pit-c100 --data DATA",
        "counters gpt2-wt103 --data DATA",
    ),
    "dashboard": ("dashboard FOLDER",),
    "discover": (
        f"discover TABLE --target accuracy {_SMALL} --out NEW",
        f"discover --out RUN --resume {_SMALL}",
        f"discover {_ROWS} --corpus TEXT --out NEW",
        f"discover {_ROWS} --tokenizer TEXT --corpus HONEST_TEXT --out NEW",
        f"discover pit-c100 --data DATA {_SMALL} --out NEW",
        f"discover {_COLUMNS} --columns-only {_SMALL} --cache CACHE --out NEW",
    ),
    "exhaust": (
        "exhaust TABLE --target accuracy --out NEW",
        f"exhaust {_ROWS} --out RUN --permutations 0 --top 3",
        f"exhaust {_ROWS} --corpus TEXT --out NEW",
        f"exhaust {_ROWS} --tokenizer TEXT --corpus HONEST_TEXT --out NEW",
        "exhaust pit-c100 --data DATA --out NEW",
        "exhaust pit-c100 --data DATA --cache CACHE --out NEW",
    ),
    "export": ("export RUN --to json", "export RUN --to python --all", "export FORMULA --to json"),
    "leaderboard": (
        f"{_BOARD} --out RUN",
        "leaderboard TABLE --proxy depth --quiet --out NEW",
        f"{_BOARD} --add FORMULA --out NEW",
        "leaderboard nano-rnn --proxy FORMULA --quiet --out NEW",
        "leaderboard pit-c100 --data DATA --proxy depth --quiet --out NEW",
        "leaderboard nano-gpt2 --proxy snip --time-limit 1 --quiet --cache CACHE --out NEW",
    ),
    "rank": (
        "rank TABLE --target accuracy --proxy depth",
        f"rank {_COLUMNS} --proxy RUN",
        f"rank {_ROWS} --proxy RUN",
        "rank nano-rnn --proxy FORMULA",
        f"rank {_COLUMNS} --proxy cost --out RUN",
        f"rank {_ROWS} --proxy snip --corpus TEXT",
        f"rank {_ROWS} --proxy snip --tokenizer TEXT --corpus HONEST_TEXT",
        "rank pit-c100 --data DATA --proxy depth",
        f"rank {_ROWS} --proxy snip --cache CACHE",
    ),
    "report": (
        "report RUN --out NEW",
        "report PAGE --out NEW",
        "report HONEST_CAMPAIGN --beside RUN --out NEW",
        "report HONEST_CAMPAIGN --ranking RUN --out NEW",
        "report HONEST_CAMPAIGN --ranking TEXT --out NEW",
        "report RUN --transfer --beside HONEST_CAMPAIGN --data DATA --cache CACHE --out NEW",
    ),
    "rules": ("rules --unaries 1",),
    "score": (
        "score --hf HF --proxy snip",
        f"score {_HF} --proxy RUN",
        f"score {_HF} --proxy FORMULA",
        f"score {_HF} --proxy snip --corpus TEXT",
        f"score {_HF} --proxy snip --tokenizer TEXT --corpus HONEST_TEXT",
        f"score {_HF} --proxy snip --layout TEXT",
    ),
    "search": (
        f"search --hf HF_SPACE {_LOOP}",
        "search nano-gpt2 --loop random --samples 2 --quiet --evaluator proxy --proxy RUN",
        "search nano-gpt2 --loop random --samples 2 --quiet --evaluator proxy --proxy FORMULA",
        f"search nano-autoformer {_LOOP} --evaluator supernet:RUN",
        f"search nano-rnn {_LOOP} --evaluator table --table TABLE",
        "search --out RUN --resume --quiet",
        f"search nano-gpt2 --compare {_LOOP} --seeds 2 --evaluator table --out RUN --resume",
        f"search nano-gpt2 {_LOOP} --evaluator proxy --corpus TEXT",
        f"search nano-gpt2 {_LOOP} --evaluator proxy --tokenizer TEXT --corpus HONEST_TEXT",
        f"search pit {_LOOP} --evaluator table --table pit-c100 --data DATA",
        f"search nano-gpt2 {_LOOP} --evaluator proxy --cache CACHE",
    ),
    "specialise": ("specialise RUN --out NEW.safetensors",),
    "stats": (
        "stats TABLE",
        "stats --list --cache CACHE",
        "stats --prune stale --cache CACHE",
        "stats pit-c100 --data DATA",
        f"stats {_ROWS} --corpus TEXT",
        f"stats {_ROWS} --tokenizer TEXT --corpus HONEST_TEXT",
    ),
    "tables": ("tables --data DATA",),
    "train": (
        f"{_BUILD} --out RUN",
        f"{_SUPERNET} --out SUPERNET",
        f"{_SUPERNET} --weights WEIGHTS --out NEW",
        f"{_SUPERNET} --select TEXT --out NEW",
    ),
}
# Verbs that need the space of a run or of a table, and therefore look up what the file names.
LOOK_UP = {
    "counters", "discover", "exhaust", "export", "rank", "score", "search",
    "specialise", "stats",
}  # fmt: skip
# Options of texts that are no files, or that the user writes as code of their own (`is_code`).
NOT_FILES = {
    "within",
    "arch", "columns", "dataset", "device", "formula", "ids", "loops", "name", "off", "prune",
    "scheduler", "start", "target", "task", "terms_from", "track", "words",
}  # fmt: skip
# Folders and files that are written, not read, where no run is continued.
WRITTEN = {("export", "out"), ("report", "out"), ("specialise", "out")}


def files_of(attacker: Attacker, honest: dict[str, Path], formula: str) -> dict[str, list[Path]]:
    """The hostile files by the word that stands for them."""
    return {
        "RUN": [copy for run in honest.values() for copy in attacker.runs(run, layout.CONFIG)],
        "PAGE": [
            copy
            for run in honest.values()
            for name, field in ((layout.CONFIG, "command"), (layout.RESULT, ""))
            for copy in attacker.runs(run, name, field)
        ],
        "SUPERNET": list(attacker.runs(honest["supernet training"], layout.CONFIG)),
        "TABLE": [attacker.trained_table(), attacker.rows()],
        "FORMULA": [attacker.export(formula), attacker.text("formula.json")],
        "DATA": [attacker.data_root()],
        "CACHE": [attacker.cache()],
        "TEXT": [attacker.text("tokenizer.json"), attacker.object_yaml("text.json")],
        "HF": [attacker.hf_folder(), attacker.hf_folder() / "config.json"],
        "HF_SPACE": [attacker.hf_space(), attacker.object_yaml()],
        "WEIGHTS": [attacker.pickled("w.pth"), attacker.safetensors()],
    }


HOSTILE = {
    "RUN",
    "PAGE",
    "FOLDER",
    "SUPERNET",
    "TABLE",
    "FORMULA",
    "DATA",
    "CACHE",
    "TEXT",
    "HF",
    "HF_SPACE",
    "WEIGHTS",
}


def perform(folder: Path, audit: Audit) -> dict[str, Any]:
    """What the commands of every verb did, by the command, and what they do without the boundary.

    `problems` should be empty. `reached` are the verbs that ran an attacker's code when every
    address was loaded: the attacks get as far as that.
    """
    honest = honest_runs(folder / "honest")
    formula = printed_by(["export", str(honest["campaign"]), "--to", "json"])
    attacker = Attacker(folder / "hostile")
    hostile = files_of(attacker, honest, formula)
    plain = honest_files(folder / "files", honest)
    problems: dict[str, list[str]] = {}
    codes: dict[str, list[int]] = defaultdict(list)
    reached: dict[str, bool] = defaultdict(bool)
    for verb, template in ((name, line) for name, lines in COMMANDS.items() for line in lines):
        act = run if verb != "dashboard" else lambda words: _browse(Path(words[1]))
        for words in _filled(template, hostile, plain, folder):
            code, seen = _watched(audit, act, words)
            codes[verb].append(code)
            if seen:
                problems[" ".join(words).replace(str(folder), "")] = seen
            looks_up = {"RUN", "TABLE"} & set(map(_kind, template.split()))
            if verb in LOOK_UP and looks_up and not reached[verb]:  # one that succeeds is enough
                reached[verb] = _without_boundary(audit, act, words)
    return {"problems": problems, "codes": codes, "reached": reached}


Act = Callable[[list[str]], int]


def _watched(audit: Audit, act: Act, words: list[str]) -> tuple[int, list[str]]:
    with _silent(), audit.watching() as seen:
        code = act(words)
    return code, seen


def _without_boundary(audit: Audit, act: Act, words: list[str]) -> bool:
    """Whether an attacker's file is run if every address that is looked up is loaded."""
    with mock.patch.object(user_modules, "_given", user_modules.load):
        _, seen = _watched(audit, act, words)
    for known in (user_modules._LOADED, user_modules._IMPORTED, user_modules._SPACES):
        known.clear()
    return any(line.startswith("runs ") for line in seen)


def _filled(
    template: str, hostile: dict[str, list[Path]], plain: dict[str, Path], folder: Path
) -> Iterator[list[str]]:
    """The command with each of the hostile files."""
    for number, path in enumerate(
        hostile.get(varied_kind(template, hostile), [folder / "hostile"])
    ):
        yield filled_with(template, path, hostile, plain, folder / "new", number)


def varied_kind(template: str, hostile: dict[str, list[Path]]) -> str:
    """The kind of the first word that stands for hostile files; empty if none does."""
    return next((_kind(word) for word in template.split() if _kind(word) in hostile), "")


def filled_with(
    template: str,
    path: Path,
    hostile: dict[str, list[Path]],
    plain: dict[str, Path],
    new: Path,
    number: int,
) -> list[str]:
    """The command with the file as its first hostile one; of other kinds, with the first of each.

    What it writes is below the folder `new`, under a name with the number.
    """
    varied, filled = varied_kind(template, hostile), []
    for word in template.split():
        kind = _kind(word)
        if kind in hostile:
            filled.append(word.replace(kind, str(path if kind == varied else hostile[kind][0])))
        elif word == "FOLDER":
            filled.append(str(path))
        elif word.startswith("NEW"):
            name = hashlib.sha256(template.encode()).hexdigest()[:8]
            filled.append(f"{new}/{name}-{number}{word.removeprefix('NEW')}")
        else:
            filled.append(str(plain.get(word, word)))
    return filled


def _kind(word: str) -> str:
    return word.rpartition(":")[2]


def _browse(folder: Path) -> int:
    """Look at the list and every page of the dashboard; the number of runs."""
    with serving(folder) as served:
        runs = served.runs()
        for line in runs.values():
            served.ask(f"run/{line['id']}")
        served.ask("compare?" + "&".join(f"run={line['id']}" for line in [*runs.values()][:2]))
    return len(runs)


def honest_runs(folder: Path) -> dict[str, Path]:
    """A small run of every kind."""
    folder.mkdir()
    runs: dict[str, Path] = {}
    for kind, line in test_reproduce.SMALLEST:
        if kind in runs:
            continue
        files = test_reproduce.FILES
        words = [str(files[word](folder)) if word in files else word for word in line.split()]
        runs[kind] = folder / kind.replace(" ", "-")
        code, _ = _quietly([*words, "--out", str(runs[kind]), "--jobs", "1"])
        assert code == 0, line
    return runs


def honest_files(folder: Path, runs: dict[str, Path]) -> dict[str, Path]:
    folder.mkdir()
    config = folder / "gpt2.json"
    fields = {"n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": 64, "n_positions": 16}
    config.write_text(json.dumps({"model_type": "gpt2", **fields}))
    return {
        "HONEST_ROWS": test_reproduce.FILES["ROWS"](folder),
        "HONEST_COLUMNS": test_reproduce.FILES["COLUMNS"](folder),
        "HONEST_TEXT": test_reproduce.FILES["TEXT"](folder),
        "HONEST_CONFIG": config,
        "HONEST_CAMPAIGN": runs["campaign"],
    }


def printed_by(words: list[str]) -> str:
    code, text = _quietly(words)
    assert code == 0, words
    return text


def _quietly(words: list[str]) -> tuple[int, str]:
    with _silent() as printed:
        code = run(words)
    return code, printed.getvalue()


@contextlib.contextmanager
def _silent() -> Iterator[io.StringIO]:
    """A context whose standard output is the text that it gives, and whose errors are dropped."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        yield printed

"""The commands that are killed and the files that are damaged, with their undisturbed results."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.faults.attempt import Attempt, attempt
from tests.faults.damage import link_tree
from tests.faults.made_tables import FLEXIBERT, LTS, NANO, PIT

_PLAIN = ("--format", "json")
_LANGUAGE = ("--terms", "1", "--choose", "valid", "--unaries", "1")
_SIZE = ("--population", "20", "--offspring", "20")
_LOOP = ("--loop", "etas", "--samples", "6", "--mutants", "4", "--iterations", "2")
_ARMS = ("--loop", "random", "--samples", "6", "--evaluations", "3", "--evaluator", "table")
# Not in the result: they differ between equal runs, or count what had to be made again.
_VOLATILE = {"seconds", "seconds_per_arch", "built", "present", "corrupt", "bytes", "cache", "out"}
_UNCOMPARED = ("lock", "timing.json", "report", "curves.pdf", "curves.png")


@dataclass(frozen=True)
class Place:
    """The folders that a command works in."""

    run: Path
    cache: Path
    data: Path


Words = Callable[[Place], list[str]]


@dataclass(frozen=True)
class Command:
    """A verb with its options; `is_reader` only reads a run, so it cannot repair it."""

    words: Words
    is_reader: bool = False

    def __call__(self, place: Place) -> list[str]:
        return self.words(place)


def _with(*words: str, out: bool = False, data: bool = False, cache: bool = True) -> Command:
    def make(place: Place) -> list[str]:
        made = [word.replace("{run}", str(place.run)) for word in words]
        made += ["--out", str(place.run)] if out else []
        made += ["--data", str(place.data)] if data else []
        return made + (["--cache", str(place.cache)] if cache else [])

    return Command(make)


def _reader(*words: str) -> Command:
    return Command(lambda place: [word.replace("{run}", str(place.run)) for word in words], True)


CAMPAIGN = _with("discover", NANO, *_LANGUAGE, *_SIZE, "--generations", "8", "--quiet", "--resume",
                 "--seed", "0", *_PLAIN, out=True)  # fmt: skip
EXHAUST = _with("exhaust", NANO, *_PLAIN, out=True)
PRODUCTS = _with("exhaust", NANO, "--terms", "2", *_PLAIN, out=True)
SEARCH = _with("search", NANO, *_LOOP, "--proxy", "snip", "--quiet", "--resume", "--seed", "0",
               *_PLAIN, out=True)  # fmt: skip
COMPARE = _with("search", NANO, *_ARMS, "--proxy", "parameters", "--proxy", "depth", "--compare",
                "--seeds", "3", "--resume", *_PLAIN, out=True)  # fmt: skip
TRAIN = _with("train", NANO, "--n", "2", "--steps", "1", "--quiet", *_PLAIN, out=True, cache=False)
TRAZOR = _with("search", NANO, "--loop", "trazor", "--proxy", "sum(params)", "--population", "6",
               "--mutations", "3", "--crossovers", "2", "--steps", "3", "--quiet", "--resume",
               "--seed", "0", *_PLAIN, out=True)  # fmt: skip
PRENAS = _with("search", "nano-autoformer", "--loop", "prenas", "--margin", "30000", "--quiet",
               "--resume", "--seed", "0", *_PLAIN, out=True)  # fmt: skip
SUPERNET = _with("train", "nano-autoformer", "--supernet", "--steps", "2", "--every", "1",
                 "--batch", "2", "--images", "4", "--quiet", *_PLAIN, out=True,
                 cache=False)  # fmt: skip
RANKING = _with("rank", NANO, "--proxy", "snip", "--proxy", "synflow", *_PLAIN, out=True)
STATS = _with("stats", NANO, *_PLAIN)
TWO_JOBS = _with("stats", NANO, "--jobs", "2", *_PLAIN)
RANK = _with("rank", NANO, "--proxy", "snip", "--proxy", "synflow", *_PLAIN)
REPORT = _reader("report", "{run}", "--out", "{run}/report/index.html")
EXPORT = _reader("export", "{run}", "--to", "json", "--all")
EXPORT_FILE = _reader("export", "{run}", "--to", "csv", "--out", "{run}/formula.csv", "--force")


def _counters(table: str) -> Command:
    return _with("counters", table, *_PLAIN, data=True, cache=False)


# The run directories that exist before anything is damaged: made by the command, and one like it.
RUNS: dict[str, tuple[Command, tuple[str, ...]]] = {
    "campaign": (CAMPAIGN, ("--seed", "7")),
    "exhaustive run": (EXHAUST, ("--split-seed", "1")),
    "search": (SEARCH, ("--seed", "7")),
    "table build": (TRAIN, ("--steps", "2")),
    "trazor": (TRAZOR, ("--seed", "7")),
    "prenas": (PRENAS, ("--margin", "40000")),
    "supernet training": (SUPERNET, ("--seed", "7")),
    "ranking": (RANKING, ("--proxy", "depth")),
}


@dataclass(frozen=True)
class Target:
    """Files to damage (patterns under a folder), and the commands that then use them.

    `area` says which folder is a copy that may be damaged: "run", "cache" or "data".
    """

    name: str
    area: str
    patterns: tuple[str, ...]
    commands: tuple[Command, ...]
    share: int
    run: str | None = None


TARGETS = (
    Target("campaign: journal", "run", ("journal.jsonl",), (CAMPAIGN, REPORT, EXPORT), 150,
           "campaign"),
    Target("campaign: checkpoint", "run", ("checkpoint.json",), (CAMPAIGN,), 60, "campaign"),
    Target("campaign: other files", "run",
           ("config.json", "result.json", "scores.json", "hall_of_fame.*", "history.csv",
            "timing.json", "lock"), (CAMPAIGN, REPORT, EXPORT), 130, "campaign"),
    Target("exhaustive run: shards", "run", ("shards/*",), (EXHAUST, REPORT), 120,
           "exhaustive run"),
    Target("exhaustive run: other files", "run", ("*.json",), (EXHAUST, REPORT, EXPORT), 50,
           "exhaustive run"),
    Target("search: journal", "run", ("journal.jsonl",), (SEARCH,), 60, "search"),
    Target("search: other files", "run", ("*.json", "trace.csv"), (SEARCH, REPORT), 50, "search"),
    Target("table build", "run", ("journal.jsonl", "config.json", "table.json"), (TRAIN,), 60,
           "table build"),
    Target("search: T-Razor", "run", ("*.json", "journal.jsonl", "trace.csv"), (TRAZOR, REPORT), 40,
           "trazor"),
    Target("search: PreNAS", "run", ("*.json", "journal.jsonl", "trace.csv"), (PRENAS, REPORT), 40,
           "prenas"),
    Target("supernet training", "run", ("*.json", "journal.jsonl", "*.safetensors", "*.pt"),
           (SUPERNET, REPORT), 60, "supernet training"),
    Target("ranking", "run", ("*.json", "*.csv"), (RANKING, REPORT), 40, "ranking"),
    Target("cache: sketches", "cache", ("nano-gpt2/??/*.sketch",), (STATS, EXHAUST), 90),
    Target("cache: branch tables", "cache", ("nano-gpt2/??/*.branches",), (EXHAUST,), 90),
    Target("cache: proxy scores", "cache", ("proxies/*/??/*.json",), (RANK,), 90),
    Target("table: JSON, shipped", "data", ("nano-gpt2.json",), (_counters(NANO), CAMPAIGN), 40),
    Target("table: JSON", "data", ("flexibert/*.json",), (_counters(FLEXIBERT),), 40),
    Target("table: YAML", "data", ("lts/*/*.yaml", "lts/*/*/*/*.yaml"), (_counters(LTS),), 60),
    Target("table: torch.save", "data", ("vit/*.pth",), (_counters(PIT),), 40),
)  # fmt: skip

# Verb -> (command, whether it starts with an empty cache).
KILLED: dict[str, tuple[Command, bool]] = {
    "stats": (STATS, True),
    "stats, two jobs": (TWO_JOBS, True),
    "rank": (RANK, True),
    "exhaust": (EXHAUST, False),
    "exhaust, empty cache": (EXHAUST, True),
    "exhaust --terms 2": (PRODUCTS, False),
    "discover": (CAMPAIGN, False),
    "discover, empty cache": (CAMPAIGN, True),
    "search": (SEARCH, True),
    "search --compare": (COMPARE, False),
    "search --loop trazor": (TRAZOR, True),
    "search --loop prenas": (PRENAS, True),
    "rank --out": (RANKING, True),
    "train": (TRAIN, False),
    "train --supernet": (SUPERNET, False),
}
# The commands in which every call that writes fails once.
FAILING = ("discover", "search", "train", "train --supernet", "rank --out")
READ_AFTER_KILLS = {"report": REPORT, "export": EXPORT_FILE}


def fill(place: Place, command: Command, extra: Sequence[str] = ()) -> Attempt:
    """The command, undisturbed; an error ends the script."""
    found = attempt([*command(place), *extra], place.run.parent / "made")
    if found.code != 0:
        raise SystemExit(f"{command(place)} ended with {found.code}: {found.err}")
    return found


def contents(folder: Path) -> dict[str, str]:
    """Digests of the files of a folder, without what may differ between equal runs."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(part in _UNCOMPARED for part in Path(name).parts):
            found[name] = hashlib.sha256(_comparable(path)).hexdigest()
    return found


def _comparable(path: Path) -> bytes:
    data = path.read_bytes()
    if path.name == "table.json" or path.parent.parent.parent.name == "proxies":
        text = re.sub(r'"seconds": [\d.]+', "", data.decode(errors="replace"))
        text = re.sub(r", [\d.e-]+\](?=[,}])", "", text)  # seconds of a measure
        return re.sub(r'"seal": ?"\w+"', "", text).encode()
    if path.name == "result.json":  # of a ranking, which says how long each proxy took
        return re.sub(rb'"seconds(_per_arch)?": [\d.e-]+|"seal": "\w+"', b"", data)
    if path.name == "journal.jsonl" and b'"seconds"' in data:
        kept = re.sub(rb'"seconds":[\d.e-]+|"seal":"\w+"', b"", data)
        return b"\n".join(sorted(kept.splitlines()))
    if path.suffix == ".npz":  # bytes that no reader looks at may differ
        broken = contextlib.suppress(ValueError, OSError, LookupError, zipfile.BadZipFile)
        with broken, np.load(io.BytesIO(data)) as archive:
            return b"".join(name.encode() + archive[name].tobytes() for name in archive.files)
    return data


def printed(found: Attempt, place: Place) -> Any:
    """What a command printed, without places and times."""
    text = found.out
    for folder in (place.run, place.cache, place.data):
        text = text.replace(str(folder), "FOLDER")
    try:
        return _stable(json.loads(text))
    except ValueError:
        return text


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _stable(inner) for name, inner in value.items() if name not in _VOLATILE}
    return [_stable(inner) for inner in value] if isinstance(value, list) else value


def page(place: Place) -> str | None:
    """A digest of the report's page, without places."""
    path = place.run / "report" / "index.html"
    if not path.exists():
        return None
    text = path.read_text().replace(str(place.run), "FOLDER")
    return hashlib.sha256(text.encode()).hexdigest()


def copy(source: Place, target: Place, with_run: bool, with_cache: bool = True) -> Place:
    """A copy to work in, in the place of an earlier one."""
    for folder in (target.run, target.cache, target.data):
        shutil.rmtree(folder, ignore_errors=True)
    target.run.parent.mkdir(parents=True, exist_ok=True)
    if with_run:
        shutil.copytree(source.run, target.run)
    if with_cache:
        link_tree(source.cache, target.cache)
    shutil.copytree(source.data, target.data)
    return target

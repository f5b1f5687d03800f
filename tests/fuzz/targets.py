"""Readers of untrusted files, each with valid files to start from.

bytes -> a file, sealed if its reader asks for a seal -> the reader's value or a one-line error

A mutated file hardly ever has a matching seal, so the targets of sealed files seal what they are
given: otherwise nothing behind the check would be reached. `tests/fuzz/test_fuzz.py` runs
every target in `make test`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import re
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import spaces
from lpzero import files
from lpzero.cli.main import explain
from lpzero.discover.candidate import Candidate, is_candidate
from lpzero.discover.settings import Settings
from lpzero.errors import LPZeroError
from lpzero.export import (
    Exported,
    Figures,
    Provenance,
    Selection,
    csv_form,
    export,
    from_file,
    json_form,
    sympy_form,
)
from lpzero.export.record import ExportedPredictor
from lpzero.hf.configuration import read_configuration
from lpzero.judgement.measures import Measures
from lpzero.runs.config import RunConfig, read_config, stored_command
from lpzero.runs.journal import Journal, JournalFollower, read_journal
from lpzero.runs.layout import CONFIG, JOURNAL, RESULT, place
from lpzero.runs.run import follow_run, last_record, line_of, open_run, report_unexpected_content
from lpzero.scores.predictor import Predictor
from lpzero.statistics.layout import layout_from_json
from lpzero.supernet.selection import read_preferred
from primitives.canonical import canonical
from primitives.classics import CLASSICS
from primitives.parser import parse
from spaces.tables import flexibert, nano, openlm
from spaces.tables.architecture_files import read_architectures
from spaces.tables.column_files import read_columns
from spaces.tables.project_file import PROJECT, project_sources
from spaces.tables.readers import ReadOptions, read_yaml
from spaces.tables.row_files import count_rows
from spaces.untrusted import read_json
from tests.faults import made_tables

MOST_SECONDS, MOST_MEGABYTES = 2.0, 300
SPACE = "nano-gpt2"
TARGET = "loss"
N_ROWS = 4
# What files of others have where a reader expects something else.
ODD_WORDS = (
    "", "null", "true", "NaN", "-1", "0", "1e999", "-0.0", "{}", "[]", '""', "[[]]", '{"a": {}}',
    "\0", "\r", "\n", '"', "'", ",", "\\ud800", "é", "\ufeff", "9" * 400, "9" * 5000,
    "0x" + "f" * 5000, "!!bool x", "!!timestamp x", "!!float x", "2001-13-41", "&a [*a]", "1:1",
    "<<: 1", "? ", "- ", "[" * 200, "(" * 70,
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """Readers of one file; `corpus` makes valid contents, `write` puts bytes where it is read."""

    name: str
    file: str
    corpus: Callable[[], Sequence[bytes]]
    readers: tuple[Callable[[Path], object], ...]
    write: Callable[[Path, bytes], None] = Path.write_bytes


def problem(target: Target, data: bytes, folder: Path) -> str | None:
    """What is wrong with the way that the target reads the bytes; None if nothing is."""
    path = folder / target.file
    memory = _peak()
    start = time.process_time()
    found = None
    target.write(path, data)
    for reader in target.readers:
        try:
            reader(path)
        except Exception as error:
            message, code = explain(error)
            if code != 2:
                found = found or f"{_place(error)}: {message}"
    seconds, megabytes = time.process_time() - start, _peak() - memory
    if seconds > MOST_SECONDS:
        return f"more than {MOST_SECONDS:g} s: {seconds:.2f} s"
    if megabytes > MOST_MEGABYTES:
        return f"more than {MOST_MEGABYTES} MB: {megabytes:.0f} MB"
    return found


def _peak() -> float:
    """The largest memory that this process ever had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _place(error: Exception) -> str:
    """The line of this project that raised the error, or called what raised it."""
    place, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        if name.partition(".")[0] in ("experiments", "lpzero", "primitives", "spaces"):
            place = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def words(corpus: Sequence[bytes]) -> list[bytes]:
    """The names and numbers in the files, and odd ones."""
    own = {word for data in corpus for word in re.findall(rb"[A-Za-z_][\w-]+|[\d.]+", data)}
    return [*sorted(own), *(word.encode() for word in ODD_WORDS)]


def mutations(corpus: Sequence[bytes], n: int, seed: int) -> Iterator[bytes]:
    """Changed files: a word replaced, something cut, repeated or put in, bytes changed."""
    rng, known = random.Random(seed), words(corpus)
    for _ in range(n):
        data = rng.choice(corpus)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            data = _mutated(data, known, corpus, rng)
        yield data


def _mutated(
    data: bytes, known: Sequence[bytes], corpus: Sequence[bytes], rng: random.Random
) -> bytes:
    start = rng.randint(0, len(data))
    stop = min(len(data), start + rng.choice((0, 1, 1, 4, 16, 64)))
    change = rng.randrange(6)
    if change <= 2 and (own := list(re.finditer(rb"[\w.+-]+|\"[^\"]*\"", data))):
        start, stop = rng.choice(own).span()
        return data[:start] + rng.choice(known) + data[stop:]
    if change == 3:
        return data[:start] + data[stop:]
    if change == 4:
        return data[:stop] + data[start:stop] * rng.choice((1, 2, 30)) + data[stop:]
    other = rng.choice(corpus)
    return data[:start] + rng.choice((rng.choice(known), rng.randbytes(2), other[start:]))


# Formulas


def _formulas() -> list[bytes]:
    texts = [classic.text for classic in CLASSICS if classic.formula is not None]
    joined = [
        "-mul(sqrt(sum(W)), params, inverse(depth-width))",
        "sub(add(mean(mul(G, W)), std(A)), log(first(exp(H))))",
        "sum(add(square(inverse(H)), log_softmax(fro(A))))",
    ]
    return [text.encode() for text in [*texts, *joined]]


def _parse_and_print(path: Path) -> None:
    formula = parse(path.read_bytes().decode(errors="replace"))
    assert parse(str(formula)) == formula, "the printed formula is another one"
    simplest = canonical(formula)
    assert parse(str(simplest)) == simplest, "the printed canonical form is another formula"


# Tables


@cache
def _architectures(name: str) -> list[dict[str, Any]]:
    space, rng = spaces.get(name), random.Random(0)
    return [space.to_json(space.sample(rng)) for _ in range(N_ROWS)]


def _rows() -> list[dict[str, Any]]:
    return [
        {"id": f"net-{i}", **arch, "flops": 10.5 * i, TARGET: 3.25 - i / 8}
        for i, arch in enumerate(_architectures(SPACE))
    ]


def _columns() -> list[dict[str, Any]]:
    return [{"name": i, "synflow": 0.5**i, "params": 7e3 * i, TARGET: i / 7} for i in range(N_ROWS)]


def _csv(rows: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _csv_files() -> list[bytes]:
    whole = [{"arch": json.dumps(arch), TARGET: i} for i, arch in enumerate(_architectures(SPACE))]
    split: list[dict[str, Any]] = [
        {"a_0": 1, "a_1": 2, TARGET: "NA"},
        {"a_0": 3, "a_1": "", TARGET: 1},
    ]
    return [_csv(rows) for rows in (_rows(), _columns(), whole, split)]


def _json_lines_files() -> list[bytes]:
    whole = [{"arch": arch, TARGET: i} for i, arch in enumerate(_architectures(SPACE))]
    return ["\n".join(map(json.dumps, rows)).encode() for rows in (_rows(), _columns(), whole)]


def _read_rows(path: Path) -> object:
    return read_architectures(path, spaces.get(SPACE), ReadOptions(TARGET))


def _read_columns(path: Path) -> object:
    return read_columns(path, ReadOptions(TARGET, smaller_is_better=True))


def _trained_tables() -> list[bytes]:
    rows = [
        {"arch": arch, "target": i / 2, "runs": [{"seed": 0, "target": i / 2, "seconds": 1.5}]}
        for i, arch in enumerate(_architectures(SPACE))
    ]
    about = {"schema": 1, "name": "made-up", "space": SPACE, "target": "minus loss"}
    about |= {"licence": "Apache-2.0", "provenance": "made up"}
    noise = {"noise": {"rho_between_targets": 0.9}}
    failed = [{"arch": rows[0]["arch"], "seed": 1, "steps": 3, "failure": "diverged"}]
    return [
        json.dumps({**about, **noise, "rows": rows}).encode(),
        json.dumps({**about, "noise": {}, "rows": rows, "failures": failed}).encode(),
    ]


def _naslib_tables() -> list[bytes]:
    nets = {
        f"({i}, 1)": {
            "val_accuracy": 60.5 + i,
            "id": i,
            "grasp": {"score": -(2.5**i), "time": 0.5},
            "synflow": {"score": 1e30 * i, "time": 0.25},
        }
        for i in range(N_ROWS)
    }
    return [json.dumps(tree).encode() for tree in ({"cifar10": nets}, {"nb": {"a": nets, "b": {}}})]


def _read_naslib(path: Path) -> object:
    return read_columns(path, ReadOptions())


def _flexibert_tables() -> list[bytes]:
    records = made_tables.flexibert_records(_architectures("flexibert"))
    return [json.dumps(records[:1]).encode(), json.dumps(records).encode()]


def _read_flexibert(path: Path) -> object:
    return flexibert.read(flexibert.SOURCES[0], path)


def _openlm_tables() -> list[bytes]:
    runs = {
        f"d={of['width']}_l={of['depth']}_h={of['heads']}-8-0.003-0.033-8-1000-{steps}-3e-05": 4.5
        for of in _architectures("openlm")
        for steps in (100, 200)
    }
    return [json.dumps(runs).encode()]


def _read_openlm(path: Path) -> object:
    return openlm.read(openlm.SOURCES[0], path)


def _architecture_lists() -> list[bytes]:
    archs = _architectures(SPACE)
    preferred = {"preferred": [{"arch": arch, "score": 1.5} for arch in archs]}
    return [json.dumps(found).encode() for found in (archs, preferred, {"trace": archs})]


def _read_preferred(path: Path) -> object:
    return read_preferred(path, spaces.get(SPACE))


# YAML, and configurations of networks


def _project_files() -> list[bytes]:
    tables = {
        "mine": {"file": "results.csv", "space": "my_module:SPACE", "target": "accuracy"},
        "columns-2": {"file": "a/b.jsonl", "target": "loss", "smaller_is_better": True, "id": "n"},
        "zoo": {"file": "zc.json", "task": "cifar10", "licence": "MIT"},
    }
    block = yaml.safe_dump({"tables": tables})
    return [block.encode(), yaml.safe_dump({"tables": tables}, default_flow_style=True).encode()]


def _read_project(path: Path) -> object:
    return project_sources(path.parent)


def _hf_spaces() -> list[bytes]:
    text = {
        "model_type": "gpt2",
        "fields": {"vocab_size": 256, "n_positions": 64},
        "search": {"n_layer": [2, 3], "n_embd": {"from": 32, "to": 128, "step": 32}},
        "batch": [8, 64],
    }
    images = {
        "model_type": "vit",
        "fields": {"image_size": 32, "patch_size": 8},
        "search": {"num_hidden_layers": [1, 2], "hidden_size": [12, 24]},
    }
    return [yaml.safe_dump(found).encode() for found in (text, images)]


def _read_hf_space(path: Path) -> object:
    from lpzero.hf.spaces import read_space  # transformers takes seconds to import

    return read_space(path)


def _configurations() -> list[bytes]:
    gpt2 = {"model_type": "gpt2", "n_layer": 2, "architectures": ["GPT2LMHeadModel"]}
    vit = {"model_type": "vit", "id2label": {"0": "a/b", "1": "c"}, "backbone_config": {"depth": 3}}
    return [json.dumps(found).encode() for found in (gpt2, vit)]


def _layouts() -> list[bytes]:
    reading = {"module": "attn.qkv", "widths": [8, 8, 8], "element": 1, "groups": 2}
    named = {"blocks": ["h.0", "h.1"], "H": [reading], "A": ["mlp.act"], "embedding": ["wte"]}
    return [b"{}", json.dumps(named).encode()]


def _read_layout(path: Path) -> object:
    return layout_from_json(read_json(path))


# Exported formulas


def _exported(text: str, name: str) -> Exported:
    numbers = {"n": {"test": 12}, "rho": {"test": 0.5}, "rho_ci": {"test": (0.25, 0.75)}}
    figures = Figures("one", SPACE, TARGET, "ab" * 32, 3, **numbers)  # type: ignore[arg-type]
    about = Provenance("campaign", "0.2.0", "cd" * 32, "front", 3, "valid", 5, 2, (figures,))
    return Exported(name, parse(text), about)


@cache
def _records() -> tuple[Exported, ...]:
    return _exported("sum(mul(abs(G), abs(W)))", "first"), _exported("-mean(fro(A))", "second")


def _json_exports() -> list[bytes]:
    first, second = _records()
    return [
        json_form.write([first]).encode(),
        json_form.write([first, second]).encode(),
        json_form.write([first, second], "both").encode(),
        b'{"formula": "sum(W)", "name": "plain", "schema": 1}',
        _predictor(first).encode(),
    ]


def _predictor(record: Exported) -> str:
    """A predictor of six rows with two features and a term."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6, 3)).tolist()
    rows = [dict(zip(("depth", "width", "sum(fro(W))"), row, strict=True)) for row in values]
    scores, targets = np.exp(rng.normal(size=6)), rng.normal(size=6)
    fitted = Predictor.of(record.formula, [parse("sum(fro(W))")], rows, scores, targets)
    found = ExportedPredictor(fitted, "nano-gpt2", record.options)
    return export(Selection([record], predictor=lambda: found), "json", predictor=True)


def _write_export(path: Path, data: bytes) -> None:
    """Write the file with the digests of what it holds now."""
    value = _json_value(data)
    try:
        inner = value.get("formulas") or value.get("members") or [value.get("formula")]
        for entry in (*inner, value):
            if isinstance(entry, dict) and "sha256" in entry:
                del entry["sha256"]
                text = json.dumps(entry, sort_keys=True, separators=(",", ":"), allow_nan=False)
                entry["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        data = json.dumps(value).encode()
    except (AttributeError, RecursionError, TypeError, ValueError):
        pass  # it has no place for a digest
    path.write_bytes(data)


def _json_value(data: bytes | str) -> Any:
    try:
        return json.loads(data)
    except (RecursionError, ValueError):
        return None


def _csv_exports() -> list[bytes]:
    return [csv_form.write(list(_records())).encode()]


def _sympy_exports() -> list[bytes]:
    return [f"{sympy_form.MARK}\n# formula: sum(abs(W))\n# A comment.\nAbs(W)\n".encode()]


# Run directories: a file of lines becomes config.json with its command, result.json, the journal


def _candidates() -> list[dict[str, Any]]:
    measures = Measures(*(0.5 + i / 16 for i in range(len(Measures._fields))))
    scored = Candidate(
        0, 0, "random", (), "sum(W)", "sum(W)", 2, measures=(measures,), fitness=(0.5,)
    )
    rejected = Candidate(1, 0, "random", (), "sum(disconnect(W))", rejected="disconnected")
    repeated = Candidate(2, 1, "crossover", (0, 1), "sum(W)", repeats=0)
    return [found.to_json(["one"]) for found in (scored, rejected, repeated)]


def _runs() -> list[bytes]:
    tables = [{"name": "one", "space": SPACE, "target": TARGET, "digest": "ab" * 32}]
    sketch = {"limit": 4096, "loss": "auto", "seed": 0, "batch_seed": 0}
    request: dict[str, Any] = {"tables": tables, "split_seed": 0, "sketch": sketch}
    command = {"verb": "discover", "options": {"tables": ["one"], "seed": 3}}
    best = {"formula": "sum(W)", "complexity": 2, "rho": {"train": 0.5, "test": 0.25}}
    counts = {"tried": 3, "evaluated": 1, "repeats": 1, "rejected": {"disconnected": 1}}
    result = {"tables": [{"name": "one"}], "best": best, "top": [best], "trace": [], **counts}
    facts = [{"n": 0, "fact": "score", "key": "a", "value": 1.5}]
    campaign = {**request, "settings": Settings().to_json()}
    exhaustive = {**request, "unaries": 1, "terms": 1, "same_statistic": False}
    search = {"space": SPACE, "loop": "random", "evaluator": "proxy", "proxy": "synflow"}
    table = {"space": SPACE, "name": "made-up", "task": "text", "rows": 4, "seeds": 1}
    arms = {**search, "arms": ["a"], "seeds": [0]}
    return [
        _lines({"kind": "campaign", "request": campaign}, command, result, *_candidates()),
        _lines({"kind": "exhaustive run", "request": exhaustive}, {}, {**result, "rows": []}),
        _lines({"kind": "ranking", "request": request}, {}, {"rows": [{"proxy": "synflow"}]}),
        _lines({"kind": "search", "request": search}, {}, result, *facts),
        _lines({"kind": "comparison", "request": arms}, {}, result),
        _lines({"kind": "table build", "request": table}, {}, result, *facts),
        _lines({"kind": "supernet training", "request": search}, {}, result),
    ]


def _lines(*values: Any) -> bytes:
    return "\n".join(map(json.dumps, values)).encode()


def _write_run(path: Path, data: bytes) -> None:
    """Write the run's directory, whose files are sealed."""
    lines = [_json_value(line) for line in data.decode(errors="replace").split("\n")]
    values = [value if isinstance(value, dict) else {} for value in lines]
    about, command, result = [*values, {}, {}, {}][:3]
    folder = path.parent
    for name in (CONFIG, RESULT, JOURNAL):
        (folder / name).unlink(missing_ok=True)
    try:
        config = RunConfig(str(about.get("kind")), about.get("request", {}))
        content = {**config.to_json(), "command": command, **about}
        run = str(content["hash"])
        _write_sealed(folder / CONFIG, CONFIG, content)
        _write_sealed(folder / RESULT, place(run, RESULT), result)
        with _journal(folder / JOURNAL, place(run, JOURNAL)) as journal:
            journal.append(value for value in values[3:] if value)
    except (RecursionError, ValueError):  # NaN, half a letter: nothing that can be sealed
        pass


def _write_sealed(path: Path, place: str, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(files.sealed(place, content)))  # without flushing the disk


def _journal(path: Path, run: str = "", fits: Any = lambda *_: True) -> Journal:
    return Journal(path, fits, run)


def _open_run(path: Path) -> object:
    run = open_run(path.parent)
    return run.command, run.code


def _follow_run(path: Path) -> object:
    config = read_config(path.parent)
    if config is None:
        return None
    stored_command(config)
    with report_unexpected_content(path.parent):  # as the dashboard does
        live = follow_run(config)
        return live.update(1.0), live.now()


def _run_line(path: Path) -> object:
    config = read_config(path.parent)
    return None if config is None else line_of(config)


def _raw_configs() -> list[bytes]:
    content = RunConfig("ranking", {"tables": []}).to_json()
    return [json.dumps(files.sealed(CONFIG, content)).encode()]


def _read_config(path: Path) -> object:
    return read_config(path.parent)


@cache
def _raw_journals() -> list[bytes]:
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / JOURNAL
        with _journal(path) as journal:
            journal.append(_candidates())
        whole = path.read_bytes()
    return [whole, whole[:-40], b"\0" * 32]


def _read_journal(path: Path) -> None:
    """Read the journal in every way; the ways agree, and opening it cuts what is not of the run."""
    follower = JournalFollower(path, is_candidate, "")
    followed = follower.read().records
    last_record(path)
    try:
        records = read_journal(path, is_candidate).records
        assert records == followed, "the follower reads another journal"
    except LPZeroError:
        pass
    with _journal(path, fits=is_candidate) as journal:
        assert journal.records() == followed, "the writer reads another journal"
    assert read_journal(path, is_candidate).records == followed, "the cut journal is another one"


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("formula", "formula.txt", _formulas, (_parse_and_print,)),
        Target("rows-csv", "rows.csv", _csv_files, (_read_rows, _read_columns, count_rows)),
        Target("rows-jsonl", "rows.jsonl", _json_lines_files, (_read_rows, _read_columns)),
        Target("table-trained", "table.json", _trained_tables, (nano.read_trained, nano.count)),
        Target("table-naslib", "table.json", _naslib_tables, (_read_naslib,)),
        Target("table-flexibert", "table.json", _flexibert_tables, (_read_flexibert,)),
        Target("table-openlm", "table.json", _openlm_tables, (_read_openlm, openlm.count)),
        Target("architectures", "preferred.json", _architecture_lists, (_read_preferred,)),
        Target("project-yaml", PROJECT, _project_files, (_read_project, read_yaml)),
        Target("space-yaml", "SPACE.yaml", _hf_spaces, (_read_hf_space,)),
        Target("configuration", "config.json", _configurations, (read_configuration,)),
        Target("layout", "layout.json", _layouts, (_read_layout,)),
        Target("export-json", "formula.json", _json_exports, (from_file,), _write_export),
        Target("export-csv", "formula.csv", _csv_exports, (from_file,)),
        Target("export-sympy", "formula.txt", _sympy_exports, (from_file,)),
        Target("run", "run.jsonl", _runs, (_open_run, _follow_run, _run_line), _write_run),
        Target("run-config", CONFIG, _raw_configs, (_read_config,)),
        Target("journal", JOURNAL, _raw_journals, (_read_journal,)),
    )
}

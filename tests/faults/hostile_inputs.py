"""The hostile inputs of `hostile`, as files, and the commands that read them.

    python -m tests.faults.hostile_inputs FOLDER

An input is a function that writes files to a folder and returns the words of a command. Those of
stored addresses are the attacks that `tests/lpzero/verbs` declares for every verb. Writes
FOLDER/cases.json: the cases, and the honest commands with which they are compared.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero.runs import layout
from tests.lpzero.export import test_predictor as predictors
from tests.lpzero.export.test_hostile import JUNK, places, replaced
from tests.lpzero.hf.families import FAMILIES
from tests.lpzero.runs.test_links import replace_by_link, shorten
from tests.lpzero.sealed_runs import content, rewrite
from tests.lpzero.verbs import attacks, test_reproduce
from tests.lpzero.verbs.hostile_files import Attacker
from tests.spaces import test_untrusted as written

_NAME = "a\x1b[31mred\x1b[0m\u202eb"  # colours a terminal and turns its text round
_NO_TEXT = os.fsdecode(b"p\xff")
_DEEP = 100_000
_ROWS = "HONEST_ROWS --space nano-gpt2 --target accuracy --batch 2 --length 8"
_LOOP = "--loop random --proxy depth --samples 2 --quiet"
_DISCOVER = (
    "discover HONEST_COLUMNS --target accuracy --columns-only --quiet --generations 1"
    " --population 10 --offspring 5 --permutations 0 --splits 0"
)

# Honest commands, by the name under which a case refers to its own.
HONEST = {
    "counters": "counters nano-gpt2",
    "dashboard": "dashboard HONEST_FOLDER",
    "discover": f"{_DISCOVER} --out NEW",
    "exhaust": f"exhaust {_ROWS} --permutations 0 --top 3 --out NEW",
    "export": "export HONEST_CAMPAIGN --to json",
    "leaderboard": "leaderboard nano-rnn --proxy depth --quiet --out NEW",
    "rank": f"rank {_ROWS} --proxy snip",
    "rank, columns": "rank HONEST_COLUMNS --target accuracy --proxy cost",
    "rank, predictor": f"rank {_ROWS} --proxy HONEST_PREDICTOR",
    "rank, Parquet": "rank HONEST_PARQUET --target accuracy --proxy cost",
    "rank, tokenizer": f"rank {_ROWS} --proxy snip --corpus HONEST_TEXT"
    " --tokenizer HONEST_TOKENIZER",
    "report": "report HONEST_CAMPAIGN --out NEW",
    "score": "score --hf HONEST_CONFIG --proxy snip --batch 2 --length 8",
    "search": f"search nano-gpt2 {_LOOP}",
    "search, Hugging Face": f"search --hf HONEST_SPACE {_LOOP}",
    "specialise": "specialise HONEST_SUPERNET --out NEW.safetensors",
    "stats": f"stats {_ROWS}",
    "tables": "tables",
    "train": "train nano-rnn --n 2 --seeds 2 --steps 1 --quiet --out NEW",
    "train, supernet": "train nano-autoformer --supernet --steps 1 --batch 2 --images 2 --quiet"
    " --out NEW",
}

Write = Callable[[Path], object]
# Writes the input to a folder and returns the words of the command.
Make = Callable[[Path], list[str]]


@dataclass(frozen=True)
class Input:
    """A hostile input: how it is made, the honest command like it, and the exit codes allowed.

    `start` is how the process is started (`hostile._STARTS`).
    """

    make: Make
    honest: str
    codes: tuple[int, ...] = (2,)
    start: str = ""


@dataclass(frozen=True)
class Honest:
    """Honest runs by their kind, and honest files by the word that stands for them."""

    folder: Path
    runs: dict[str, Path]
    files: dict[str, Path]

    def words(self, template: str, new: Path) -> list[str]:
        """The template with honest files; NEW is the path that the command writes."""
        return [
            str(self.files[word]) if word in self.files else word.replace("NEW", str(new))
            for word in template.split()
        ]


def _file(name: str, write: Write, template: str) -> Make:
    """FILE in the template is a file of that name, which `write` writes."""

    def make(root: Path) -> list[str]:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
        place = {"FILE": str(path), "ROOT": str(root)}
        return [place.get(word, word) for word in template.split()]

    return make


def _text(text: str) -> Write:
    return lambda path: path.write_text(text)


def _yaml(text: str) -> Input:
    name = "lts/random_GPT2_wt103/ppl_summary.yaml"
    return Input(_file(name, _text(text), "counters gpt2-wt103 --data ROOT"), "counters")


def _table(write: Write) -> Input:
    name = "flexibert/BERT_benchmark.json"
    return Input(_file(name, write, "counters flexibert --data ROOT"), "counters")


def _json(text: str) -> Input:
    return _table(_text(text))


def _weights(write: Write) -> Input:
    """A supernet's training that begins with weights of a file."""

    def make(root: Path) -> list[str]:
        write(root / "w.pth")
        words = HONEST["train, supernet"].split()
        return [*words[: words.index("--out")], "--weights", str(root / "w.pth"),
                "--out", str(root / "new")]  # fmt: skip

    return Input(make, "train, supernet")


def _archive(write: Write) -> Input:
    return Input(_file("vit/gt_pit.pth", write, "counters pit-c100 --data ROOT"), "counters")


def _run(name: str, write: Write) -> Input:
    return Input(_file(name, write, "report ROOT"), "report")


def _export(text: str) -> Input:
    return Input(_file("formula.json", _text(text), "export FILE --to latex"), "export")


def _predictor(write: Write, codes: tuple[int, ...] = (2,)) -> Input:
    words = f"rank {_ROWS} --proxy FILE"
    return Input(_file("predictor.json", write, words), "rank, predictor", codes)


def _predictor_with(text: str) -> Input:
    """The first number of the points is another text, under the digest of the whole."""
    marked = predictors.changed(points=[["x"] * len(predictors.made().inputs.names)] * 15)
    return _predictor(_text(marked.replace('"x"', text)))


def _columns(name: str, write: Write, honest: str = "rank, columns") -> Input:
    return Input(_file(name, write, "rank FILE --target accuracy --proxy cost"), honest)


def _hf(fields: dict[str, Any], more: str = "--batch 2 --length 8") -> Input:
    write = _text(json.dumps(fields))
    return Input(_file("config.json", write, f"score --hf FILE --proxy snip {more}"), "score")


def _space(text: str) -> Input:
    words = f"search --hf FILE {_LOOP}"
    return Input(_file("space.yaml", _text(text), words), "search, Hugging Face")


def _searched(search: str, rest: str = "") -> Input:
    return _space(f"model_type: gpt2\nsearch: {search}\n{rest}")


def _tokenizer(write: Write, text: str) -> Input:
    def both(path: Path) -> None:
        write(path)
        (path.parent / "text.txt").write_text(text)

    words = f"rank {_ROWS} --proxy snip --tokenizer FILE --corpus TEXT_FILE"
    return Input(_file("tokenizer.json", both, words), "rank, tokenizer")


def _corpus(write: Write) -> Input:
    return Input(_file("corpus.txt", write, f"rank {_ROWS} --proxy snip --corpus FILE"), "rank")


def _option(template: str, honest: str, start: str = "", codes: tuple[int, ...] = (2,)) -> Input:
    return Input(lambda root: template.replace("OUT", str(root / "out")).split(), honest, codes,
                 start)  # fmt: skip


def _bomb(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x/data.pkl", "w", force_zip64=True) as file,
    ):
        for _ in range(400):
            file.write(bytes(1 << 20))


def _aliases(n_levels: int = 12) -> str:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, n_levels)]
    return "\n".join(levels)


def _escaped(root: Path) -> list[str]:
    (root / _NAME).mkdir(parents=True)
    return ["report", str(root / _NAME)]


def _headings(path: Path) -> None:
    path.write_text(",".join(f"h{i}" for i in range(16_000)) + "\n" + "1," * 15_999 + "1\n")


def _footer(path: Path) -> None:
    """Parquet whose footer says 512 million rows; none of them is in the file."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({"cost": [1.0] * 1_000_000, "accuracy": [1.0] * 1_000_000})
    part = path.with_name("part.parquet")
    parquet.write_table(table, part)
    footer = parquet.read_metadata(part)
    footer.set_file_path(path.name)
    for _ in range(9):
        footer.append_row_groups(footer)
    part.unlink()
    footer.write_metadata_file(path)


def _named_badly(template: str) -> Make:
    """FILE in the template is a CSV file whose name is not text."""

    def make(root: Path) -> list[str]:
        path = root / f"{_NO_TEXT}.csv"
        rows = "".join(f"r{i},{i},{i * i % 7},{i + i % 3}\n" for i in range(40))
        path.write_text("id,a,b,accuracy\n" + rows)
        return [word.replace("FILE", str(path)) for word in template.split()]

    return make


def _tiny_numbers(path: Path) -> None:
    rows = "".join(f"r{i},{i + 1}e-312,{i}\n" for i in range(40))
    path.write_text("id,cost,accuracy\n" + rows)


_ROW = '[{"id": %s, "hparams": {}}]'
_GPT2, _VIT, _LLAMA = (FAMILIES[name] for name in ("gpt2", "vit", "llama"))
_MIXTRAL = {**_LLAMA, "model_type": "mixtral"}
_BACKBONES = ("upernet", "detr", "dpt", "depth_anything", "vitmatte", "maskformer", "rt_detr")
INPUTS: dict[str, Input] = {
    "YAML: 100,000 opening brackets": _yaml("[" * _DEEP),
    "YAML: 100,000 opening braces": _yaml("{" * _DEEP),
    "YAML: 100,000 nested lists": _yaml("- " * _DEEP + "x"),
    "YAML: 100,000 nested keys": _yaml("? " * _DEEP + "x"),
    "YAML: a bomb of aliases": _yaml(_aliases()),
    "YAML: an alias of itself": _yaml("config_0_j0: &a [*a]"),
    "YAML: an integer of 6,000 digits": _yaml("config_0_j0: {valid_ppl: " + "9" * 6000 + "}"),
    "YAML: an integer of 4,000 digits": _yaml("config_0_j0: {valid_ppl: " + "9" * 4000 + "}"),
    "YAML: a date of month 13": _yaml("config_0_j0: 2001-13-41"),
    "YAML: a Python object": _yaml("config_0_j0: !!python/object/apply:os.system [true]"),
    "YAML: 64 MB": _yaml("#" * (64 << 20)),
    "YAML: 500 KB of small values": _yaml("".join(f"a{n}: 1\n" for n in range(45_000))),
    "YAML: a name with escape sequences": _yaml('"\\e[31m": {valid_ppl: 3}'),
    "JSON: 100,000 opening brackets": _json("[" * _DEEP),
    "JSON: 100,000 opening objects": _json('{"a":' * _DEEP),
    "JSON: an integer of 6,000 digits": _json(_ROW % ("9" * 6000)),
    "JSON: an integer of 4,000 digits": _json(_ROW % ("9" * 4000)),
    "JSON: 8 MB of empty lists": _json("[" + "[]," * (2 << 20) + "[]]"),
    "JSON: 64 MB": _json("[" + " " * (64 << 20) + "]"),
    "JSON: NaN": _json(_ROW % "NaN"),
    "table: a pipe": _table(os.mkfifo),
    "table: a link to an endless device": _table(lambda path: path.symlink_to("/dev/zero")),
    "table: a link to a terminal": _table(lambda path: path.symlink_to("/dev/tty")),
    "table: a folder": _table(lambda path: path.mkdir()),
    "table: a link to itself": _table(lambda path: path.symlink_to(path)),
    "table: a pipe, CSV": _columns("p.csv", os.mkfifo),
    "table: a pipe, JSON lines": _columns("p.jsonl", os.mkfifo),
    "table: a pipe, Parquet": _columns("p.parquet", os.mkfifo, "rank, Parquet"),
    "table: 16,000 headings": _columns("p.csv", _headings),
    "table: 100,000 headings": _columns("p.csv", written.many_headings),
    "table: a new key in every JSON line": _columns("p.jsonl", written.new_key_in_every_line),
    "table: 80 million empty cells": _columns("p.csv", written.empty_cells),
    "table: 4 TB, sparse": _columns("p.csv", written.sparse),
    "table: 512 million rows in a footer of Parquet": _columns(
        "p.parquet", _footer, "rank, Parquet"
    ),
    "table: 2 million equal rows in Parquet": _columns(
        "p.parquet", written.repeated_rows, "rank, Parquet"
    ),
    "table: Parquet whose footer states a wrong size": _columns(
        "p.parquet", written.false_footer, "rank, Parquet"
    ),
    "table: a list of 20 million numbers in a cell of Parquet": _columns(
        "p.parquet", written.long_list, "rank, Parquet"
    ),
    "table: metadata of Parquet, nested deeply": _columns(
        "p.parquet", written.deep_metadata, "rank, Parquet"
    ),
    "table: 49 GB of equal texts in Parquet": _columns(
        "p.parquet", written.repeated_text, "rank, Parquet"
    ),
    "table: a name that is not text, ranked": Input(
        _named_badly("rank FILE --target accuracy --proxy a"), "rank, columns", (0,)
    ),
    "table: a name that is not text, discovered": Input(
        _named_badly("discover FILE --target accuracy --columns-only --out FILE.run"), "discover"
    ),
    "table: numbers below 1e-307": Input(
        _file("p.csv", _tiny_numbers, "rank FILE --target accuracy --proxy cost"),
        "rank, columns", (0, 2)
    ),
    "archive: a pipe": _archive(os.mkfifo),
    "archive: an endless device": _archive(lambda path: path.symlink_to("/dev/zero")),
    "archive: 400 MB packed in 0.4": _archive(_bomb),
    "weights: 200 MB packed in 0.2": _weights(written.packed_tensors),
    "weights: a pickle that makes 1 GB": _weights(written.large_bytes),
    "SPACE.yaml: a number to base 60 with 20,000 digits": _space(f"a: 1{':59' * 20_000}"),
    "corpus: 4 TB, sparse": _corpus(written.sparse),
    "corpus: a pipe": _corpus(os.mkfifo),
    "corpus: an endless device": _corpus(lambda path: path.symlink_to("/dev/zero")),
    "tokenizer: 60 chained replacements": _tokenizer(written.doubled_text, "a" * 100),
    "tokenizer: a slow regular expression": _tokenizer(written.slow_expression, "x" * 40_000),
    "tokenizer: a vocabulary without UNK": _tokenizer(written.no_unknown, "b" * 100),
    "tokenizer: a pipe": _tokenizer(os.mkfifo, "a" * 100),
    "run: config.json is a pipe": _run("config.json", os.mkfifo),
    "run: config.json is an endless device": _run(
        "config.json", lambda path: path.symlink_to("/dev/zero")
    ),
    "run: config.json nested deeply": _run("config.json", _text("[" * _DEEP)),
    "run: config.json with a huge integer": _run(
        "config.json", _text('{"schema": ' + "9" * 6000 + "}")
    ),
    "run: an old run.json, nested deeply": _run("run.json", _text("[" * _DEEP)),
    "export: nested deeply": _export("[" * _DEEP),
    "export: an integer of 6,000 digits": _export('{"schema": 1, "a": ' + "9" * 6000 + "}"),
    **{
        f"predictor: {name}": _predictor(_text(make()))
        for name, (make, _) in predictors.CASES.items()
    },
    **{
        f"predictor: {field} is {json.dumps(junk)}": _predictor(
            _text(predictors.changed(**{field: junk})), (0, 2)
        )
        for number, field in enumerate(json.loads(predictors.text()))
        for junk in (JUNK[number % len(JUNK)], JUNK[-1 - number % len(JUNK)])
    },
    "predictor: nested deeply": _predictor(_text("[" * _DEEP)),
    "predictor: 64 MB": _predictor(_text(" " * (64 << 20) + predictors.text())),
    "predictor: 8 MB of empty lists": _predictor(_text("[" + "[]," * (2 << 20) + "[]]")),
    "predictor: 2,000 rows of 1,000 inputs": _predictor(
        _text(predictors.changed(points=predictors.points(2000, 1000)))
    ),
    "predictor: NaN": _predictor_with("NaN"),
    "predictor: infinity": _predictor_with("-Infinity"),
    "predictor: 1e999": _predictor_with("1e999"),
    "predictor: an integer of 6,000 digits": _predictor_with("9" * 6000),
    "predictor: a space that is code": _predictor(
        _text(predictors.changed(space="evil.py:SPACE"))
    ),
    "predictor: a pipe": _predictor(os.mkfifo),
    "predictor: an endless device": _predictor(lambda path: path.symlink_to("/dev/zero")),
    "path: escape sequences, a run": Input(_escaped, "report"),
    "path: escape sequences, a data root": Input(
        lambda root: ["counters", "flexibert", "--data", str(root / _NAME)], "counters"
    ),
    **{
        f"Hugging Face: a backbone of {kind}": _hf({"model_type": kind, "backbone": "name/repo"})
        for kind in _BACKBONES
    },
    "Hugging Face: a backbone inside": _hf(
        {"model_type": "upernet",
         "backbone_config": {"model_type": "timm_backbone", "backbone": "resnet50"}}
    ),
    "Hugging Face: auto_map": _hf({**_GPT2, "auto_map": {"AutoModel": "evil.Evil"}}),
    "Hugging Face: auto_map inside": _hf(
        {**_GPT2, "text_config": {"auto_map": {"AutoModel": "name/repo--evil.Evil"}}}
    ),
    "Hugging Face: trust_remote_code": _hf({**_GPT2, "trust_remote_code": True}),
    "Hugging Face: kernels of a repository": _hf(
        {**_GPT2, "attn_implementation": "kernels-community/flash-attn"}
    ),
    "Hugging Face: n_embd 20,000": _hf({**_GPT2, "n_embd": 20_000, "n_layer": 40}),
    "Hugging Face: n_layer 10^9": _hf({**_GPT2, "n_layer": 10**9}),
    "Hugging Face: n_layer 4,999": _hf({**_GPT2, "n_layer": 4_999}),
    "Hugging Face: num_labels 10^9": _hf({**_GPT2, "num_labels": 10**9}),
    "Hugging Face: image_size 100,000": _hf({**_VIT, "image_size": 100_000}, "--batch 2"),
    "Hugging Face: a million experts": _hf({**_MIXTRAL, "num_local_experts": 10**6}),
    "Hugging Face: vocab_size 10^30": _hf({**_LLAMA, "vocab_size": 10**30}),
    "Hugging Face: --length 10^7": _hf(
        {**_LLAMA, "max_position_embeddings": 10**8}, "--length 10000000"
    ),
    "Hugging Face: --batch 10^9": _hf(_LLAMA, "--batch 1000000000"),
    "Hugging Face: n_layer 0": _hf({**_GPT2, "n_layer": 0}),
    "Hugging Face: n_layer -1": _hf({**_GPT2, "n_layer": -1}),
    "Hugging Face: image_size [1, 2, 3]": _hf({**_VIT, "image_size": [1, 2, 3]}, "--batch 2"),
    "Hugging Face: image_size -16": _hf({**_VIT, "image_size": -16}, "--batch 2"),
    "SPACE.yaml: from 2 to 10^8": _searched("{n_embd: {from: 2, to: 100000000}}"),
    "SPACE.yaml: from 2 to 10^30": _searched("{n_embd: {from: 2, to: 1" + "0" * 30 + "}}"),
    "SPACE.yaml: n_embd 10^15": _searched("{n_embd: [1000000000000000]}"),
    "SPACE.yaml: n_layer 10^15": _searched("{n_layer: [1000000000000000]}"),
    "SPACE.yaml: a batch of 10^18": _searched(
        "{n_layer: [1, 2]}", "batch: [1000000000, 1000000000]"
    ),
    "SPACE.yaml: a bomb of aliases in the fields": _searched(
        "{n_layer: [1, 2]}", "fields:\n" + "\n".join(f"  {line}" for line in _aliases().split("\n"))
    ),
    "SPACE.yaml: a backbone elsewhere": _space(
        "model_type: upernet\nfields: {backbone: name/repo}\nsearch: {num_labels: [1, 2]}\n"
    ),
    "option: --seed -1, search": _option(f"search nano-gpt2 {_LOOP} --seed -1", "search"),
    "option: --seed -1, discover": _option(f"{_DISCOVER} --seed -1 --out OUT", "discover"),
    "option: --seed -1, rank": _option(f"rank {_ROWS} --proxy snip --seed -1", "rank"),
    "option: --batch 10^9": _option("rank nano-gpt2 --proxy snip --batch 1000000000", "rank"),
    "process: standard output is closed": _option("tables", "tables", "closed"),
    "process: 400 MB of address space": _option(f"stats {_ROWS}", "stats", "small"),
}  # fmt: skip


def main(folder: Path) -> None:
    """Write every input, and the list of cases."""
    addresses = folder / "addresses"
    addresses.mkdir()
    os.chdir(addresses)  # modules of an attacker lie in the working folder
    honest = _honest(addresses)
    plain = list(_plain_cases(folder / "cases", honest))
    linked = list(_linked_cases(folder / "links", honest))
    commands = list(_command_cases(folder / "commands", honest))
    served = list(_dashboard_cases(folder / "dashboards", honest))
    stored = list(_address_cases(addresses, honest))
    like = {}
    for number, (name, line) in enumerate(HONEST.items()):
        root = folder / "like" / str(number)
        words = honest.words(line, root / "new")
        like[name] = _case(root, name, words, name, (0,), place=folder)
    made = {"honest": like, "cases": [*plain, *linked, *commands, *served, *stored]}
    (folder / "cases.json").write_text(json.dumps(made))


def _case(
    folder: Path,
    name: str,
    words: list[str],
    honest: str,
    codes: tuple[int, ...],
    kept: tuple[Path, ...] = (),
    start: str = "",
    place: Path | None = None,
) -> dict[str, Any]:
    """A case whose command may write below the folder, but not change what is to be kept.

    A file of the user's beside the input is always to be kept. `place` is the working folder, if it
    is another one.
    """
    home, own = folder / "home", folder / "user" / "own.txt"
    home.mkdir(parents=True, exist_ok=True)
    own.parent.mkdir(exist_ok=True)
    own.write_text("the user's own\n")
    return {
        "name": name,
        "words": words,
        "honest": honest,
        "codes": codes,
        "start": start,
        "folder": str(place or folder),
        "home": str(home),
        "cwd": str(place or folder),
        "kept": [str(path) for path in (own.parent, *kept)],
    }


def _honest(folder: Path) -> Honest:
    runs = attacks.honest_runs(folder / "honest")
    files = attacks.honest_files(folder / "files", runs)
    files["HONEST_TOKENIZER"] = test_reproduce.FILES["TOKENIZER"](folder / "files")
    files["HONEST_SPACE"] = test_reproduce.FILES["SPACE"](folder / "files")
    files["HONEST_SUPERNET"] = runs["supernet training"]
    files["HONEST_PREDICTOR"] = folder / "files" / "predictor.json"
    files["HONEST_PREDICTOR"].write_text(predictors.text())
    files["HONEST_FOLDER"] = folder / "served"
    shutil.copytree(runs["campaign"], files["HONEST_FOLDER"] / "campaign")
    files["HONEST_PARQUET"] = folder / "files" / "metrics.parquet"
    import pandas

    pandas.read_csv(files["HONEST_COLUMNS"]).to_parquet(files["HONEST_PARQUET"])
    return Honest(folder, runs, files)


def _plain_cases(folder: Path, honest: Honest) -> Iterator[dict[str, Any]]:
    for number, (name, entry) in enumerate(INPUTS.items()):
        root = folder / f"{number:03}"
        (root / "input").mkdir(parents=True)
        words = entry.make(root / "input")
        files = {**honest.files, "TEXT_FILE": root / "input" / "text.txt"}
        words = [str(files.get(word, word)) for word in words]
        yield _case(root, name, words, entry.honest, entry.codes, start=entry.start)


# How an honest run of each kind is continued; the words are those that made it.
_CONTINUED = {"campaign": ("--resume",), "search": ("--resume",)}
_LINKED = (layout.LOCK, layout.JOURNAL, layout.RESULT)


def _linked_cases(folder: Path, honest: Honest) -> Iterator[dict[str, Any]]:
    """Runs that were cut short, in which a file is a link to a file of the user's."""
    lines: dict[str, str] = {}
    for kind, line in test_reproduce.SMALLEST:
        lines.setdefault(kind, line)
    for kind in ("campaign", "search", "ranking", "exhaustive run", "table build"):
        for name in _LINKED:
            for link, make in (("link", os.symlink), ("hard link", os.link)):
                root = folder / f"{kind}-{name}-{link}".replace(" ", "-")
                run = root / "run"
                shutil.copytree(honest.runs[kind], run)
                shorten(run)
                (root / "user").mkdir()
                replace_by_link(run / name, root / "user" / name, make)
                words = [_honest_word(word, honest) for word in lines[kind].split()]
                words += ["--out", str(run), "--jobs", "1", *_CONTINUED.get(kind, ())]
                said = f"{link}: {name} of a {kind}"
                yield _case(root, said, words, _like(words), (0, 2))
    for number, inside in enumerate((Path(), Path("index.html"))):
        root = folder / f"report-{number}"
        shutil.copytree(honest.runs["campaign"], root / "run")
        (root / "user" / "page").mkdir(parents=True)
        (root / "user" / "page" / "index.html").write_text("the user's own")
        place = root / "run" / "report" / inside
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(root / "user" / "page" / inside)
        words = ["report", str(root / "run")]
        yield _case(root, f"link: report/{inside.name} of a campaign", words, "report", (0, 2))
    foreign = folder / "foreign"
    (foreign / "papers").mkdir(parents=True)
    (foreign / "papers" / "lock").write_text("the user's own")
    words = honest.words(f"{_DISCOVER} --out {foreign / 'papers'}", foreign)
    name = "link: a folder of the user's with a file lock"
    yield _case(foreign, name, words, "discover", (2,), (foreign / "papers",))


def _honest_word(word: str, honest: Honest) -> str:
    if word in test_reproduce.FILES:
        return str(test_reproduce.FILES[word](honest.folder / "honest"))
    return word


def _command_cases(folder: Path, honest: Honest) -> Iterator[dict[str, Any]]:
    """Runs with junk in a field of the stored command: of the page, and of a run that continues."""
    words = {
        "report RUN --out NEW": "report",
        "discover --out RUN --resume --quiet --permutations 0 --splits 0": "discover",
    }
    stored = content(honest.runs["campaign"], layout.CONFIG)
    of_command = places({"command": stored["command"]})
    tried = [(place, line) for place in of_command for line in words
             if len(place) <= 2 or words[line] == "report"]  # fmt: skip
    for number, (place, line) in enumerate(tried):
        root = folder / str(number)
        shutil.copytree(honest.runs["campaign"], root / "run")
        junk = JUNK[number % len(JUNK)]
        rewrite(root / "run", layout.CONFIG, replaced(stored, place, junk))
        said = f"command: {'.'.join(map(str, place))} is {json.dumps(junk)}"
        filled = honest.words(line.replace("RUN", str(root / "run")), root / "new")
        yield _case(root, said, filled, words[line], (0, 2))


def _dashboard_cases(folder: Path, honest: Honest) -> Iterator[dict[str, Any]]:
    """Folders of runs that the dashboard lists and shows."""

    def damaged(name: str, change: Callable[[Path], object]) -> dict[str, Any]:
        root = folder / f"{len(list(folder.iterdir()))}"
        run = root / "runs" / "campaign"
        shutil.copytree(honest.runs["campaign"], run)
        change(run)
        words = ["dashboard", str(root / "runs")]
        return _case(root, f"dashboard: {name}", words, "dashboard", (0,))

    folder.mkdir()
    result = layout.RESULT
    yield damaged("a run whose name is not text", lambda run: run.rename(run.parent / _NO_TEXT))
    yield damaged("a name with escape sequences", lambda run: run.rename(run.parent / _NAME))
    yield damaged("57 MB of empty lists", lambda run: written.empty_lists(run / result))
    yield damaged("a result that is a pipe", lambda run: _pipe(run / result))
    yield damaged("a journal that is a pipe", lambda run: _pipe(run / layout.JOURNAL))
    yield damaged("a journal of 4 TB, sparse", lambda run: written.sparse(run / layout.JOURNAL))


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _address_cases(folder: Path, honest: Honest) -> Iterator[dict[str, Any]]:
    """Every file that names code in one command, and every command of every verb with one of them.

    The commands are those of `attacks.COMMANDS`, whose test performs all of them with all files.
    """
    formula = attacks.printed_by(["export", str(honest.runs["campaign"]), "--to", "json"])
    hostile = attacks.files_of(Attacker(folder / "hostile"), honest.runs, formula)
    templates = [line for verb, lines in attacks.COMMANDS.items() for line in lines
                 if verb != "dashboard"]  # fmt: skip
    templates += [f"dashboard {kind}" for kind in ("RUN", "PAGE", "PAGE")]
    number = 0
    for kind, files in hostile.items():
        of_kind = [line for line in templates if attacks.varied_kind(line, hostile) == kind]
        for turn in range(max(len(files), len(of_kind)) if of_kind else 0):
            line = of_kind[turn % len(of_kind)]
            path = files[turn % len(files)]
            verb = line.split()[0]
            words = attacks.filled_with(line, path, hostile, honest.files, folder / "new", number)
            if verb == "dashboard":
                words[1] = str(path.parent)
            number += 1
            home = folder / "homes" / str(number)
            name = f"address: {verb} {path.relative_to(folder / 'hostile')}"
            kept = (folder / "files",)
            yield _case(home, name, words, _like(words), (0, 2), kept, place=folder)


def _like(words: list[str]) -> str:
    """The honest command with which a command is compared."""
    verb = words[0]
    if verb == "search" and "--hf" in words:
        return "search, Hugging Face"
    if verb == "train" and "--supernet" in words:
        return "train, supernet"
    return "rank, tokenizer" if verb == "rank" and "--tokenizer" in words else verb


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())

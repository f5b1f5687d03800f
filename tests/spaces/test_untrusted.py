"""Files that may be a stranger's: what is not a plain file of a usual size is refused at once."""

from __future__ import annotations

import copy
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lpzero import files
from lpzero.errors import EnvelopeError, InputError
from lpzero.exhaust.shards import ShardFiles
from lpzero.export.source import from_file
from lpzero.hf.configuration import read_configuration
from lpzero.runs import layout
from lpzero.runs.config import read_config
from lpzero.runs.directory import file_digest
from lpzero.runs.journal import JournalFollower, read_journal
from lpzero.runs.run import last_record, last_row, n_lines
from lpzero.supernet import weights
from spaces import untrusted
from spaces.errors import SpaceError
from spaces.minibatch import Corpus
from spaces.tables.architecture_files import read_architectures
from spaces.tables.column_files import read_columns
from spaces.tables.readers import ReadOptions, read_yaml
from spaces.tables.row_files import count_rows
from spaces.tokenizer import Tokenizer
from spaces.untrusted import UntrustedError
from tests.faults.attempt import BUSY, attempt
from tests.faults.hostile import MOST_MEGABYTES, MOST_SECONDS

Read = Callable[[Path], Any]
NUMBERS = ReadOptions("accuracy")


def unlocked(*_: Any) -> bool:
    return True


# By the name that the file has. A path that the user names may be a link.
NAMED: dict[str, Read] = {
    "rows.csv": lambda path: read_columns(path, NUMBERS),
    "rows.jsonl": lambda path: read_columns(path, NUMBERS),
    "rows.parquet": lambda path: read_columns(path, NUMBERS),
    "naslib.json": lambda path: read_columns(path, NUMBERS),
    "counted.csv": count_rows,
    "archs.csv": lambda path: read_architectures(path, None, NUMBERS, "x"),  # type: ignore[arg-type]
    "lpzero.yaml": read_yaml,
    "corpus.txt": Corpus.of,
    "tokenizer.json": Tokenizer.of,
    "weights.safetensors": weights.read,
    "weights.pth": weights.read,
    "formula.json": from_file,
    "formulas.csv": from_file,
    "config.json": read_configuration,
}
IN_RUNS: dict[str, Read] = {
    layout.CONFIG: lambda path: read_config(path.parent),
    layout.RESULT: lambda path: files.read_sealed(path, "x"),
    layout.JOURNAL: lambda path: read_journal(path, unlocked),
    "00000.npz": lambda path: ShardFiles(path.parent.parent, "x").read(0),
}
ERRORS = (SpaceError, InputError, EnvelopeError)


def folder_of(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / (layout.SHARDS if name.endswith(".npz") else "run")
    folder.mkdir()
    return folder / name


def refusal(read: Read, path: Path) -> str:
    """What the reader says; a shard that cannot be read is measured again."""
    try:
        assert read(path) is None
    except ERRORS as error:
        return str(error)
    return "is a link, which is not followed"


@pytest.mark.parametrize("name", [*NAMED, *IN_RUNS])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_pipes_and_devices_are_refused_without_waiting(
    name: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    path = folder_of(tmp_path, name)
    make(path)
    said = refusal({**NAMED, **IN_RUNS}[name], path)
    assert "\n" not in said
    assert "is not a regular file" in said or "is a link" in said


@pytest.mark.parametrize("name", IN_RUNS)
def test_a_link_in_a_directory_of_a_run_is_not_followed(name: str, tmp_path: Path) -> None:
    path = folder_of(tmp_path, name)
    (tmp_path / "secret").write_text('{"schema": 3}\n')
    path.symlink_to(tmp_path / "secret")
    assert "is a link, which is not followed" in refusal(IN_RUNS[name], path)


def test_what_lists_say_of_links_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('a,b\n{"n": 1}\n')
    path = tmp_path / "linked"
    path.symlink_to(tmp_path / "secret")
    assert (last_record(path), last_row(path), n_lines(path)) == ({}, {}, 0)
    assert file_digest(path) is None
    follower = JournalFollower(path, unlocked, "x")
    assert follower.read().records == []
    assert follower.remark == "linked is a link, which is not followed"


def test_a_named_table_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("x,accuracy\n1,2\n2,3\n3,4\n")
    (tmp_path / "rows.csv").symlink_to(tmp_path / "real.csv")
    assert len(read_columns(tmp_path / "rows.csv", NUMBERS)) == 3


def test_the_error_is_wrong_input_and_survives_a_worker(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    with pytest.raises(UntrustedError, match=r"5 bytes, at most 4 are read") as caught:
        untrusted.read_regular(tmp_path / "x", 4)
    assert isinstance(caught.value, ValueError)
    assert str(copy.copy(caught.value)) == str(caught.value)  # as pickle would rebuild it


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 5000, "[1,", "\udcff"])
def test_json_that_cannot_be_read_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UntrustedError) as caught:
        untrusted.read_json(path)
    assert str(caught.value).startswith(f"{path} ")


def test_values_are_counted_before_they_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted, "MOST_VALUES", 6)
    path = tmp_path / "x.json"
    for text, n_values in (
        ('[1,2,3,"a,b"]', None),
        ("[[],[],[],[]]", 8),
        ('{"a":{"b":[1,2,3,4]}}', None),
    ):
        path.write_text(text)
        if n_values is None:
            assert untrusted.read_json(path) == json.loads(text)
        else:
            with pytest.raises(UntrustedError, match=f"has {n_values} JSON values, at most 6"):
                untrusted.read_json(path)


# Hostile files: how each is written, and how it is read in a process of its own.


def many_headings(path: Path) -> None:
    path.write_text(",".join(f"h{i}" for i in range(100_000)) + "\n" + "1," * 99_999 + "1\n")


def new_key_in_every_line(path: Path) -> None:
    path.write_text("".join(f'{{"k{i}": 1}}\n' for i in range(49_000)))


def empty_cells(path: Path) -> None:
    path.write_bytes(
        b",".join(b"h%d" % i for i in range(4000)) + b"\n" + (b"," * 3999 + b"\n") * 20_000
    )


def empty_lists(path: Path) -> None:
    path.write_bytes(b'{"x": [' + b"[]," * 19_000_000 + b"[]]}")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(4 << 40)


def repeated_rows(path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    column = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * 2_000_000, pyarrow.int8()), pyarrow.array([1.0])
    )
    parquet.write_table(pyarrow.table({"accuracy": column.cast(pyarrow.float64())}), path)


def repeated_text(path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    long = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * 49_000, pyarrow.int32()), pyarrow.array(["x" * 1_000_000])
    )
    numbers = pyarrow.array([float(i) for i in range(49_000)])
    parquet.write_table(pyarrow.table({"id": long, "accuracy": numbers}), path)


def false_footer(path: Path) -> None:
    """Parquet of 12 kB with a text of 400 MB, which its footer says has 1,000 bytes."""
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"id": ["x" * 400_000_000]}), path, compression="zstd")
    whole, about = path.read_bytes(), parquet.read_metadata(path).row_group(0)
    for size in {about.total_byte_size, about.column(0).total_uncompressed_size}:
        stated = varint(size)
        assert stated in whole
        whole = whole.replace(stated, varint(1000, len(stated)))
    path.write_bytes(whole)


def varint(value: int, length: int = 0) -> bytes:
    """The number as Thrift's compact protocol writes it, padded to the length."""
    digits, rest = [], 2 * value
    while rest or len(digits) < length:
        digits.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*digits[:-1], digits[-1] & 127])


def long_list(path: Path) -> None:
    """Parquet of one row, whose list has 20 million equal numbers."""
    import pyarrow
    from pyarrow import parquet

    numbers = pyarrow.array(np.zeros(20_000_000))
    column = pyarrow.LargeListArray.from_arrays([0, len(numbers)], numbers)
    parquet.write_table(pyarrow.table({"accuracy": column}), path)


def deep_metadata(path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({"accuracy": [1.0]}).replace_schema_metadata({b"pandas": b"[" * 100_000})
    parquet.write_table(table, path)


def sexagesimal(path: Path) -> None:
    path.write_text(f"a: 1{':59' * 100_000}")


def packed_tensors(path: Path) -> None:
    rewritten(path, {"a": torch.zeros(50_000_000)}, zipfile.ZIP_DEFLATED)


def large_bytes(path: Path) -> None:
    size = (1_000_000_000).to_bytes(5, "little")
    pickled = b"\x80\x02}X\x01\0\0\0acbuiltins\nbytearray\n\x8a\x05" + size + b"\x85Rs."
    rewritten(path, {"a": torch.zeros(1)}, zipfile.ZIP_STORED, pickled)


def rewritten(path: Path, content: Any, compression: int, pickled: bytes | None = None) -> None:
    """A file of torch.save whose members are packed so, with other values in its pickle."""
    torch.save(content, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            is_pickle = pickled is not None and name.endswith("data.pkl")
            archive.writestr(name, pickled if is_pickle else data)  # type: ignore[arg-type]


def doubled_text(path: Path) -> None:
    double = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    write_tokenizer(path, {"type": "Sequence", "normalizers": [double] * 60})


def slow_expression(path: Path) -> None:
    pattern = {"Regex": "(x+x+)+y"}
    write_tokenizer(path, {"type": "Replace", "pattern": pattern, "content": ""})


def no_unknown(path: Path) -> None:
    write_tokenizer(path, None)
    path.write_text(path.read_text().replace(', "[UNK]": 1', ""))


def write_tokenizer(path: Path, normalizer: dict[str, Any] | None) -> None:
    made = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []}
    made |= {"normalizer": normalizer, "pre_tokenizer": None, "post_processor": None}
    model = {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"}
    path.write_text(json.dumps({**made, "decoder": None, "model": model}))


COLUMNS = (
    "from spaces.tables.column_files import read_columns as read\nmore = [ReadOptions('accuracy')]"
)


def test_a_shard_that_unpacks_to_more_than_its_size_is_not_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder_of(tmp_path, "00000.npz")
    np.savez_compressed(path, values=np.zeros(10_000), counts=np.zeros(3))
    assert ShardFiles(tmp_path, "x").read(0) is None
    assert "UntrustedError" in caplog.text


YAML = "from spaces.tables.readers import read_yaml as read\nmore = []"
WEIGHTS = "from lpzero.supernet.weights import read\nmore = []"
CORPUS = "from spaces.minibatch import Corpus\nread, more = Corpus.of, []"
SEALED = "from lpzero.files import read_sealed as read\nmore = ['x']"
TEXT = "from spaces.tokenizer import _encoded\nread, more = (lambda p: _encoded(str(p), {})), []"
BUDGET = """
from spaces.errors import SpaceError
from spaces.tables.readers import ReadOptions
from lpzero.errors import LPZeroError
import resource


def used():
    '''Seconds of this process and its children, and the most megabytes of either.'''
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return seconds, max(own.ru_maxrss, children.ru_maxrss) / 1024


{}
before = used()
try:
    read(path, *more)
except (SpaceError, LPZeroError) as error:
    print(error)
print(*(after - first for after, first in zip(used(), before)))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "name", "read", "said"),
    [
        (many_headings, "x.csv", COLUMNS, "more than 5,000 columns"),
        (new_key_in_every_line, "x.jsonl", COLUMNS, "more than 5,0"),
        (empty_cells, "x.csv", COLUMNS, "more than 5,000,000 cells"),
        (empty_lists, "x.json", COLUMNS, "JSON values"),
        (empty_lists, "result.json", SEALED, "JSON values"),
        (sparse, "corpus.txt", CORPUS, "at most"),
        (sparse, "x.csv", COLUMNS, "at most"),
        (sparse, "result.json", SEALED, "at most"),
        (repeated_rows, "x.parquet", COLUMNS, "more than 50,000 rows"),
        (repeated_text, "x.parquet", COLUMNS, "reading it takes more than"),
        (false_footer, "x.parquet", COLUMNS, "reading it takes more than"),
        (long_list, "x.parquet", COLUMNS, "reading it takes more than"),
        (deep_metadata, "x.parquet", COLUMNS, "not a Parquet file"),
        (sexagesimal, "x.yaml", YAML, "colons"),
        (packed_tensors, "x.pth", WEIGHTS, "more than its own"),
        (large_bytes, "x.pth", WEIGHTS, "more than tensors"),
        (doubled_text, "x.json", TEXT.format("b'a' * 100"), "multiplies the text"),
        (no_unknown, "x.json", TEXT.format("b'b'"), "cannot read this text"),
        (slow_expression, "x.json", TEXT.format("b'x' * 40000"), "cannot read this text"),
    ],
)
def test_a_hostile_file_takes_little_time_and_memory(
    write: Callable[[Path], None], name: str, read: str, said: str, tmp_path: Path
) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    if read.startswith("from spaces.tokenizer"):
        pytest.importorskip("tokenizers")
    path = tmp_path / name
    write(path)

    def measure(_: list[str]) -> int:
        exec(BUDGET.format(read), {"path": path})  # noqa: S102
        return 0

    done = attempt([], tmp_path / "said", act=measure, limit=BUSY)
    assert not done.err
    line, used = done.out.splitlines()
    assert said in line
    seconds, megabytes = map(float, used.split())  # beyond the imports
    assert seconds < MOST_SECONDS
    assert megabytes < MOST_MEGABYTES

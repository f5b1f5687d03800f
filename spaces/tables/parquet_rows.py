"""Headings and columns of a Parquet file, which pyarrow reads in a process with limits.

A file of kilobytes can hold gigabytes: packed pages whose footer states another size, runs of one
value, a long text in every row. Cells come back as JSON values, columns of float64 as their bytes.
"""

from __future__ import annotations

import json
from array import array
from importlib.util import find_spec
from typing import Any

from spaces import limited_process
from spaces.errors import TableError
from spaces.limited_process import LimitError, ProgramError
from spaces.tables.readers import refuse

PROGRAM = """
import json, pyarrow
from array import array
from pyarrow import parquet

def answer(data):
    wanted, _, data = data.partition(b"\\n")
    file = parquet.ParquetFile(pyarrow.BufferReader(data))
    about = file.metadata
    n_rows, n_columns = about.num_rows, about.num_columns
    found = {"n_rows": n_rows, "n_columns": n_columns}
    most_rows, most_cells = json.loads(wanted)
    if n_rows <= most_rows and n_rows * n_columns <= most_cells:
        table = file.read(use_threads=False)
        pandas = table.schema.pandas_metadata or {}
        index = {name for name in pandas.get("index_columns", []) if isinstance(name, str)}
        named = [(i, name) for i, name in enumerate(table.column_names) if name not in index]
        found["headings"] = [name for _, name in named]
        found["columns"] = [None if is_plain(table.column(i)) else table.column(i).to_pylist()
                            for i, _ in named]
        plain = [table.column(i) for i, _ in named if is_plain(table.column(i))]
        numbers = b"".join(array("d", column.to_pylist()).tobytes() for column in plain)
    else:
        numbers = b""
    told = json.dumps(found, default=str, separators=(",", ":")).encode()
    return b"%d\\n" % len(told) + told + numbers

def is_plain(column):
    return pyarrow.types.is_float64(column.type) and column.null_count == 0
"""
SECONDS = 10
_MEMORY, _PER_BYTE = 512 << 20, 8  # of the libraries and small files, and for each byte of a file
_NUMBER = 8  # bytes
_MOST_BRACKETS = 500_000  # of what comes back: a list in a cell takes more memory than a number


def read(path: str, data: bytes, most_rows: int, most_cells: int) -> dict[str, Any]:
    """`n_rows` and `n_columns`, and unless they are too many `headings` and `columns`."""
    if find_spec("pyarrow") is None:
        refuse(path, "Parquet needs pyarrow: pip install 'lpzero[pandas]'")
    wanted = json.dumps([most_rows, most_cells]).encode() + b"\n"
    memory = _MEMORY + _PER_BYTE * len(data)
    try:
        answer = limited_process.run(PROGRAM, wanted + data, SECONDS, memory)
    except LimitError:
        raise TableError(
            f"{path}: reading it takes more than {SECONDS} s or {memory >> 20:,} MB: write it with"
            " fewer or shorter cells"
        ) from None
    except ProgramError as error:
        raise TableError(f"{path}: it is not a Parquet file ({str(error)[:80]})") from None
    size, _, rest = answer.partition(b"\n")
    told, numbers = rest[: int(size)], memoryview(rest)[int(size) :]
    if told.count(b"[") + told.count(b"{") > _MOST_BRACKETS:
        refuse(path, f"more than {_MOST_BRACKETS:,} lists in its cells")
    found: dict[str, Any] = json.loads(told)
    n_bytes = found["n_rows"] * _NUMBER
    for place, column in enumerate(found.get("columns", [])):
        if column is None:
            found["columns"][place] = array("d", numbers[:n_bytes].tobytes()).tolist()
            numbers = numbers[n_bytes:]
    return found

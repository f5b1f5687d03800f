"""Memory and time of proxies on a Llama of 1.1 billion parameters, beside a bare pass.

    python -m experiments.device.billion --out runs/billion.jsonl
    python -m experiments.device.billion --hidden 3072 --layers 28 --dtype bfloat16 --only NAME

Each proxy is scored by `lpzero score --hf` in a process of its own, a fork of this one, which has
imported everything. The bare pass builds the same model and runs it forwards and backwards once.
Memory is the peak of the process without what it has at its start. The seconds are of the processor
with one thread: the whole command's, and those of the proxy without building the network. Every
command is a line of `--out`, so the same script continues.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from experiments.measured import measured
from lpzero import hf
from lpzero.cli import main as lpzero_main

BARE, FORWARD = "bare forward and backward pass", "bare forward pass"
SINGLE = ("parameters", "engine-universal", "engine-universal@0.2", "sum(mul(abs(W), abs(G)))",
          "snip", "ntkt", "synflow")  # fmt: skip
FIVE = SINGLE[2:]
MEGABYTE = 1 << 10  # of the kilobytes that the kernel counts


def main() -> None:
    """Measure what is not measured yet, and print the table."""
    parser = argparse.ArgumentParser(description="Memory and time on a large Llama.")
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--only", action="append", help="a proxy, beside the bare passes")
    parser.add_argument("--out", type=Path, default=Path("runs/billion.jsonl"))
    asked = parser.parse_args()
    os.environ["LPZERO_MEMORY"] = "20GB"
    torch.set_num_threads(1)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    size = [asked.hidden, asked.layers, asked.dtype]
    proxies = [(name,) for name in asked.only] if asked.only else [*((n,) for n in SINGLE), FIVE]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "llama.json"
        config.write_text(json.dumps(configuration(64, 1)))
        score(("snip", "parameters"), str(config), asked.dtype)  # imports what the forks need
        gc.freeze()
        config.write_text(json.dumps(configuration(asked.hidden, asked.layers)))
        for names in [(BARE,), (FORWARD,), *proxies]:
            if list(names) not in [row["names"] for row in rows_of(asked.out, size)]:
                row = {"names": names, "size": size, **run(names, config, asked.dtype)}
                with asked.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print(table(rows_of(asked.out, size)))
    print(measured())


def rows_of(path: Path, size: list[Any]) -> list[dict[str, Any]]:
    """What was measured of networks of that size."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [row for row in rows if row["size"] == size]


def configuration(hidden: int, layers: int) -> dict[str, Any]:
    """A Llama as its configuration file states it; 2,048 and 22 have 1.10 billion parameters."""
    return {
        "model_type": "llama", "hidden_size": hidden, "num_hidden_layers": layers,
        "intermediate_size": hidden * 11 // 4, "num_attention_heads": 32, "num_key_value_heads": 4,
        "vocab_size": 32_000, "max_position_embeddings": 2048,
    }  # fmt: skip


def run(names: tuple[str, ...], config: Path, dtype: str) -> dict[str, Any]:
    """What one command takes: peak megabytes, seconds in all and of the proxies, the scores."""
    answer = config.with_name("answer.json")
    answer.unlink(missing_ok=True)
    process = os.fork()
    if process == 0:
        at_start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        act = bare_pass if names[0] in (BARE, FORWARD) else score
        answer.write_text(json.dumps([at_start, act(names, str(config), dtype)]))
        os._exit(0)
    _, status, used = os.wait4(process, 0)
    at_start, rows = json.loads(answer.read_text()) if status == 0 else (0, [])
    return {
        "code": os.waitstatus_to_exitcode(status),
        "megabytes": (used.ru_maxrss - at_start) // MEGABYTE,
        "seconds": round(used.ru_utime + used.ru_stime, 2),
        "own_seconds": round(sum(row["seconds"] for row in rows), 2),
        "scores": {row["proxy"]: row["score"] or row["reason"] for row in rows},
    }


def bare_pass(names: tuple[str, ...], config: str, dtype: str) -> list[dict[str, Any]]:
    """The processor seconds of one pass over the batch."""
    model = hf.build(config, inputs=8, length=64, dtype=dtype)
    tokens = hf.batch(model, inputs=8, length=64)
    is_both, start = names == (BARE,), time.process_time()
    with torch.set_grad_enabled(is_both):
        logits = model(tokens, use_cache=False).logits
    if is_both:
        nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
        ).backward()
    seconds = time.process_time() - start
    return [{"proxy": names[0], "score": 0.0, "reason": None, "seconds": seconds}]


def score(names: tuple[str, ...], config: str, dtype: str) -> list[dict[str, Any]]:
    """The rows that `lpzero score` prints."""
    words = ["score", "--hf", config, "--batch", "8", "--length", "64", "--dtype", dtype]
    words += ["--format", "json", *(word for name in names for word in ("--proxy", name))]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = lpzero_main.run(words)
    assert code == 0, printed.getvalue()
    rows: list[dict[str, Any]] = json.loads(printed.getvalue())
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: each command beside the first, bare pass."""
    bare = rows[0]
    lines = ["| proxy | peak GB | of the bare | s of the proxy | of the bare | s in all |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for row in rows:
        memory, seconds = (row[key] / bare[key] for key in ("megabytes", "own_seconds"))
        is_one = len(row["names"]) == 1
        name = row["names"][0] if is_one else f"the last {len(row['names'])} in one call"
        shown = f"`{name}`" if is_one and name not in (BARE, FORWARD) else name
        lines.append(
            f"| {shown} | {row['megabytes'] / 1024:.2f} | {memory:.2f} | {row['own_seconds']:.2f}"
            f" | {seconds:.2f} | {row['seconds']:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()

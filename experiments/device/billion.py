"""Memory and time of proxies on a Llama of 1.1 billion parameters, beside a bare pass.

    python -m experiments.device.billion --out runs/billion.jsonl
    python -m experiments.device.billion --hidden 3072 --layers 28 --dtype bfloat16 --only NAME

Each proxy is scored by `lpzero score --hf` in a process of its own. The bare pass builds the same
model and runs it forwards and backwards once. Memory is the peak of the process. The seconds are of
the processor: the whole command's, and those of the proxy without building the network. Every
command is a line of `--out`, so the same script continues.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from experiments.measured import measured

BARE, FORWARD = "bare forward and backward pass", "bare forward pass"
SINGLE = ("parameters", "engine-universal", "engine-universal@0.2", "sum(mul(abs(W), abs(G)))",
          "snip", "ntkt", "synflow")  # fmt: skip
FIVE = SINGLE[2:]
MEGABYTE = 1 << 10  # of the kilobytes that the kernel counts
_BARE = """
import sys, time, torch
from contextlib import nullcontext
from lpzero import hf
torch.set_num_threads(1)
model = hf.build(sys.argv[1], inputs=8, length=64, dtype=sys.argv[2])
tokens = hf.batch(model, inputs=8, length=64)
start = time.process_time()
with torch.no_grad() if sys.argv[3] == "forward" else nullcontext():
    logits = model(tokens, use_cache=False).logits
if sys.argv[3] != "forward":
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
print(time.process_time() - start)
"""


def main() -> None:
    """Measure what is not measured yet, and print the table."""
    parser = argparse.ArgumentParser(description="Memory and time on a large Llama.")
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--only", action="append", help="a proxy; repeatable")
    parser.add_argument("--out", type=Path, default=Path("runs/billion.jsonl"))
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    known = (
        [json.loads(line) for line in asked.out.read_text().splitlines()]
        if asked.out.exists()
        else []
    )
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "llama.json"
        config.write_text(json.dumps(configuration(asked.hidden, asked.layers)))
        wanted: list[tuple[str, ...]] = [(BARE,), (FORWARD,), *((name,) for name in SINGLE), FIVE]
        if asked.only:
            wanted = [
                names
                for names in wanted
                if len(names) == 1 and names[0] in (BARE, FORWARD, *asked.only)
            ]
        size = [asked.hidden, asked.layers, asked.dtype]
        for names in wanted:
            if any((row["names"], row["size"]) == (list(names), size) for row in known):
                continue
            row = {"names": names, "size": size, **run(names, config, asked.dtype)}
            with asked.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    rows = [json.loads(line) for line in asked.out.read_text().splitlines()]
    print(table([row for row in rows if row["size"] == size]))
    print(measured())


def configuration(hidden: int, layers: int) -> dict[str, Any]:
    """A Llama as its configuration file states it; 2,048 and 22 have 1.10 billion parameters."""
    return {
        "model_type": "llama", "hidden_size": hidden, "num_hidden_layers": layers,
        "intermediate_size": hidden * 11 // 4, "num_attention_heads": 32, "num_key_value_heads": 4,
        "vocab_size": 32_000, "max_position_embeddings": 2048,
    }  # fmt: skip


def run(names: tuple[str, ...], config: Path, dtype: str) -> dict[str, Any]:
    """What one command takes: peak megabytes, seconds in all and of the proxy, the scores."""
    kinds = {BARE: "both", FORWARD: "forward"}
    if names[0] in kinds:
        words = [sys.executable, "-c", _BARE, str(config), dtype, kinds[names[0]]]
    else:
        asked = [word for name in names for word in ("--proxy", name)]
        words = [sys.executable, "-m", "lpzero", "score", "--hf", str(config), "--batch", "8"]
        words += ["--length", "64", "--dtype", dtype, "--format", "json", *asked]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment["LPZERO_MEMORY"] = "20GB"
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    text = process.stdout.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    scores = [] if names[0] in kinds or process.returncode else json.loads(text)
    own = float(text) if names[0] in kinds else sum(row["seconds"] for row in scores)
    return {
        "code": process.returncode,
        "megabytes": used.ru_maxrss // MEGABYTE,
        "seconds": round(used.ru_utime + used.ru_stime, 1),
        "own_seconds": round(own, 1),
        "scores": {row["proxy"]: row["score"] or row["reason"] for row in scores},
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: each command beside the first, bare pass."""
    bare = rows[0]
    lines = ["| proxy | peak GB | of the bare | s of the proxy | of the bare | s in all |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for row in rows:
        memory, seconds = (row[key] / bare[key] for key in ("megabytes", "own_seconds"))
        name = (
            row["names"][0]
            if len(row["names"]) == 1
            else f"the last {len(row['names'])} in one call"
        )
        shown = name if name in (BARE, FORWARD) or " in one " in name else f"`{name}`"
        lines.append(
            f"| {shown} | {row['megabytes'] / 1024:.2f} | {memory:.2f} | {row['own_seconds']:.1f}"
            f" | {seconds:.2f} | {row['seconds']:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""The LTS tables: GPT-2 and Transformer-XL decoders with perplexities (Javaheripi et al., 2022).

A folder contains one `model_config.yaml` per architecture and summaries that map names to
results. Parameter counts in `params_summary.yaml` are never read: the space computes them, and
one of the released files counts another model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spaces
from spaces.errors import shown
from spaces.gpt2 import Gpt2Space
from spaces.tables.readers import architecture_of, field, read_yaml, refuse
from spaces.tables.source import Origin, Source

if TYPE_CHECKING:
    from spaces.tables.table import Table

ARCHAI = "microsoft/archai"
COMMIT = "47770415327900684ed95c0bc9bf7cd0d0047fad"
CONFIG = "model_config.yaml"
_RUN = re.compile(r"(config_\d+)_(j\d+)")
_ROW = re.compile(r"\w+")


def read_random(source: Source, folder: Path) -> Table:
    """The table of a `random_*` folder: perplexity under `valid_ppl`, negated."""
    summary = folder / "ppl_summary.yaml"
    rows = _summary(summary)
    perplexities = {
        row: field(results, "valid_ppl", float, f"{summary}: {row}")
        for row, results in rows.items()
    }
    return _table(source, folder, perplexities, {})


def read_pareto(source: Source, folder: Path) -> Table:
    """The table of a `pareto_*` folder, with latency (ms) and memory (MB) as extra columns."""
    columns = {}
    for name in ("ppl", "latency", "memory"):
        path = folder / f"{name}_summary.yaml"
        values = _summary(path)
        columns[name] = {row: field(values, row, float, str(path)) for row in values}
    perplexities = columns.pop("ppl")
    extra = {
        name: [field(values, row, float, f"{folder}/{name}_summary.yaml") for row in perplexities]
        for name, values in columns.items()
    }
    return _table(source, folder, perplexities, extra)


def count(folder: Path) -> int:
    """The number of architectures, by their files."""
    if not (folder / "ppl_summary.yaml").is_file():
        refuse(str(folder / "ppl_summary.yaml"), "the file is missing")
    # At the two depths of `_config_path`: the folder may hold anything else.
    return sum(1 for depth in ("*", "*/*") for _ in folder.glob(f"{depth}/{CONFIG}"))


def _summary(path: Path) -> dict[str, Any]:
    values = read_yaml(path)
    if not isinstance(values, dict) or not values:
        refuse(str(path), "expected names with their results")
    for row in values:
        if not isinstance(row, str) or not _ROW.fullmatch(row):
            refuse(str(path), f"{shown(row)} is not the name of an architecture")
    return values


def _table(
    source: Source,
    folder: Path,
    perplexities: Mapping[str, float],
    extra: Mapping[str, list[float]],
) -> Table:
    from spaces.tables.table import make_table

    space = spaces.get(source.space)
    assert isinstance(space, Gpt2Space)
    rows = []
    for row, perplexity in perplexities.items():
        if perplexity < 1:
            refuse(f"{folder}: {row}", f"perplexity {perplexity!r}, expected at least 1")
        rows.append((row, _architecture(space, _config_path(folder, row)), -perplexity))
    return make_table(source.name, space, rows, source.target, source.licence, extra)


def _config_path(folder: Path, row: str) -> Path:
    """The file of an architecture: `config_0_j1` is in config_0/j1, any other in its own folder."""
    match = _RUN.fullmatch(row)
    return folder.joinpath(*(match.groups() if match else (row,)), CONFIG)


def _architecture(space: Gpt2Space, path: Path) -> Any:
    """The architecture of a configuration whose vocabulary and lengths are the space's."""
    where = str(path)
    config = read_yaml(path)
    for name, expected in space.released_settings().items():
        _expect(name, field(config, name, type(expected), where), expected, space, where)
    ends = field(config, "cutoffs", list, where)
    if not all(type(end) is int for end in ends):
        refuse(where, f"cutoffs = {shown(ends)}, expected a list of integers")
    # The released code cuts the list at the first entry beyond the vocabulary.
    beyond = next((i for i, end in enumerate(ends) if end >= space.vocabulary), len(ends))
    _expect("cutoffs below n_token", tuple(ends[:beyond]), space.cutoffs, space, where)
    with architecture_of(where):
        return space.from_json(
            {
                "d_model": field(config, "d_model", int, where),
                "n_head": _layers(config, "n_head", where),
                "d_inner": _layers(config, "d_inner", where),
                "d_embed": field(config, "d_embed", int, where),
                "div_val": field(config, "div_val", int, where),
            }
        )


def _expect(name: str, given: Any, expected: Any, space: Gpt2Space, where: str) -> None:
    if given != expected:
        refuse(where, f"{name} = {shown(given)}, expected {shown(expected)} in space {space.name}")


def _layers(config: Any, name: str, where: str) -> list[Any]:
    """The list's values of the layers that there are: released lists may be longer."""
    values, n = field(config, name, list, where), field(config, "n_layer", int, where)
    if not 0 < n <= len(values):
        refuse(where, f"n_layer = {shown(n)}, expected 1 to {len(values)}, the length of {name}")
    return values[:n]


SOURCES = (
    Source(
        name="gpt2-wt103",
        space="gpt2",
        n=200,
        target="minus valid_ppl",
        licence="MIT",
        path=Path("lts/random_GPT2_wt103"),
        drawn_from="gpt2-released",
        read=read_random,
        count=count,
        origin=Origin(
            ARCHAI,
            COMMIT,
            "archai/nlp/nas/saved_logs/random_GPT2_wt103",
            "796231ac978c5e7555e2ac6c54ec54529b0b19b024bfc33efebcacdd0286ca98",
            r"(ppl|params)_summary\.yaml|config_\d+/j\d+/model_config\.yaml",
        ),
    ),
    Source(
        name="transformer-xl",
        space="transformer-xl",
        n=200,
        target="minus valid_ppl",
        licence="MIT",
        path=Path("lts/random_TransXL_wt103"),
        read=read_random,
        count=count,
        origin=Origin(
            ARCHAI,
            COMMIT,
            "archai/nlp/nas/saved_logs/random_TransXL_wt103",
            "b16b09bd323044454ecde6c1e066fb460003f60a0e82bb7f4e5f5066011c939a",
            r"(ppl|params)_summary\.yaml|config_\d+/j\d+/model_config\.yaml",
        ),
    ),
    Source(
        name="gpt2-lm1b-corei7-pareto",
        space="gpt2-lm1b",
        n=38,
        target="minus ppl",
        licence="MIT",
        path=Path("lts/pareto_GPT2_lm1b_corei7"),
        read=read_pareto,
        count=count,
        origin=Origin(
            ARCHAI,
            COMMIT,
            "archai/nlp/nas/saved_logs/pareto_GPT2_lm1b_corei7",
            "d08f4de3cd81850b38aea8c58cba94c87ac91387acd19f7dcc3bf68312213150",
            r"(ppl|params|latency|memory)_summary\.yaml|M\d+/model_config\.yaml",
        ),
    ),
)

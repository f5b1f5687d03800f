"""The engine's own proxies, frozen: one formula and an ensemble of twenty for each kind of network.

The formulas are in engine.json, as experiments/engine_proxies chose them on all rows of the tables
named there, so every figure on these tables is in sample. docs/engine-proxies.md has what the same
rule reaches on rows that it has not seen.
"""

from __future__ import annotations

import json
from importlib.resources import files

from lpzero.proxies.ensemble import ensemble
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.registry import register
from primitives.parser import parse

_PAPER = "this engine"


def _register_all() -> None:
    source = files(__package__).joinpath("engine.json").read_text(encoding="utf-8")
    for name, chosen in json.loads(source).items():
        on = tuple((table, None) for table in chosen["tables"])
        members = [
            FormulaProxy(f"{name}-{place}", parse(text), _PAPER, chosen_on=on)
            for place, text in enumerate(chosen["members"], 1)
        ]
        register(FormulaProxy(name, members[0].formula, _PAPER, chosen_on=on))
        register(ensemble(f"{name}-{len(members)}", members, _PAPER))


_register_all()

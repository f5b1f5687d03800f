"""Formulas with a name: those of LPZero, and the engine's own.

The published formulas are `lpzero-flexibert` (equation 2 as its text and code have it, and
`lpzero-flexibert-typeset` as it is printed) and `lpzero-gpt2`. The engine's, one and an ensemble of
twenty for each kind of network, are in engine.json, as experiments/engine_proxies chose them on all
rows of the tables named there, so every figure on these tables is in sample. docs/engine-proxies.md
has what the same rule reaches on tables that it has not seen. NAME@VERSION is a former one.
"""

from __future__ import annotations

import json
from importlib.resources import files

from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.lookup import ensemble
from lpzero.proxies.registry import register
from primitives.classics import CLASSICS
from primitives.parser import parse

_PAPER = "this engine"


def _register_all() -> None:
    for classic in CLASSICS:
        if classic.name.startswith("lpzero-") and classic.formula is not None:
            register(FormulaProxy(classic.name, classic.formula, "LPZero"), __name__)
    source = files("lpzero.proxies").joinpath("engine.json").read_text(encoding="utf-8")
    for name, chosen in json.loads(source).items():
        on = tuple((table, None) for table in chosen["tables"])
        members = [
            FormulaProxy(f"{name}-{place}", parse(text), _PAPER, chosen_on=on)
            for place, text in enumerate(chosen["members"], 1)
        ]
        register(FormulaProxy(name, members[0].formula, _PAPER, chosen_on=on), __name__)
        base, at, version = name.partition("@")  # of former ones, which papers may name
        register(ensemble(f"{base}-{len(members)}{at}{version}", members, _PAPER), __name__)


_register_all()

"""What a search uses where nothing is named: a loop, a proxy, and the space its table knows.

The proxies are those that rank best on the tables of each family (docs/engine-proxies.md,
experiments/vision, experiments/recurrent); a space of another family gets the first that applies.
"""

from __future__ import annotations

from typing import Any

from lpzero.proxies import find
from lpzero.search.loops import Loop
from spaces import tables
from spaces.base import Space
from spaces.flexibert import FlexiBertSpace
from spaces.gpt2 import Gpt2Space
from spaces.images import ImageSpace
from spaces.nlp_rnn import RnnSpace
from spaces.tables.registry import source

LOOP = "etas"
_OF_FAMILY: tuple[tuple[type[Any], str], ...] = (
    (Gpt2Space, "engine-decoder"),
    (FlexiBertSpace, "engine-encoder"),
    (ImageSpace, "dss"),
    (RnnSpace, "hidden-covariance"),
)
_ANY = ("snip", "parameters")  # which need neither taps nor ends
_BY_BLOCK = ("dss++", "snip")


def proxy(space: Space[Any], loop: type[Loop]) -> str | None:
    """The name of the proxy for a space; None if the loop brings its own."""
    if loop.usual_proxy is not None:
        return None
    family = [name for kind, name in _OF_FAMILY if isinstance(space, kind)]
    names = _BY_BLOCK if loop.needs_blocks else (*family, *_ANY)
    return next((name for name in names if find(name).applies_to(space)), None)


def known_space(space: str, table: str | None) -> str:
    """The part of the space that the table's rows were drawn from; the space if that is all."""
    if table not in tables.names():
        return space
    known = source(table)
    return known.drawn_from or space if known.space == space else space

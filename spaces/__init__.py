"""Search spaces by name, and their architectures, models and tables.

A family of spaces is a sub-package that declares its members as `SPACES`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from spaces.autoformer import AUTOFORMER_BASE, AUTOFORMER_SMALL, AUTOFORMER_TINY
from spaces.base import Space
from spaces.bert import BERT
from spaces.declarations import declared, load_group
from spaces.errors import UnknownNameError
from spaces.flexibert import FLEXIBERT, FLEXIBERT_UPSTREAM, NANO_FLEXIBERT
from spaces.gpt2 import GPT2, GPT2_LM1B, GPT2_RELEASED, NANO_GPT2
from spaces.nlp_rnn import NANO_RNN, NLP_RNN, NLP_RNN_WIKITEXT2
from spaces.pit import PIT
from spaces.user_modules import find_space, is_address, load_address, named_space

__all__ = [
    "AUTOFORMER_BASE",
    "AUTOFORMER_SMALL",
    "AUTOFORMER_TINY",
    "BERT",
    "FLEXIBERT",
    "FLEXIBERT_UPSTREAM",
    "GPT2",
    "GPT2_LM1B",
    "GPT2_RELEASED",
    "NANO_FLEXIBERT",
    "NANO_GPT2",
    "NANO_RNN",
    "NLP_RNN",
    "NLP_RNN_WIKITEXT2",
    "PIT",
    "Space",
    "get",
    "load",
    "names",
]

_NOT_FAMILIES = ("own", "tables", "training")  # packages without spaces of their own
_SPACES: dict[str, Space[Any]] = {
    space.name: space
    for family in declared(
        __name__,
        __path__,
        "SPACES",
        lambda module: module.ispkg and module.name not in _NOT_FAMILIES,
    )
    for space in family
}


def names() -> list[str]:
    """Every space's name, sorted; those of installed plug-ins included."""
    _load_plugins()
    return sorted(_SPACES)


@lru_cache(maxsize=1)
def _load_plugins() -> None:
    """Know the spaces of the entry-point group `lpzero.spaces`: a space, several, or a module."""

    def take(name: str, offered: Any) -> None:
        declared = getattr(offered, "SPACES", offered)
        for space in declared if isinstance(declared, (tuple, list)) else (declared,):
            if not isinstance(space, Space):
                raise TypeError(f"{type(space).__name__} is not a space")
            if space.name in _SPACES:
                raise ValueError(f"there is a space {space.name} already")
            _SPACES[space.name] = space

    load_group("lpzero.spaces", take)


def load(name: str) -> Space[Any]:
    """The space of that name, or the user's at the address `my_module:SPACE`, whose module is run.

    Only for what the user names: text of a file belongs in `get`.
    """
    if is_address(name) and name not in _SPACES:
        load_address(name)
    return get(name)


def get(name: str) -> Space[Any]:
    """The space of that name, or at an address whose module the user named before.

    No code is run for an address: `spaces.user_modules` says which are known.
    """
    if name in _SPACES:
        return _SPACES[name]
    if is_address(name):
        return find_space(name)
    own = named_space(name)
    if own is not None:
        return own
    _load_plugins()
    if name not in _SPACES:
        raise UnknownNameError("space", name, _SPACES)
    return _SPACES[name]

"""A DEAP toolbox with the operators of a language, as a campaign registers them."""

from __future__ import annotations

from typing import Any

from deap import base

from lpzero.discover.language import Language
from lpzero.discover.variation import Variation, register_variation


def toolbox_of(language: Language) -> Any:
    """The toolbox; its `mate` and `mutate` are to be called inside `as_global_rng`."""
    toolbox = base.Toolbox()
    register_variation(toolbox, language)
    return toolbox


def variation_of(language: Language) -> Variation:
    """What lists the neighbours of a formula."""
    return register_variation(base.Toolbox(), language)

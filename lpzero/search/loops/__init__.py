"""The loops by name; each is a frozen set of constants with a `run`.

The defaults of a field are its paper's; `of_space` may choose others where the paper does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from lpzero.errors import InputError
from lpzero.search.environment import Environment
from lpzero.search.loops.etas import Etas
from lpzero.search.loops.prenas import PreNas
from lpzero.search.loops.random_search import RandomSearch
from lpzero.search.loops.regularised import Regularised
from lpzero.search.loops.trazor import TRazor
from spaces.base import Space
from spaces.errors import UnknownNameError


class Loop(Protocol):
    """A search loop with its constants."""

    name: ClassVar[str]
    # Whether it compares single blocks, and whether the proxy alone guides it.
    needs_blocks: ClassVar[bool]
    by_proxy: ClassVar[bool]
    # What is taken if no proxy is named.
    usual_proxy: ClassVar[str | None]

    @classmethod
    def of_space(cls, space: Space[Any]) -> Loop:
        """The paper's constants for such a space."""

    @property
    def last_step(self) -> int | None:
        """The number of the last step if nothing stops the loop before; None if unknown."""

    def run(self, environment: Environment) -> Any:
        """The best architecture found."""


LOOPS: dict[str, type[Loop]] = {
    loop.name: loop for loop in (Etas, TRazor, PreNas, RandomSearch, Regularised)
}


def get(name: str) -> type[Loop]:
    """The loop of that name."""
    if name not in LOOPS:
        raise UnknownNameError("loop", name, LOOPS)
    return LOOPS[name]


def make(name: str, space: Space[Any], given: Mapping[str, Any]) -> Loop:
    """The loop with its paper's constants but for those given."""
    loop: Any = get(name).of_space(space)
    known = names_of(name)
    for option in given:
        if option not in known:
            raise InputError(
                f"loop {name} has no {option.replace('_', '-')}; its constants are "
                + ", ".join(constant.replace("_", "-") for constant in known)
            )
    made: Loop = dataclasses.replace(loop, **given)
    return made


def names_of(name: str) -> list[str]:
    """The names of the loop's constants."""
    kind: Any = get(name)
    return [field.name for field in dataclasses.fields(kind)]


def constants(loop: Loop) -> dict[str, Any]:
    """The constants by name."""
    made: Any = loop
    return dataclasses.asdict(made)

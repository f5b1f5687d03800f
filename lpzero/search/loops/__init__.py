"""The search loops by name; each is a frozen dataclass of constants with a `run` method.

A loop is one module here that defines `LOOP = ItsClass`: it is registered automatically, and the
options of `lpzero search` are derived from the fields of the class. The defaults are those of the
paper; `of_space` may choose others if the paper does. A plug-in's loop has the same parts, whether
it is a `Loop` or not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lpzero import plugins
from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.options import check, options, to_json
from spaces.declarations import declared, load_group
from spaces.errors import UnknownNameError

if TYPE_CHECKING:
    from lpzero.search.environment import Environment
    from spaces.base import Space


class Loop:
    """A search loop with its constants, a frozen dataclass."""

    __slots__ = ()
    name: ClassVar[str]
    # Whether it compares single blocks, and whether it uses the proxy alone.
    needs_blocks: ClassVar[bool] = False
    by_proxy: ClassVar[bool] = False
    # The proxy used if none is named.
    usual_proxy: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def of_space(cls, space: Space[Any]) -> Loop:
        """The loop with the paper's constants for this space."""
        return cls()

    @property
    def last_step(self) -> int | None:
        """The number of the last step if the loop does not stop earlier; None if unknown."""
        return None

    def most_scored(self, is_evaluated: bool) -> int | None:
        """How many architectures it scores at most, with an evaluator or not; None if unknown."""
        return None

    def run(self, environment: Environment) -> Any:
        """The best architecture found."""
        raise NotImplementedError

    def conclude(self, environment: Environment) -> dict[str, Any]:
        """What the result says beside the best architecture, after `run` or when it was stopped."""
        return {}


def best(archs: Sequence[Any], values: FloatArray, n: int) -> list[Any]:
    """The n architectures with the largest values, largest first; ties keep their order."""
    order = np.argsort(-values, kind="stable")[:n]
    return [archs[i] for i in order]


# After `best` and `Loop`, which the loops import from here.
LOOPS: dict[str, type[Loop]] = {loop.name: loop for loop in declared(__name__, __path__, "LOOP")}


def _add(name: str, loop: Any) -> None:
    """Know a plug-in's loop; raise InputError unless it is one."""
    made: Any = loop
    missing = [part for part in _PARTS if not hasattr(loop, part)]
    if missing or not dataclasses.is_dataclass(loop) or not isinstance(loop, type):
        lacks = f"; it has no {missing[0]}" if missing else ""
        raise InputError(f"plug-in {name}: {loop!r} is not a loop, a dataclass with run{lacks}")
    if LOOPS.setdefault(made.name, made) is not made:
        raise InputError(f"plug-in {name}: there is a loop {made.name} already")


# Options of `lpzero search` are derived from the loops, so installed ones are known from the start.
_PARTS = ("name", "needs_blocks", "by_proxy", "usual_proxy", "of_space", "last_step", "run")
load_group("lpzero.loops", _add)
plugins.each("LOOPS", _add)


def get(name: str) -> type[Loop]:
    """The loop of that name."""
    if name not in LOOPS:
        raise UnknownNameError("loop", name, LOOPS)
    return LOOPS[name]


def make(name: str, space: Space[Any], given: Mapping[str, Any]) -> Loop:
    """The loop with its paper's constants, except for those given."""
    loop: Any = get(name).of_space(space)
    names = names_of(name)
    for option in given:
        if option not in names:
            raise InputError(
                f"loop {name} has no {option.replace('_', '-')}; its constants are "
                + ", ".join(constant.replace("_", "-") for constant in names)
            )
    made: Loop = dataclasses.replace(loop, **given)
    return made


def names_of(name: str) -> list[str]:
    """The names of the loop's constants."""
    return [entry.name for entry in options(get(name))]


def constants(loop: Loop) -> dict[str, Any]:
    """The constants by name."""
    return to_json(loop)

"""The primitives by name: each is declared once, probed, and from then on known everywhere.

A declaration is a decorated function over `xp`, which is numpy or torch:

    @unary(range=NON_NEGATIVE, latex=r"\\left({x}\\right)^2", blind=Blind.SIGN)
    def square(x, xp):
        return x * x
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from primitives.block_sizes import SIZES
from primitives.changes import announce_change
from primitives.errors import DeclarationError, UnknownPrimitiveError, did_you_mean
from primitives.properties import Gives, Traits
from primitives.reductions import POSITION_REDUCTIONS
from primitives.statistics import STATISTICS
from primitives.tensors import Array, namespace

Body = Callable[..., Array]
Symbolic = Callable[..., Any]  # operands, then the vocabulary of primitives.symbolic


@dataclass(frozen=True, slots=True)
class Unary:
    """A declared unary primitive. `of_scalar` is "identity", "abs", a constant, or "itself"."""

    name: str
    body: Body
    traits: Traits
    latex: str
    sympy: Symbolic | None
    of_scalar: str | float

    def __call__(self, x: Array, axis: int = 0, stretch: float = 1.0) -> Array:
        """The body on x (rows, columns); `stretch` is true over kept columns.

        An axis-wise body along the cut axis rescales its own sum; a reduction is rescaled here.
        """
        xp = namespace(x)
        if self.traits.along_axis:
            return self.body(x, xp, axis, stretch if axis == -1 else 1.0)
        result = self.body(x, xp)
        return result * stretch**self.traits.grows if self.traits.grows else result


@dataclass(frozen=True, slots=True)
class Binary:
    """A declared binary primitive; its body takes two equal shapes or a scalar and a matrix."""

    name: str
    body: Body
    latex: str
    sympy: Symbolic
    commutes: bool
    is_linear: bool
    contracts: bool


_unaries: dict[str, Unary] = {}
_binaries: dict[str, Binary] = {}
UNARIES: Mapping[str, Unary] = MappingProxyType(_unaries)
BINARIES: Mapping[str, Binary] = MappingProxyType(_binaries)
# Words with another meaning; the reduction `mean` is told from the unary one by its place.
_RESERVED = (frozenset(POSITION_REDUCTIONS) | frozenset(SIZES)) - {"mean"}


def unary(*, latex: str, sympy: Symbolic | None = None, **traits: Any) -> Callable[[Body], Unary]:
    """Declare a unary primitive: the decorated body becomes a probed, registered `Unary`."""
    known = [field.name for field in fields(Traits)]
    for name in traits:
        if name not in known:
            raise DeclarationError(f"no property is called {name!r}; {did_you_mean(name, known)}")

    def declare(body: Body) -> Unary:
        from primitives.probes import probe

        name = _fresh_name(body)
        primitive = probe(Unary(name, body, Traits(**traits), latex, sympy, "itself"))
        _unaries[name] = primitive
        announce_change()
        return primitive

    return declare


def binary(
    *,
    latex: str,
    sympy: Symbolic,
    commutes: bool = False,
    is_linear: bool = False,
    contracts: bool = False,
) -> Callable[[Body], Binary]:
    """Declare a binary primitive; `contracts` marks the matrix product."""

    def declare(body: Body) -> Binary:
        from primitives.probes import probe_binary

        name = _fresh_name(body)
        primitive = Binary(name, body, latex, sympy, commutes, is_linear, contracts)
        probe_binary(primitive)
        _binaries[name] = primitive
        announce_change()
        return primitive

    return declare


def get_unary(name: str) -> Unary:
    """The unary primitive of that name."""
    if name not in _unaries:
        raise UnknownPrimitiveError(f"no unary operation {name!r}; {did_you_mean(name, _unaries)}")
    return _unaries[name]


def get_binary(name: str) -> Binary:
    """The binary primitive of that name."""
    if name not in _binaries:
        raise UnknownPrimitiveError(
            f"no binary operation {name!r}; {did_you_mean(name, _binaries)}"
        )
    return _binaries[name]


def forget(name: str) -> None:
    """Remove a primitive: for tests and notebooks that declare and redeclare."""
    _unaries.pop(name, None)
    _binaries.pop(name, None)
    announce_change()


def _fresh_name(body: Body) -> str:
    name = body.__name__
    if name in _unaries or name in _binaries or name in STATISTICS or name in _RESERVED:
        raise DeclarationError(f"the name {name!r} is taken; rename the function")
    if not name.isidentifier() or not name.isascii():
        raise DeclarationError(f"{name!r} cannot be a primitive's name; use ASCII letters")
    return name


def reads_whole_tensor(primitive: Unary) -> bool:
    """True for reductions and normalisations, which say nothing new of a scalar."""
    return primitive.traits.gives in (Gives.MATRIX, Gives.SCALAR)

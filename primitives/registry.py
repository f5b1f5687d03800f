"""The primitives by name: each is declared once, probed, and from then on known everywhere.

A declaration is a decorated function over `xp`, which is numpy or torch:

    @unary(range=NON_NEGATIVE, latex=r"\\left({x}\\right)^2", blind=Blind.SIGN)
    def square(x, xp):
        return x * x
"""

from __future__ import annotations

import hashlib
import inspect
import sys
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

    def __call__(self, x: Array, column_scale: float = 1.0) -> Array:
        """The body on x (rows, columns), rescaled if it grows with the number of columns.

        `column_scale` is true over kept columns.
        """
        result = self.body(x, namespace(x))
        return result * column_scale**self.traits.grows if self.traits.grows else result


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
_origins: dict[str, str] = {}  # of primitives from outside this package: digests of their source
_binaries: dict[str, Binary] = {}
UNARIES: Mapping[str, Unary] = MappingProxyType(_unaries)
_PACKAGE = "primitives."
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
        _add(primitive)
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
        _add(primitive)
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
    _origins.pop(name, None)
    announce_change()


def forget_module(module: str) -> None:
    """Remove the primitives that a module of the user's declared."""
    known: list[Unary | Binary] = [*_unaries.values(), *_binaries.values()]
    for one in known:
        if one.body.__module__ == module:
            forget(one.name)


def foreign() -> dict[str, tuple[Unary | Binary, str]]:
    """The primitives that are not of this package, by name, with digests of their source."""
    known: dict[str, Unary | Binary] = {**_unaries, **_binaries}
    return {name: (known[name], digest) for name, digest in _origins.items()}


def adopt(primitive: Unary | Binary, digest: str) -> None:
    """Declare what another process declared, in place of one of the same name."""
    if _origins.get(primitive.name) != digest:
        _add(primitive, digest)


def _add(primitive: Unary | Binary, digest: str | None = None) -> None:
    name = primitive.name
    if isinstance(primitive, Unary):
        _unaries[name] = primitive
    else:
        _binaries[name] = primitive
    if digest is not None or not primitive.body.__module__.startswith(_PACKAGE):
        _origins[name] = digest or source_digest(primitive.body)
    announce_change()


def source_digest(body: Body) -> str:
    """SHA-256 of the file that declares the body, else of its source, else of its byte code."""
    for found in (sys.modules.get(body.__module__), body):
        try:
            return hashlib.sha256(inspect.getsource(found).encode()).hexdigest()  # type: ignore[arg-type]
        except (OSError, TypeError):
            continue
    code = body.__code__
    return hashlib.sha256(repr([body.__name__, code.co_code, code.co_names]).encode()).hexdigest()


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

"""The primitives by name: each is declared once, probed, and from then on known everywhere.

A declaration is a decorated function over `xp`, which is numpy or torch:

    @unary(range=NON_NEGATIVE, latex=r"\\left({x}\\right)^2", blind=Blind.SIGN)
    def square(x, xp):
        return x * x

Probes check shape, finiteness over the float32 range, that the operand is not changed, and that the
declared properties, on which pruning relies, hold on sampled tensors. Other packages offer
primitives through the entry-point group `lpzero.primitives`.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primitives.errors import DeclarationError, did_you_mean, look_up
from primitives.properties import Blind, Gives, Monotone, Symmetry, Traits, announce_change
from primitives.reductions import POSITION_REDUCTIONS
from primitives.statistics import SIZES, STATISTICS
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
_PACKAGE = f"{__package__}."
BINARIES: Mapping[str, Binary] = MappingProxyType(_binaries)
# Words with another meaning; the reduction `mean` is told from the unary one by its place.
_RESERVED = (frozenset(POSITION_REDUCTIONS) | frozenset(SIZES)) - {"mean"}


def unary(*, latex: str, sympy: Symbolic | None = None, **traits: Any) -> Callable[[Body], Unary]:
    """Declare a unary primitive: the decorated body becomes a probed, registered `Unary`."""
    names = [field.name for field in fields(Traits)]
    for name in traits:
        if name not in names:
            raise DeclarationError(f"no property is called {name!r}; {did_you_mean(name, names)}")

    def declare(body: Body) -> Unary:
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
        name = _fresh_name(body)
        primitive = Binary(name, body, latex, sympy, commutes, is_linear, contracts)
        probe_binary(primitive)
        _add(primitive)
        return primitive

    return declare


def get_unary(name: str) -> Unary:
    """The unary primitive of that name."""
    return look_up("unary operation", name, _unaries)


def get_binary(name: str) -> Binary:
    """The binary primitive of that name."""
    return look_up("binary operation", name, _binaries)


def forget(name: str) -> None:
    """Remove a primitive: for tests and notebooks that declare and redeclare."""
    _unaries.pop(name, None)
    _binaries.pop(name, None)
    _origins.pop(name, None)
    announce_change()


def forget_module(module: str) -> None:
    """Remove the primitives that a module of the user's declared."""
    declared: list[Unary | Binary] = [*_unaries.values(), *_binaries.values()]
    for primitive in declared:
        if primitive.body.__module__ == module:
            forget(primitive.name)


def foreign() -> dict[str, tuple[Unary | Binary, str]]:
    """The primitives that are not of this package, by name, with digests of their source."""
    declared: dict[str, Unary | Binary] = {**_unaries, **_binaries}
    return {name: (declared[name], digest) for name, digest in _origins.items()}


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
    for owner in (sys.modules.get(body.__module__), body):
        try:
            return hashlib.sha256(inspect.getsource(owner).encode()).hexdigest()  # type: ignore[arg-type]
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


GROUP = "lpzero.primitives"
logger = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def load_entry_points() -> None:
    """Load every plug-in, once; one that fails is named, and what it declared is removed."""
    for point in sorted(entry_points(group=GROUP), key=lambda of: (of.value, of.name)):
        before = {*UNARIES, *BINARIES}
        try:
            point.load()
        except (Exception, SystemExit) as error:  # whatever the plug-in's module does
            for name in {*UNARIES, *BINARIES} - before:
                forget(name)
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            logger.warning("plug-in %s is ignored: %s", point.name, reason[:300])


Doubles = NDArray[np.float64]
_MAGNITUDES = [0.0, 1e-45, 1e-38, 1e-19, 1e-9, 1e-4, 0.3, 1.0, 2.5, 40.0, 90.0, 1e9, 1e19, 3.4e38]
_SLACK = 1e-12  # how far rounding may take a value out of its declared range


def _samples() -> tuple[Doubles, ...]:
    rng = np.random.default_rng(0)
    extremes = np.array(_MAGNITUDES + [-m for m in _MAGNITUDES]).reshape(7, 4)
    gentle = rng.normal(size=(6, 5))
    constant = np.full((3, 4), 0.1)
    return (
        extremes,
        gentle,
        np.abs(gentle),
        -np.abs(gentle),
        np.zeros((3, 2)),
        constant,
        np.full((1, 1), -2.0),
        gentle * 1e-6,
        rng.normal(size=(4, 6)) * 10,
    )


SAMPLES = _samples()


def probe(primitive: Unary) -> Unary:
    """The primitive with its behaviour on scalars filled in, or a DeclarationError."""
    if primitive.traits.gives is Gives.NOTHING:
        return primitive
    for sample in SAMPLES:
        _check_call(primitive, sample)
    for claim, left, right in _claims(primitive):
        if not np.allclose(left, right, rtol=1e-9, atol=1e-12):
            raise DeclarationError(
                f"{primitive.name} declares {claim}, but a sampled tensor contradicts it;"
                " remove the property or fix the body"
            )
    return replace(primitive, of_scalar=_on_scalars(primitive))


def probe_binary(primitive: Binary) -> None:
    """Raise DeclarationError if the body fails on equal shapes or with a scalar."""
    left, right = SAMPLES[1][:5, :5], SAMPLES[1][1:, :5]
    for a, b in ((left, right), (left, right[:1, :1]), (left[:1, :1], right)):
        before = a.copy(), b.copy()
        result = np.asarray(primitive.body(a, b, np))
        if result.shape != (5, 5) or not np.isfinite(result).all():
            raise DeclarationError(
                f"{primitive.name} of shapes {a.shape} and {b.shape} gave shape {result.shape};"
                " expected a finite result of shape (5, 5)"
            )
        if not (np.array_equal(a, before[0]) and np.array_equal(b, before[1])):
            raise DeclarationError(f"{primitive.name} changes its operand; work on a new array")
    swapped = np.allclose(primitive.body(left, right, np), primitive.body(right, left, np))
    if primitive.commutes and not swapped:
        raise DeclarationError(f"{primitive.name} declares that it commutes, but it does not")


def _check_call(primitive: Unary, sample: Doubles) -> None:
    operand = sample.copy()
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(primitive(operand))
    except Exception as error:  # whatever a user's body raises becomes one clear error
        raise DeclarationError(
            f"{primitive.name} fails on a {sample.shape} matrix: {error!r};"
            " a body takes (x, xp) and uses functions that numpy and torch share"
        ) from error
    reduces = primitive.traits.gives is Gives.SCALAR
    if (result.size != 1) if reduces else (result.shape != sample.shape):
        raise DeclarationError(
            f"{primitive.name} gave shape {result.shape} for {sample.shape} although it declares"
            f" gives={primitive.traits.gives.name}"
        )
    if not np.isfinite(result).all():
        bad = sample.reshape(-1)[int(np.argmin(np.isfinite(result).reshape(-1)))]
        raise DeclarationError(
            f"{primitive.name} is not finite near x = {bad:g}; protect it (see primitives.guards)"
        )
    if not np.array_equal(operand, sample):
        raise DeclarationError(f"{primitive.name} changes its operand; work on a new array")
    low, high = primitive.traits.range.low, primitive.traits.range.high
    # Relative for large bounds: e^50 differs in its last digits between libraries and processors.
    too_low = low - _SLACK * max(1.0, abs(low))
    too_high = high + _SLACK * max(1.0, abs(high))
    if result.min() < too_low or result.max() > too_high:
        raise DeclarationError(
            f"{primitive.name} gave {result.min():g} to {result.max():g}, outside its declared"
            f" range [{low:g}, {high:g}]"
        )


def _claims(primitive: Unary) -> Iterator[tuple[str, Doubles, Doubles]]:
    """Each declared property as two arrays that must agree."""
    traits = primitive.traits
    for sample in SAMPLES:
        if traits.jumps_at_zero:
            sample = np.where(sample == 0, 1e-3, sample)  # symmetry is claimed except at the jump
        value = np.asarray(primitive(sample))
        if traits.symmetry is Symmetry.EVEN:
            yield "symmetry=EVEN", primitive(-sample), value
        if traits.symmetry is Symmetry.ODD:
            yield "symmetry=ODD", primitive(-sample), -value
        if traits.blind is Blind.SIGN:
            yield "blind=SIGN", primitive(np.abs(sample)), value
        if traits.blind is Blind.NEGATIVE:
            yield "blind=NEGATIVE", primitive(np.maximum(sample, 0)), value
        if traits.fixes is not None:
            inside = np.clip(sample, traits.fixes.low, traits.fixes.high)
            yield f"fixes={traits.fixes}", primitive(inside), inside
        if traits.mirrors is not None:
            inside = np.clip(sample, traits.mirrors.low, traits.mirrors.high)
            yield f"mirrors={traits.mirrors}", primitive(inside), -inside
    if traits.monotone is not None and traits.gives is Gives.SAME:
        rising = np.sort(np.abs(SAMPLES[0]).reshape(-1))[2:].reshape(-1, 1)
        steps = np.diff(np.asarray(primitive(rising)), axis=0)
        wrong = steps < 0 if traits.monotone is Monotone.INCREASING else steps > 0
        yield f"monotone={traits.monotone.name}", wrong.astype(float), np.zeros_like(steps)


def _on_scalars(primitive: Unary) -> str | float:
    """What the primitive makes of a 1 x 1 matrix: a constant, |x|, x itself, or something else."""
    xs = np.array([-3.7, -0.4, 0.9, 2.2, 11.0])
    ys = np.array([float(np.asarray(primitive(np.full((1, 1), x))).reshape(())) for x in xs])
    if np.ptp(ys) == 0:
        return float(ys[0])
    if np.array_equal(ys, xs):
        return "identity"
    return "abs" if np.array_equal(ys, np.abs(xs)) else "itself"

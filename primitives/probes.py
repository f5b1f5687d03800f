"""Test a primitive when it is declared, and reject it with a reason if a property is false.

Checked: shape, finiteness over the float32 range, no change of the operand, and that the declared
properties hold on sampled tensors. Pruning relies on these properties.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from primitives.errors import DeclarationError
from primitives.properties import Blind, Gives, Monotone, Symmetry
from primitives.registry import Binary, Unary

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

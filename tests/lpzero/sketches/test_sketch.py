"""Sketches: what is kept, the address, and bytes that are either whole or refused."""

from __future__ import annotations

import dataclasses
import io
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaces
from lpzero.errors import InputError
from lpzero.files import read_header
from lpzero.sketches import sketch as sketches
from lpzero.sketches.builder import build_sketch
from lpzero.sketches.sketch import (
    MAGIC,
    Sketch,
    SketchError,
    SketchOptions,
    address,
    decode,
    encode,
)
from lpzero.statistics.extraction import of_architecture
from primitives.statistics import STATISTICS
from primitives.tensors import cut
from spaces.flexibert import FlexiBertArch, FlexiBertSpace, Layer
from spaces.gpt2.space import Gpt2Arch
from spaces.minibatch import Corpus, Minibatch

GPT2_ADDRESS = "88b4d2db206167054839630d1561d1b216bf8a5fe63589528627288c4f0e03b4"

# Reads text, so that the text is part of the address.
SPACE = FlexiBertSpace(
    name="tiny", hidden=(32,), ffn=(64, 128), vocabulary=257, embedding=32, reads_text=True
)
ARCH = FlexiBertArch(32, (Layer("wma", 2, 64, 1), Layer("dsc5", 4, 128, 3)))


@pytest.fixture(scope="module")
def sketch() -> Sketch:
    return build_sketch(SPACE, ARCH, SketchOptions())


@pytest.mark.parametrize("limit", [1, 700, 4096, None])
def test_a_sketch_is_the_cut_of_the_whole_matrices(limit: int | None) -> None:
    whole = of_architecture(SPACE, ARCH)
    kept = build_sketch(SPACE, ARCH, SketchOptions(limit=limit))
    assert kept.n_blocks == len(whole.blocks)
    assert kept.ends == ("embedding", "head")
    pairs = [
        (pieces, kept.matrices(index, name))
        for index, block in enumerate(whole.blocks)
        for name, pieces in block.items()
    ]
    pairs += [
        (pieces, kept.matrices(end, name))
        for end, statistics in whole.ends.items()
        for name, pieces in statistics.items()
    ]
    for pieces, matrices in pairs:
        for piece, matrix in zip(pieces, matrices, strict=True):
            expected = cut(piece.values.numpy(), limit or piece.values.numel())
            assert matrix.true_shape == expected.true_shape
            assert matrix.values.dtype == np.float64
            np.testing.assert_array_equal(matrix.values, expected.values)


def test_a_sketch_states_the_sizes_of_its_space(sketch: Sketch) -> None:
    sizes = {"blocks": SPACE.block_sizes(ARCH), "ends": SPACE.end_sizes(ARCH)}
    assert sketch.sizes == sizes
    assert decode(encode(sketch)).sizes == sizes


def test_ends_come_after_all_blocks(sketch: Sketch) -> None:
    blocks = sum(
        rows * kept
        for block in range(sketch.n_blocks)
        for name in STATISTICS
        for rows, kept, _ in sketch.shapes(block, name)
    )
    first = sketch.matrices("embedding", "A")[0]
    flat = sketch.numbers[blocks : blocks + first.values.size]
    np.testing.assert_array_equal(flat, first.values.ravel())
    ends = [m.values.size for end in sketch.ends for s in "AJGW" for m in sketch.matrices(end, s)]
    assert blocks + sum(ends) == len(sketch.numbers)


def test_an_encoder_has_a_head_without_weights(sketch: Sketch) -> None:
    assert sketch.matrices("head", "W") == sketch.matrices("head", "G") == []
    assert [m.true_shape for m in sketch.matrices("head", "A")] == [(8 * 64, 32)]


def test_an_end_or_statistic_that_is_not_there_is_named(sketch: Sketch) -> None:
    with pytest.raises(SketchError, match="no statistic H at 'head'; ends have A J G W"):
        sketch.matrices("head", "H")
    with pytest.raises(SketchError, match="this sketch has the ends: none"):
        _SMALL.matrices("head", "A")
    assert _SMALL.ends == ()
    assert _SMALL.sizes is None


def test_an_end_with_other_statistics_is_refused() -> None:
    with pytest.raises(SketchError, match="holds statistics A J; A J G W are declared"):
        Sketch({**_SMALL.header, "ends": {"head": {"A": [], "J": []}}}, _SMALL.numbers)


def test_bytes_come_back_as_they_were(sketch: Sketch) -> None:
    again = decode(encode(sketch))
    assert again.header == sketch.header
    np.testing.assert_array_equal(again.numbers, sketch.numbers)
    assert encode(again) == encode(sketch)
    assert read_header(io.BytesIO(encode(sketch)), MAGIC) == sketch.header
    assert not again.numbers.flags.writeable


def test_equal_inputs_give_equal_bytes(sketch: Sketch) -> None:
    assert encode(build_sketch(SPACE, ARCH, SketchOptions())) == encode(sketch)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_changed_or_missing_byte_is_found(data: st.DataObject) -> None:
    whole = encode(_SMALL)
    where = data.draw(st.integers(0, len(whole) - 1))
    flip = data.draw(st.integers(1, 255))
    changed = whole[:where] + bytes([whole[where] ^ flip]) + whole[where + 1 :]
    for broken in (changed, whole[:where], whole + b"\0"):
        with pytest.raises(SketchError):
            decode(broken)


_SMALL = Sketch(
    {"blocks": [{name: [[2, 2, 5]] for name in STATISTICS}]}, np.arange(24, dtype=np.float32)
)


def test_the_address_depends_on_everything_that_matters() -> None:
    options = SketchOptions()
    other_arch = FlexiBertArch(32, ARCH.layers[::-1])
    found = {
        address(SPACE, ARCH, options),
        address(SPACE, other_arch, options),
        address(dataclasses.replace(SPACE, batch_shape=(4, 64)), ARCH, options),
        address(dataclasses.replace(SPACE, vocabulary=300), ARCH, options),
        address(SPACE, ARCH, SketchOptions(limit=65536)),
        address(SPACE, ARCH, SketchOptions(limit=None)),
        address(SPACE, ARCH, SketchOptions(loss="ones")),
        address(SPACE, ARCH, SketchOptions(seed=1)),
        address(SPACE, ARCH, SketchOptions(batch_seed=1)),
        address(SPACE, ARCH, SketchOptions(batch=Minibatch(4))),
        address(SPACE, ARCH, SketchOptions(batch=Minibatch(length=12))),
        address(SPACE, ARCH, SketchOptions(batch=Minibatch(corpus=Corpus("a" * 64)))),
        address(SPACE, ARCH, SketchOptions(batch=Minibatch(corpus=Corpus("b" * 64)))),
    }
    assert len(found) == 13
    moved = SketchOptions(batch=Minibatch(corpus=Corpus("a" * 64, "another/path")))
    assert address(SPACE, ARCH, moved) in found


def test_the_address_of_the_usual_options_is_that_of_earlier_versions() -> None:
    space = spaces.get("gpt2")
    arch = space.sample(random.Random(0))
    assert address(space, arch, SketchOptions()) == GPT2_ADDRESS


def test_a_new_version_of_the_space_or_text_is_a_new_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = address(SPACE, ARCH, SketchOptions())
    sketches.space_identity.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(type(SPACE), "version", 999)
        newer = address(SPACE, ARCH, SketchOptions())
    sketches.space_identity.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr("spaces.minibatch.pydoc_digest", lambda: "other text")
        other_text = address(SPACE, ARCH, SketchOptions())
    sketches.space_identity.cache_clear()
    assert len({before, newer, other_text}) == 3
    assert address(SPACE, ARCH, SketchOptions()) == before


@pytest.mark.slow
def test_an_address_needs_no_torch() -> None:
    code = (
        "import sys, random, spaces\n"
        "from lpzero.sketches.sketch import SketchOptions, address\n"
        "for name in spaces.names():\n"
        "    space = spaces.get(name)\n"
        "    address(space, space.sample(random.Random(0)), SketchOptions())\n"
        "assert 'torch' not in sys.modules\n"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


@pytest.mark.slow
def test_a_default_sketch_takes_about_a_megabyte() -> None:
    rng = random.Random(0)
    for name, most in (("flexibert", 2e6), ("nano-gpt2", 2e6)):
        space = spaces.get(name)
        assert len(encode(build_sketch(space, space.sample(rng), SketchOptions()))) < most


def test_numbers_that_are_not_finite_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    space = spaces.get("nano-gpt2")
    arch = Gpt2Arch(32, (2,), (64,), -1, 1)
    build = type(space).build

    def broken(self: Any, arch: Any, seed: int) -> Any:
        model = build(self, arch, seed)
        model.blocks[0].feed_forward.c_fc.weight.data[0, :] = float("inf")
        return model

    monkeypatch.setattr(type(space), "build", broken)
    with pytest.raises(SketchError, match="block 0 is not finite"):
        build_sketch(space, arch, SketchOptions())


def test_bad_options_are_named() -> None:
    with pytest.raises(InputError, match="at least 1"):
        SketchOptions(limit=0)
    with pytest.raises(InputError, match="unknown"):
        SketchOptions(loss="mse")

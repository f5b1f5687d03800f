"""Sketches say which vector instructions they were computed with; a mixture is told."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

import spaces
from lpzero.sketches.builder import Builder, build
from lpzero.sketches.sketch import CAPABILITY, Sketch, SketchOptions, address, encode
from lpzero.sketches.store import Store

SPACE = spaces.get("nano-gpt2")
ARCHS = [SPACE.sample(random.Random(seed)) for seed in range(3)]


def rewrite(store: Store, index: int, capability: str | None) -> None:
    """Replace the capability that a stored sketch states, or remove it."""
    name = address(SPACE, ARCHS[index], SketchOptions())
    one = store.load(SPACE.name, name)
    header = {key: value for key, value in one.header.items() if key != CAPABILITY}
    header |= {} if capability is None else {CAPABILITY: capability}
    store.write(SPACE.name, name, encode(Sketch(header, one.numbers)))


def test_capabilities_are_stored_counted_and_told_where_they_differ(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = torch.backends.cpu.get_cpu_capability()
    store = Store(tmp_path)
    report, names = build(SPACE, ARCHS[:2], Builder(store=store))
    assert report.capabilities == {here: 2}
    assert store.load(SPACE.name, names[0]).header[CAPABILITY] == here
    rewrite(store, 0, "VSX")
    rewrite(store, 1, None)  # as files of earlier versions
    assert caplog.messages == []
    report, again = build(SPACE, ARCHS, Builder(store=store))
    assert again[:2] == names, "it is not part of the address"
    assert (report.present, report.built, report.corrupt) == (2, 1, 0)
    assert report.capabilities == {"VSX": 1, here: 1}
    [message] = caplog.messages
    assert f"1 with {here}" in message
    assert "1 with VSX" in message

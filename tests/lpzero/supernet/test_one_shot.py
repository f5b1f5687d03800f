"""One-shot training: samplers, schedules, and the same weights after kill -9."""

from __future__ import annotations

import dataclasses
import json
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import spaces
from lpzero.cli.main import run
from lpzero.errors import InputError
from lpzero.runs.run import open_run
from lpzero.supernet import load_network, open_supernet, sharing_of
from lpzero.supernet.one_shot import WEIGHTS, SupernetRequest, SupernetSettings, train_supernet
from lpzero.supernet.selection import SAMPLERS, read_preferred, sampler_named, usual_preferred
from lpzero.supernet.trained import of_architecture, specialise, write
from lpzero.supernet.trainer import Trainer, rate
from spaces.errors import UnknownNameError
from spaces.training.shared_tasks import task_of
from tests import forks
from tests.spaces.test_supernet import CONVOLUTIONS

pytestmark = pytest.mark.slow

SPACE = spaces.get("nano-autoformer")
ARCHS = [SPACE.sample(random.Random(seed)) for seed in range(6)]
SHORT = SupernetSettings(steps=6, batch=8, every=2, images=40)


def request_with(settings: SupernetSettings = SHORT) -> SupernetRequest:
    task = task_of(SPACE)
    return SupernetRequest(SPACE.name, settings, task.name, tuple(ARCHS), task.digest())


def test_samplers_draw_from_what_they_are_of() -> None:
    drawn = {
        name: [make(random.Random(i)) for i in range(300)]
        for name in SAMPLERS
        for make in [sampler_named(name, SPACE, ARCHS)]
    }
    group = sharing_of(SPACE).group
    assert set(drawn["uniform"]) == set(drawn["balanced"]) == set(ARCHS)
    assert len(set(drawn["redundant"]) - set(ARCHS)) > 200
    groups = Counter(map(group, drawn["balanced"]))
    assert set(groups) == set(map(group, ARCHS)) == set(map(group, drawn["resampled"]))
    assert max(groups.values()) < 2 * min(groups.values())
    for arch in drawn["resampled"]:
        SPACE.validate(arch)
        for place, layer in enumerate(arch.layers):
            known = [
                a.layers[place] for a in ARCHS if a.hidden == arch.hidden and len(a.layers) > place
            ]
            assert layer.heads in {one.heads for one in known}
            assert layer.ratio in {one.ratio for one in known}
    assert set(drawn["resampled"]) - set(ARCHS)
    with pytest.raises(InputError, match="sampler uniform needs preferred"):
        sampler_named("uniform", SPACE, [])
    with pytest.raises(UnknownNameError, match="unknown sampler 'balance'"):
        sampler_named("balance", SPACE, ARCHS)


def test_the_rate_rises_and_falls_as_a_cosine() -> None:
    settings = SupernetSettings(steps=100, warmup=0.1, learning_rate=1.0, final_rate=0.1)
    found = [rate(settings, step) for step in range(100)]
    assert found[0] == pytest.approx(0.1)
    assert found[9] == found[10] == pytest.approx(1.0)
    assert rate(settings, 55) == pytest.approx(0.55)
    assert found[99] == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("sandwich", [0, 1])
def test_a_step_trains_only_what_the_architecture_has(sandwich: int) -> None:
    settings = SupernetSettings(steps=2, batch=8, sandwich=sandwich, weight_decay=0.0)
    trainer = Trainer(SPACE, task_of(SPACE), settings, ARCHS)
    trainer.sample = lambda rng: sharing_of(SPACE).smallest()
    before = {n: p.detach().clone() for n, p in trainer.supernet.largest.named_parameters()}
    trainer.step()
    name = "blocks.0.attention.query.weight"
    changed = trainer.supernet.largest.get_parameter(name).detach() != before[name]
    assert changed[:16, :32].any()
    assert bool(changed[16:].any()) == bool(sandwich)
    moved = trainer.supernet.largest.get_parameter("blocks.3.attention.query.weight")
    assert bool((moved.detach() != before["blocks.3.attention.query.weight"]).any()) == bool(
        sandwich
    )


def test_convolutions_train_and_are_measured_with_their_own_statistics() -> None:
    space = dataclasses.replace(CONVOLUTIONS, classes=36)
    settings = SupernetSettings(sampler="redundant", steps=3, batch=8)
    trainer = Trainer(space, task_of(space), settings, [])
    assert all(torch.isfinite(torch.tensor(trainer.step())) for _ in range(3))
    arch = space.sample(random.Random(0))
    state = trainer.norm_state(arch)
    # Eight training batches that no step takes, as documented, and not one fewer.
    batches = [trainer.task.batch(0, (1 << 40) + index, 8).inputs for index in range(8)]
    expected = trainer.supernet.recomputed(arch, batches)
    fewer = trainer.supernet.recomputed(arch, batches[:-1])
    means = [name for name in state if name.endswith("running_mean")]
    assert means
    assert all(torch.equal(state[name], expected[name]) for name in state)
    assert not any(torch.equal(state[name], fewer[name]) for name in means)


def test_a_training_continues_to_the_same_bytes(
    tmp_path: Path, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    whole = train_supernet(request_with(), tmp_path / "whole")
    calls = []

    def dies(self: Trainer) -> float:
        calls.append(self.n_done)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return step(self)

    step = Trainer.step
    monkeypatch.setattr(Trainer, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        train_supernet(request_with(), tmp_path / "parts")
    assert not (tmp_path / "parts" / WEIGHTS).exists()
    assert "not finished" in open_run(tmp_path / "parts").remarks[0]
    again = train_supernet(request_with(), tmp_path / "parts")
    assert calls == [0, 1, 2, 3, 2, 3, 4, 5]
    assert again == whole
    for name in (WEIGHTS, "journal.jsonl", "result.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    # A finished training is not run again.
    assert train_supernet(request_with(), tmp_path / "whole")["networks"] == whole["networks"]
    assert len(calls) == 8
    # But it is if its journal lacks a line, and a page says so.
    journal = tmp_path / "whole" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    for kept in (lines[:-1], []):
        journal.write_bytes(b"".join(kept))
        assert "lacks lines" in open_run(tmp_path / "whole").remarks[0]
    caplog.clear()
    assert train_supernet(request_with(), tmp_path / "whole") == whole
    assert any("lacks lines" in line.getMessage() for line in caplog.records)
    assert journal.read_bytes() == b"".join(lines)
    assert not open_run(tmp_path / "whole").remarks


def test_killed_it_ends_with_the_same_weights(tmp_path: Path) -> None:
    archs = tmp_path / "preferred.json"
    archs.write_text(json.dumps([SPACE.to_json(arch) for arch in ARCHS]))
    words = ["train", "--supernet", SPACE.name, "--steps", "18", "--every", "3", "--batch", "4"]
    words += ["--images", "8", "--select", str(archs), "--quiet"]
    assert run([*words, "--out", str(tmp_path / "whole")]) == 0
    journal = tmp_path / "killed" / "journal.jsonl"
    running = forks.start(run, [*words, "--out", str(tmp_path / "killed")])
    while not (journal.exists() and len(journal.read_bytes().splitlines()) >= 2):
        assert running.is_alive()
        time.sleep(0.005)
    running.kill()
    running.join()
    assert running.exitcode == -signal.SIGKILL
    assert run([*words, "--out", str(tmp_path / "killed")]) == 0
    for name in (WEIGHTS, "journal.jsonl", "result.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_network_is_taken_out_with_its_weights(tmp_path: Path) -> None:
    train_supernet(request_with(), tmp_path / "run")
    trained = open_supernet(tmp_path / "run")
    limit = sorted(map(SPACE.parameters, ARCHS))[2]
    found = specialise(trained, lambda arch: SPACE.parameters(arch) <= limit)
    assert found.arch in ARCHS
    assert SPACE.parameters(found.arch) <= limit
    assert found.n_candidates == 3
    write(found, tmp_path / "net.safetensors")
    model = load_network(tmp_path / "net.safetensors")
    images = SPACE.batch(0)
    with torch.no_grad():
        inside = trained.supernet(images, found.arch)
        torch.testing.assert_close(model(images), inside, rtol=1e-5, atol=1e-5)
    # Trained alone for no step, a network is the slice that it started from.
    alone = of_architecture(trained, found.arch).model
    assert all(
        torch.equal(a, b) for a, b in zip(alone.parameters(), model.parameters(), strict=True)
    )
    with pytest.raises(InputError, match="no architecture is within the bounds"):
        specialise(trained, lambda arch: False)


def test_changed_weights_are_not_opened(tmp_path: Path) -> None:
    train_supernet(request_with(), tmp_path / "run")
    path = tmp_path / "run" / WEIGHTS
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="is missing or was changed"):
        open_supernet(tmp_path / "run")
    with pytest.raises(InputError, match="is not a directory"):
        open_supernet(tmp_path / "none")


def test_preferred_architectures_are_read_from_any_of_the_forms(tmp_path: Path) -> None:
    fields = [SPACE.to_json(arch) for arch in ARCHS]
    path = tmp_path / "preferred.json"
    entries = [{"arch": arch, "score": 1.0} for arch in fields]
    for content in (fields, {"preferred": entries}, {"trace": entries, "best": {}}):
        path.write_text(json.dumps(content))
        assert read_preferred(path, SPACE) == ARCHS
    for content, message in (
        ({}, "has no list of architectures"),
        ([{"hidden": 3, "layers": []}], "entry 0: hidden = 3 is outside"),
        ([3], "entry 0: architecture: got 3"),
    ):
        path.write_text(json.dumps(content))
        with pytest.raises(InputError, match=message):
            read_preferred(path, SPACE)
    path.write_text("{")
    with pytest.raises(InputError, match="broken or truncated JSON"):
        read_preferred(path, SPACE)
    sizes = [SPACE.parameters(arch) for arch in usual_preferred(SPACE)]
    assert len(sizes) >= 10
    assert sizes == sorted(sizes)

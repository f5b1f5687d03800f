"""Figure 6 of the training-free paper, on a made-up file with the released one's mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.training_free.figure6 import by_steps, mixed_up, released, taken_apart
from lpzero.errors import InputError

COPIED = {0: 50.0, 50: 71.0, 150: 68.0, 500: 71.0}  # 50 has what belongs to 500
ADDED = {0: 51.0, 50: 135.0, 150: 65.0, 500: 72.0}  # 63 and 72 in one


def test_scores_of_ten_times_the_steps_are_noticed_and_taken_apart() -> None:
    assert mixed_up([COPIED, ADDED]) == [50]
    assert mixed_up([COPIED, {**ADDED, 50: 63.0}]) == []
    assert taken_apart([COPIED, ADDED], 50) == [63.0]


def test_the_mixed_up_steps_have_a_mean_but_no_ranks() -> None:
    rows = by_steps([COPIED, ADDED], [2.0, 1.0])
    assert [row["steps"] for row in rows] == ["0", "50", "150", "500"]
    assert [row["mean"] for row in rows] == [50.5, 103.0, 66.5, 71.5]
    ranked = [row for row in rows if "rho_with_last" in row]
    assert [row["steps"] for row in ranked] == ["0", "150", "500"]
    assert [row["rho_with_last"] for row in ranked] == pytest.approx([1, -1, 1])
    assert [row["rho_with_benchmark"] for row in ranked] == pytest.approx([-1, 1, -1])


def test_architectures_without_scores_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "ablation.json"
    records = [{"id": 3, "scores": {"50": {"glue": 70.5, "rte": 1.0}}}, {"id": 4, "scores": {}}]
    file.write_text(json.dumps(records))
    assert released(file) == {3: {50: 70.5}}
    with pytest.raises(InputError, match=r"there is no .*aaronserianni"):
        released(tmp_path / "other.json")

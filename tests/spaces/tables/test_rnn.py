"""The tables of recurrent cells: small archives written here, and the released files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaces
from spaces.errors import TableError
from spaces.tables import load, rnn

PLAIN = {
    "f": {"op": "linear", "input": ["x", "h_prev_0"]},
    "h_new_0": {"op": "activation_tanh", "input": ["f"]},
}
SIGMOID = PLAIN | {"h_new_0": {"op": "activation_sigm", "input": ["f"]}}
DATA = os.environ.get("LPZERO_DATA")
released = pytest.mark.skipif(
    not DATA or not Path(DATA, "rnn", rnn.LOGS).is_file(), reason="LPZERO_DATA has no rnn folder"
)


def log(recipe: Any, losses: list[float], status: str = "OK") -> dict[str, Any]:
    text = recipe if isinstance(recipe, str) else json.dumps(recipe)
    return {"recepie": text, "val_losses": losses, "status": status, "num_params": 1}


def archive(root: Path, logs: dict[int, dict[str, Any]], name: str = rnn.LOGS) -> Path:
    path = root / "rnn" / name
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as made:
        for model, record in logs.items():
            made.writestr(f"log_stats_model_{model}_2020-01-01_00-00-00_1.json", json.dumps(record))
    return path


def results(root: Path, losses: dict[int, float]) -> None:
    lines = ["\ufefflog name,loss, Layer 1 Hidden Covariance"]
    lines += [f"log_stats_model_{m}_2020-01-01_00-00-00_1.json,{x},-{m}" for m, x in losses.items()]
    (root / "rnn" / rnn.RESULTS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_equal_recipes_are_one_row_and_failures_are_counted(tmp_path: Path) -> None:
    nan = float("nan")
    archive(
        tmp_path,
        {
            1: log(PLAIN, [5.0, 4.0, 4.5]),
            2: log(dict(reversed(PLAIN.items())), [4.2, nan]),
            3: log(SIGMOID, [6.0]),
            4: log(SIGMOID, [nan], "loss is nan!"),
        },
    )
    table = load("rnn-wikitext2", tmp_path)
    assert table.ids == ("1", "3")
    np.testing.assert_allclose(table.targets, [-4.1, -6.0])
    assert table.extra["runs"].tolist() == [2.0, 1.0]
    assert table.failed == 1
    assert table.space.name == "nlp-rnn-wikitext2"


def test_losses_are_joined_with_recipes_on_the_models_number(tmp_path: Path) -> None:
    archive(tmp_path, {1: log(PLAIN, [4.0]), 3: log(SIGMOID, [5.0])})
    results(tmp_path, {3: 6.5, 1: 5.5, 9: 4.5})
    table = load("rnn-ptb", tmp_path)
    assert table.ids == ("3", "1")
    assert table.targets.tolist() == [-6.5, -5.5]
    assert table.extra["Layer 1 Hidden Covariance"].tolist() == [-3.0, -1.0]
    # The logs of all models, where a user has them, bring the other recipes.
    archive(tmp_path, {9: log(PLAIN, [4.0])}, rnn.ALL_LOGS)
    assert load("rnn-ptb", tmp_path).ids == ("3", "1", "9")


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (json.dumps(PLAIN).replace("h_prev_0", "h_new_0"), "cycle"),
        (json.dumps(PLAIN).replace("linear", "conv"), "op = 'conv' is unknown"),
        (json.dumps(PLAIN).replace(', "h_prev_0"', ""), "linear has 1 inputs"),
        (json.dumps({f"n{i}": PLAIN["f"] for i in range(10_000)}), "10,000 nodes"),
        ("[" * 1000 + "]" * 1000, "recipe: got a list|nested too deep"),
        ("[" * 200_000, "nested too deep|broken JSON"),
        ('{"f": ' * 1000 + "1" + "}" * 1000, "got an object|nested too deep|op, input"),
        ("{", "broken JSON"),
    ],
)
def test_a_broken_recipe_in_a_log_names_the_model(
    recipe: str, message: str, tmp_path: Path
) -> None:
    archive(tmp_path, {7: log(recipe, [4.0])})
    with pytest.raises(TableError, match=f"model.7.*({message})") as caught:
        load("rnn-wikitext2", tmp_path)
    assert len(str(caught.value)) < 500


@pytest.mark.slow
def test_a_broken_recipe_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    archive(tmp_path, {7: log("[" * 1000 + "]" * 1000, [4.0])})
    command = [sys.executable, "-m", "lpzero.cli.main", "counters", "rnn-wikitext2", "--data"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_files_that_are_not_archives_or_numbers_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, {1: log(PLAIN, [4.0])})
    results(tmp_path, {1: 5.5})
    csv = tmp_path / "rnn" / rnn.RESULTS
    csv.write_text(csv.read_text(encoding="utf-8").replace("5.5", "nan"), encoding="utf-8")
    with pytest.raises(TableError, match="line 2: loss = nan, expected a finite number"):
        load("rnn-ptb", tmp_path)
    path.write_bytes(b"PK nothing")
    with pytest.raises(TableError, match="not a readable archive"):
        load("rnn-wikitext2", tmp_path)


@released
def test_the_released_logs_have_the_sizes_that_are_counted_here() -> None:
    assert DATA
    logs = list(rnn.read_logs(Path(DATA, "rnn", rnn.LOGS)))
    assert len(logs) == 345
    assert sum(not one.is_sound for one in logs) == 4
    wide, narrow = spaces.get("nlp-rnn-wikitext2"), spaces.get("nlp-rnn")
    cells = [wide.from_json(json.loads(one.recipe)) for one in logs]
    assert len(set(cells)) == 291
    for cell, one in zip(cells, logs, strict=True):
        assert wide.parameters(cell) == one.n_parameters
    counted = rnn.read_parameters(Path(DATA, "rnn", rnn.PARAMETERS))
    assert len(counted) == 12_341
    joined = [(c, one.model) for c, one in zip(cells, logs, strict=True) if one.model in counted]
    assert len(joined) == 313
    assert all(narrow.parameters(cell) == counted[model] for cell, model in joined)


@pytest.mark.slow
@released
def test_the_released_tables() -> None:
    wikitext2, ptb = load("rnn-wikitext2"), load("rnn-ptb")
    assert (len(wikitext2), wikitext2.failed) == (289, 4)
    assert (len(ptb), len(set(ptb.archs))) == (275, 229)
    assert wikitext2.ceiling is not None
    assert wikitext2.ceiling > 0.99
    assert all(arch is not None for arch in ptb.archs)

"""`lpzero.optuna` with the real package: starts, distributions, a study as a table."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from torch import nn

import lpzero
from lpzero.errors import InputError

optuna = pytest.importorskip("optuna", reason="optuna is not installed: lpzero[optuna]")


class Net(nn.Module):
    def __init__(self, arch: Any) -> None:
        super().__init__()
        width = arch["width"]
        self.embedding = nn.Embedding(16, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(arch["layers"]))

    def forward(self, x: Any) -> Any:
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return x


CHOICES: dict[str, Any] = {
    "layers": [1, 2, 3],
    "width": [8, 16, 64],
    "act": ["relu", "gelu"],
    "per_layer": {"heads": [1, 2]},
}
SPACE = lpzero.space(CHOICES, build=Net, batch=(2, 4), vocabulary=16, name="with-optuna")


def height(arch: Any) -> float:
    return float(-abs(arch["layers"] - 2) - abs(arch["width"] - 16) / 8 + arch["heads"].count(2))


def test_distributions_have_every_choice_and_order_where_numbers_have_it() -> None:
    made = lpzero.optuna.to_distributions(SPACE)
    assert made["layers"] == optuna.distributions.IntDistribution(1, 3)
    assert made["width"].choices == (8, 16, 64)  # type: ignore[attr-defined]
    assert made["act"].choices == ("relu", "gelu")  # type: ignore[attr-defined]
    assert set(made) == {"layers", "width", "act", "heads_0", "heads_1", "heads_2"}


def test_parameters_and_architectures_are_each_others_inverse() -> None:
    params = {"layers": 2, "width": 64, "act": "gelu", "heads_0": 2, "heads_1": 1, "heads_2": 2}
    arch = lpzero.optuna.architecture(SPACE, params)
    assert SPACE.to_json(arch) == {"layers": 2, "width": 64, "act": "gelu", "heads": [2, 1]}
    back = lpzero.optuna.parameters(SPACE, arch)
    assert back == params | {"heads_2": 1}
    assert lpzero.optuna.architecture(SPACE, back) == arch


def test_a_study_begins_with_the_starts_and_becomes_a_table() -> None:
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.TPESampler(seed=0))
    begun = lpzero.optuna.starts(SPACE, 4)
    assert begun == lpzero.optuna.starts(SPACE, 4)
    assert begun != lpzero.optuna.starts(SPACE, 4, seed=1)
    assert (begun[0]["layers"], begun[0]["width"]) == (3, 64)  # the largest by counting
    for params in begun:
        study.enqueue_trial(params)
    distributions = lpzero.optuna.to_distributions(SPACE)
    for _ in range(8):
        trial = study.ask(distributions)
        arch = lpzero.optuna.architecture(SPACE, trial.params)
        study.tell(trial, -height(arch))
    assert [trial.params for trial in study.trials[:4]] == begun
    study.tell(study.ask(distributions), state=optuna.trial.TrialState.FAIL)
    table = lpzero.optuna.from_study(study, SPACE)
    assert len(table.targets) == 8  # the failed one has none
    assert table.targets.tolist() == [height(arch) for arch in table.archs]  # type: ignore[union-attr]
    columns = lpzero.optuna.from_study(study)
    assert columns.targets.tolist() == table.targets.tolist()
    assert columns.space is None


def test_the_code_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2] / "docs" / "from-optuna.md"
    [code] = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    module = ModuleType("my_space")
    vars(module).update(SPACE=SPACE, train=lambda arch, seed: height(arch))
    monkeypatch.setitem(sys.modules, "my_space", module)
    fitted: list[Any] = []
    monkeypatch.setattr(lpzero.Discovery, "fit", lambda self, table: fitted.append(table))
    names: dict[str, Any] = {}
    exec(compile(code, str(page), "exec"), names)  # noqa: S102
    assert len(names["study"].trials) == 30
    assert len(names["table"]) == 30
    assert fitted == [names["table"]]


def test_what_cannot_be_a_study_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="not of plain choices"):
        lpzero.optuna.to_distributions("nano-rnn")
    with pytest.raises(InputError, match="no trial of the study is complete"):
        lpzero.optuna.from_study(optuna.create_study())
    several = optuna.create_study(directions=["minimize", "maximize"])
    with pytest.raises(InputError, match="several objectives"):
        lpzero.optuna.from_study(several)

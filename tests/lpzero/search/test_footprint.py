"""Energy and CO2 from stated watts, by hand."""

from __future__ import annotations

import json

import pytest

from lpzero.cli.main import run as command
from lpzero.errors import InputError
from lpzero.search.cost import Footprint


def test_an_hour_at_a_kilowatt() -> None:
    cost = Footprint(3600, 1000)
    assert cost.watt_hours == pytest.approx(1580)
    assert cost.pounds == pytest.approx(1.58 * 0.954)
    assert cost.grams == pytest.approx(1.50732 * 453.59237)
    assert "1000 W (times 1.58" in str(cost)


@pytest.mark.parametrize("watts", [0.0, -5.0, float("nan")])
def test_watts_are_above_zero(watts: float) -> None:
    with pytest.raises(InputError, match="expected watts above 0"):
        Footprint(1.0, watts)


def test_a_search_states_its_footprint(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["search", "nano-gpt2", "--proxy", "depth", "--evaluator", "proxy", "--samples", "5",
             "--mutants", "3", "--iterations", "1", "--quiet", "--watts", "100"]  # fmt: skip
    assert command([*words, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    cost = Footprint(found["seconds"], 100)
    assert found["footprint"]["co2_grams"] == pytest.approx(cost.grams)
    assert command(words) == 0
    assert "g of CO2, if the machine draws 100 W" in capsys.readouterr().out
    assert command([*words, "--compare"]) == 2
    assert "--watts is for one search" in capsys.readouterr().err

"""The engine's own proxies: frozen, registered, and marked in sample where they were chosen."""

from __future__ import annotations

import pytest

import spaces
from lpzero.proxies import get
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.lookup import members_of
from lpzero.proxies.ranking import chosen_on
from primitives.canonical import canonical
from spaces.tables import load

NAMES = {
    "engine-encoder": {"flexibert"},
    "engine-decoder": {"gpt2-wt103"},
    "engine-universal": {"flexibert", "gpt2-wt103"},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_formula_and_an_ensemble_that_it_leads(name: str) -> None:
    formula, together = get(name), get(f"{name}-20")
    assert isinstance(formula, FormulaProxy)
    members = members_of(together)
    assert members is not None
    assert members[0].formula == formula.formula
    assert len({str(canonical(member.formula)) for member in members}) == 20
    for proxy in (formula, together):
        assert chosen_on(proxy, load("nano-gpt2")) == dict.fromkeys(NAMES[name])


def test_a_formula_that_reads_the_head_does_not_apply_to_encoders() -> None:
    assert "head(" in get("engine-decoder").definition
    assert not get("engine-decoder").applies_to(spaces.get("nano-flexibert"))
    assert not get("engine-decoder-20").applies_to(spaces.get("nano-flexibert"))
    assert get("engine-decoder").applies_to(spaces.get("nano-gpt2"))
    for name in ("engine-encoder", "engine-universal"):
        assert get(name).applies_to(spaces.get("nano-flexibert"))
        assert get(name).applies_to(spaces.get("nano-gpt2"))

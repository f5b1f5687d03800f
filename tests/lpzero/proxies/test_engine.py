"""The engine's own proxies: frozen, registered, and marked in sample where they were chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

import spaces
from lpzero.judgement.correlation import spearman
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.lookup import members_of
from lpzero.proxies.ranking import chosen_on
from primitives.canonical import canonical
from spaces.tables import load

DECODERS = {"gpt2-wt103", "openlm", "transformer-xl", "gpt2-lm1b-corei7-pareto"}
NAMES = {
    "engine-encoder": {"flexibert"},
    "engine-decoder": DECODERS,
    "engine-universal": DECODERS | {"flexibert", "nano-gpt2", "nano-flexibert"},
    "engine-decoder@0.2": {"gpt2-wt103"},
    "engine-universal@0.2": {"flexibert", "gpt2-wt103"},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_formula_and_an_ensemble_that_it_leads(name: str) -> None:
    formula, together = (
        get(name),
        get("-20@".join(name.split("@")) if "@" in name else f"{name}-20"),
    )
    assert isinstance(formula, FormulaProxy)
    members = members_of(together)
    assert members is not None
    assert members[0].formula == formula.formula
    assert len({str(canonical(member.formula)) for member in members}) == 20
    for proxy in (formula, together):
        assert chosen_on(proxy, load("nano-gpt2")) == dict.fromkeys(NAMES[name])


@pytest.mark.parametrize(("table", "rho"), [("gpt2-wt103", 0.986), ("openlm", 0.9896)])
def test_the_decoders_proxy_has_the_rho_it_was_chosen_with(
    table: str, rho: float, real_data: Path
) -> None:
    loaded = load(table, real_data)
    scores = get("engine-decoder").score(loaded.space, loaded.archs, Measurements(Context()))
    assert round(spearman(scores, loaded.targets), 4) == rho


def test_a_formula_that_reads_the_head_does_not_apply_to_encoders() -> None:
    assert "head(" in get("engine-decoder@0.2").definition
    assert not get("engine-decoder@0.2").applies_to(spaces.get("nano-flexibert"))
    assert not get("engine-decoder-20@0.2").applies_to(spaces.get("nano-flexibert"))
    assert get("engine-decoder@0.2").applies_to(spaces.get("nano-gpt2"))
    for name in ("engine-encoder", "engine-decoder", "engine-universal"):
        assert get(name).applies_to(spaces.get("nano-flexibert"))
        assert get(name).applies_to(spaces.get("nano-gpt2"))

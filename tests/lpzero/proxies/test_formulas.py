"""Formulas beyond one term as proxies: columns, sizes, ends, single networks, ensembles."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaces
from lpzero.cli.main import run
from lpzero.errors import InputError
from lpzero.export import Selection, export, from_file
from lpzero.proxies import (
    Combined,
    Context,
    FormulaProxy,
    Measurements,
    Needs,
    Proxy,
    find,
    get,
    register,
)
from lpzero.proxies.lookup import ensemble, members_of, named_formulas
from lpzero.proxies.registry import restore, snapshot
from lpzero.report.formulas import shown
from lpzero.search.ledger import Ledger
from lpzero.search.scorer import Scorer
from lpzero.sketches.sketch import SketchOptions
from primitives.parser import parse
from spaces.minibatch import Minibatch
from tests.lpzero.export.network_tensors import exported

pytestmark = pytest.mark.slow

SPACE = spaces.get("nano-gpt2")
ARCHS = [SPACE.sample(random.Random(seed)) for seed in (22, 2, 36, 32, 4)]  # small ones
ENDS = "mul(embedding(fro(W)), inverse(sqrt(inner(l1(G)))), depth)"
SIZES = "mul(sum(sqrt(params)), inverse(last(width)), depth)"


@pytest.fixture
def measurements(tmp_path: Path) -> Measurements:
    return Measurements(Context(folder=tmp_path, batch=Minibatch(4, 16)))


def formula(text: str, name: str = "drawn", **options: Any) -> FormulaProxy:
    return FormulaProxy(name, parse(text), **options)


def test_a_name_goes_before_a_column() -> None:
    assert find("depth") is get("depth")
    assert isinstance(find("mul(depth, sum(fro(W)))"), FormulaProxy)
    with pytest.raises(KeyError, match="unknown proxy 'dept'; did you mean 'depth'"):
        find("dept")


def test_what_a_formula_needs_follows_from_what_it_reads() -> None:
    assert formula("sum(params)").needs == Needs.NOTHING
    assert formula(SIZES).needs == Needs.NOTHING
    assert formula("inner(fro(W))").needs == Needs.FORWARD | Needs.TAPS
    assert Needs.GRADIENT in formula("last(fro(J))").needs
    assert Needs.GRADIENT in formula("mul(snip, sum(params))").needs
    assert Needs.SECOND_ORDER in formula("add(grasp, sum(fro(W)))").needs
    assert formula("-mul(depth, sum(fro(W)))").direction == -1


@pytest.mark.parametrize(
    ("text", "has_blocks"),
    [("sum(fro(W))", True), ("-mean(mul(params, W))", True), ("inner(W)", False), (SIZES, False)],
)
def test_sums_and_means_alone_have_values_of_blocks(
    text: str, has_blocks: bool, measurements: Measurements
) -> None:
    proxy = formula(text)
    assert proxy.has_blocks is has_blocks
    if not has_blocks:
        with pytest.raises(InputError, match="no values of single blocks"):
            proxy.block_scores(SPACE, ARCHS, measurements)
        return
    by_block = proxy.block_scores(SPACE, ARCHS, measurements)
    reduce = np.mean if "mean" in text else np.sum
    expected = proxy.score(SPACE, ARCHS, measurements)
    assert [reduce(values) for values in by_block] == pytest.approx(list(expected))


def test_an_unknown_column_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="column 'dept', and no counter or proxy is called so"):
        formula("mul(dept, sum(fro(W)))").needs  # noqa: B018
    assert run(["rank", "nano-gpt2", "--proxy", "mul(dept, sum(fro(W)))"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_columns_are_the_scores_of_the_proxies_they_name(measurements: Measurements) -> None:
    score = {
        name: find(name).score(SPACE, ARCHS, measurements)
        for name in ("snip", "depth", "sum(fro(W))", "mul(snip, square(depth), sum(fro(W)))")
    }
    product, *factors = score.popitem()[1], *score.values()
    assert product == pytest.approx(factors[0] * factors[1] ** 2 * factors[2])


def test_sizes_and_columns_need_no_network(
    measurements: Measurements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(SPACE), "build", None)
    found = formula(SIZES).score(SPACE, ARCHS, measurements)
    blocks = [SPACE.block_sizes(arch) for arch in ARCHS]
    expected = [
        sum(of["params"] ** 0.5 for of in own) / own[-1]["width"] * len(own) for own in blocks
    ]
    assert found == pytest.approx(expected)
    assert formula(SIZES).on_networks().score(SPACE, ARCHS, measurements) == pytest.approx(expected)


def test_an_end_without_parameters_has_no_score(measurements: Measurements) -> None:
    space = spaces.get("nano-flexibert")
    archs = [space.sample(random.Random(0))]
    for text in ("head(params)", "mul(depth, head(fro(W)))"):
        assert np.isnan(formula(text).score(space, archs, measurements)).all()
        assert np.isnan(formula(text).on_networks().score(space, archs, measurements)).all()


@pytest.mark.parametrize(
    "text",
    [ENDS, "inner(mul(params, l1(G)))", "sub(last(fro(A)), head(fro(J)))", "-sum(mul(width, W))"],
)
def test_networks_as_they_are_run_score_as_their_sketches(
    text: str, measurements: Measurements
) -> None:
    proxy = formula(text)
    expected = proxy.score(SPACE, ARCHS, measurements)
    assert np.isfinite(expected).all()
    found = proxy.on_networks().score(SPACE, ARCHS, measurements)
    assert found == pytest.approx(list(expected), rel=1e-5)


@pytest.mark.parametrize("own", [{"seed": 3}, {"batch_seed": 1}, {"loss": "ones"}])
def test_a_formula_with_seeds_or_a_loss_of_its_own_is_scored_on_sketches_alone(
    own: dict[str, Any],
) -> None:
    proxy = FormulaProxy("own", parse("sum(fro(W))"), options=SketchOptions(**own))
    assert proxy.needs_sketches
    with pytest.raises(InputError, match="own was exported with its own loss or seeds"):
        proxy.on_networks()
    cut = FormulaProxy("cut", parse("sum(fro(W))"), options=SketchOptions(limit=7))
    assert not cut.needs_sketches
    assert cut.on_networks().measures


def test_an_architecture_without_a_column_has_no_score_and_the_others_have(
    measurements: Measurements,
) -> None:
    class Half(Proxy):
        name = "half"

        def score(self, space: Any, archs: Any, measurements: Any) -> Any:
            return np.array([np.nan if i % 2 else 2.0 for i in range(len(archs))])

        def applies_to(self, space: Any) -> bool:
            return bool(space.name == "nano-gpt2")

    before = snapshot()
    try:
        register(Half())
        proxy = formula("mul(half, sum(fro(W)))")
        for way in (proxy, proxy.on_networks()):
            found = way.score(SPACE, ARCHS, measurements)
            assert np.isnan(found).tolist() == [False, True] * 2 + [False]
        assert proxy.applies_to(SPACE)
        assert not proxy.applies_to(spaces.get("nano-flexibert"))
        register(formula("mul(depth, turned)", "around"))
        register(formula("mul(depth, around)", "turned"))
        with pytest.raises(InputError, match="column of itself"):
            get("around").needs  # noqa: B018
    finally:
        restore(before)


TEXTS = (SIZES, "sum(fro(W))", ENDS)


def members() -> list[FormulaProxy]:
    return [formula(text, f"member-{place}") for place, text in enumerate(TEXTS)]


def test_an_ensemble_is_the_mean_of_its_members_ranks(measurements: Measurements) -> None:
    found = ensemble("three", members()).score(SPACE, ARCHS, measurements)
    scores = [member.score(SPACE, ARCHS, measurements) for member in members()]
    ranks = [
        [1 + sum(b < a for b in s) + (sum(b == a for b in s) - 1) / 2 for a in s] for s in scores
    ]
    assert found == pytest.approx(np.mean(ranks, axis=0))
    assert members_of(ensemble("three", members())) == tuple(members())
    assert members_of(find("rank-mean(snip, depth)")) is None
    with pytest.raises(InputError, match="no members"):
        ensemble("none", [])


def test_an_ensemble_is_exported_and_found_again(
    tmp_path: Path, measurements: Measurements, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ensemble.json"
    entries = [exported(text) for text in TEXTS]
    path.write_text(export(Selection(entries, ensemble="three"), "json"))
    assert from_file(path) == entries
    found = find(str(path))
    assert isinstance(found, Combined)
    assert (found.name, found.how, len(found.parts)) == ("three", "rank-mean", 3)
    expected = ensemble("three", members()).score(SPACE, ARCHS, measurements)
    assert found.score(SPACE, ARCHS, measurements) == pytest.approx(expected)
    scorer = Scorer(found, SPACE, measurements, Ledger(SPACE))
    assert scorer.scores(ARCHS) == pytest.approx(expected)

    assert run(["export", str(path), "--to", "json"]) == 0
    assert capsys.readouterr().out == path.read_text()
    assert run(["export", str(path), "--to", "latex", "--name", "a & b"]) == 0
    latex = capsys.readouterr().out
    assert r"Members of the ensemble a \& b, whose score is the mean of their ranks" in latex
    assert latex.count(r"{\lpzeroeither{") == 3
    assert run(["export", str(path), "--to", "csv"]) == 0
    assert capsys.readouterr().out.count("\n") == 4
    assert run(["export", str(path), "--to", "python"]) == 2
    assert "contains one formula, but 3 were chosen" in capsys.readouterr().err
    assert run(["export", str(path), "--to", "json", "--formula", "2"]) == 0
    assert json.loads(capsys.readouterr().out)["formula"] == "sum(fro(W))"


def test_a_registered_ensemble_is_exported_by_its_name() -> None:
    before = snapshot()
    try:
        register(ensemble("three", members()))
        found = named_formulas("three")
        assert found.ensemble == "three"
        assert [str(one.formula) for one in found.entries] == list(TEXTS)
    finally:
        restore(before)
    with pytest.raises(InputError, match="snip is not a formula"):
        named_formulas("snip")


def changed(**fields: Any) -> str:
    """The file of an ensemble with other fields, and the digest that belongs to them."""
    from lpzero.export.json_form import _digest

    good = json.loads(export(Selection([exported(t) for t in TEXTS], ensemble="three"), "json"))
    value = {k: v for k, v in {**good, **fields}.items() if k != "sha256"}
    return json.dumps({**value, "sha256": _digest(value)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(combine="sum"), "use one of rank-mean"),
        (changed(members=[]), "contains 0 formulas"),
        (changed(members=["sum(W)"]), "formula 1 is not an object"),
        (changed(members=[{"format": "lpzero-formula", "schema": 1}]), "no 'sha256'"),
        (changed(weights=[1, 2, 3]), "unknown field 'weights'"),
        (changed(schema=2), "schema 2"),
        (changed().replace('"three"', '"four"'), "digest does not match"),
    ],
)
def test_a_bad_ensemble_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=message):
        find(str(tmp_path / "x.json"))


def test_a_report_shows_a_score_as_mathematics() -> None:
    text = str(shown(ENDS))
    assert "<mfrac>" in text
    assert "<code>mul(embedding(fro(W))" in text
    assert "<math" not in str(shown("mul(unfinished"))

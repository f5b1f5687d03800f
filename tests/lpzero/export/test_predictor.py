"""Predictors in files: the same scores again without the table, and hostile ones in one line."""

from __future__ import annotations

import hashlib
import json
import random
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaces
from lpzero.cli.main import run
from lpzero.errors import InputError
from lpzero.export import Selection, export, from_file, select
from lpzero.export.record import ExportedPredictor
from lpzero.proxies import find
from lpzero.proxies.predictor import PredictorProxy
from lpzero.scores.features import describe
from lpzero.scores.predictor import Predictor
from primitives.parser import parse
from tests.lpzero.export.network_tensors import exported
from tests.lpzero.export.test_hostile import check_junk, check_refused, places

FORMULA, TERMS = "sum(mul(abs(G), abs(W)))", ("sum(params)", "sum(fro(W))", "depth")


@lru_cache(maxsize=1)
def made() -> Predictor:
    space, rng = spaces.get("nano-gpt2"), random.Random(0)
    archs = [space.sample(rng) for _ in range(15)]
    drawn = np.random.default_rng(0)
    terms = drawn.normal(size=(len(archs), len(TERMS)))
    rows = [
        {**features, **dict(zip(TERMS, of_terms, strict=True))}
        for features, of_terms in zip(describe(space, archs), terms.tolist(), strict=True)
    ]
    scores, targets = np.exp(drawn.normal(size=len(archs))), drawn.normal(size=len(archs))
    return Predictor.of(parse(FORMULA), [parse(term) for term in TERMS], rows, scores, targets, 1.2)


def selection(**options: Any) -> Selection:
    one = exported(FORMULA, **options)
    found = ExportedPredictor(made(), "nano-gpt2", exported(FORMULA).options, 2)
    return Selection([one], predictor=lambda: found)


def text() -> str:
    return export(selection(), "json", predictor=True)


def changed(**fields: Any) -> str:
    """The file with other fields, and the digest that belongs to them."""
    value = {k: v for k, v in {**json.loads(text()), **fields}.items() if k != "sha256"}
    value = {k: v for k, v in value.items() if v is not ...}
    plain = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return json.dumps({**value, "sha256": hashlib.sha256(plain.encode()).hexdigest()})


def test_a_file_gives_the_same_predictor_again(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(text())
    proxy = find(str(path))
    assert isinstance(proxy, PredictorProxy)
    assert (proxy.name, proxy.space, proxy.n_seeds) == ("drawn-predictor", "nano-gpt2", 2)
    again, first = proxy.predictor, made()
    rows = [dict(zip(first.inputs.names, point, strict=True)) for point in first.points.tolist()]
    scores = np.exp(first.numbers)
    for mine, theirs in zip(first.predict(rows, scores), again.predict(rows, scores), strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=0, atol=1e-12)
    assert export(select(str(path)), "json", predictor=True) == text()
    [formula] = from_file(path)
    assert str(formula.formula) == FORMULA, "without --predictor its formula is exported"
    assert proxy.applies_to(spaces.get("nano-gpt2"))
    assert not proxy.applies_to(spaces.get("nano-rnn"))
    assert "space nano-gpt2" in proxy.only_spaces


def test_only_the_winner_as_it_was_found_has_a_predictor() -> None:
    with pytest.raises(InputError, match="there is no predictor"):
        export(Selection([exported(FORMULA)]), "json", predictor=True)
    with pytest.raises(InputError, match="of the winner as it was found"):
        export(selection(limit=None), "json", predictor=True)
    other = Selection([exported("sum(W)")], predictor=selection().predictor)
    with pytest.raises(InputError, match="of the winner as it was found"):
        export(other, "json", predictor=True)
    with pytest.raises(InputError, match="is for --to json, not latex"):
        export(selection(), "latex", predictor=True)


def points(n: int, width: int | None = None) -> list[list[float]]:
    return [[0.0] * (len(made().inputs.names) if width is None else width)] * n


def inputs(**fields: Any) -> dict[str, Any]:
    found = {**json.loads(text())["inputs"], **fields}
    return {name: value for name, value in found.items() if value is not ...}


CASES = {
    "cut short": (lambda: text()[:-200], "not valid JSON"),
    "without its end": (lambda: text()[: len(text()) // 2], "not valid JSON"),
    "changed": (lambda: text().replace('"noise": ', '"noise": 1'), "changed after it was written"),
    "a newer schema": (lambda: changed(schema=2), "schema 2"),
    "no formula": (lambda: changed(formula=...), "has no 'formula'"),
    "a formula of text": (lambda: changed(formula="sum(W)"), "not an object of format"),
    "another field": (lambda: changed(kernel="x"), "unknown field 'kernel'"),
    "no points": (lambda: changed(points=[]), "points has 0 rows"),
    "too many points": (lambda: changed(points=points(2001, 0)), "points has 2,001 rows"),
    "ragged points": (lambda: changed(points=points(15, 3)), "points is a list of 3"),
    "points of texts": (lambda: changed(points=[["x"] * len(made().inputs.names)] * 15), "a text"),
    "far points": (
        lambda: changed(points=[[1e9] * len(made().inputs.names)] * 15),
        "magnitude 1e+06",
    ),
    "few targets": (lambda: changed(targets=[0.0]), "targets is a list of 1"),
    "targets of truth": (lambda: changed(targets=[True] * 15), "truth value"),
    "huge numbers": (lambda: changed(numbers=[1e200] * 15), "magnitude 1e+100"),
    "a sign of 2": (lambda: changed(sign=2), "sign or n_seeds"),
    "many seeds": (lambda: changed(n_seeds=101), "sign or n_seeds"),
    "no seed": (lambda: changed(n_seeds=0), "n_seeds is 0"),
    "no length": (lambda: changed(length=0.0), "length is 0"),
    "no noise": (lambda: changed(noise=0), "noise is 0"),
    "a negative spread": (lambda: changed(spread=-1.0), "spread is -1"),
    "inputs without spread": (lambda: changed(inputs=inputs(spread=...)), "spread"),
    "inputs of no spread": (
        lambda: changed(inputs=inputs(spread=[0.0] * len(made().inputs.names))),
        "not above 0",
    ),
    "one name twice": (
        lambda: changed(inputs=inputs(names=["a"] * len(made().inputs.names))),
        "not distinct",
    ),
    "a name of NUL": (
        lambda: changed(inputs=inputs(names=["a\0", *made().inputs.names[1:]])),
        "control character",
    ),
    "many terms": (lambda: changed(terms=["sum(W)"] * 61), "61 terms"),
    "a term of a number": (lambda: changed(terms=[1]), "not a text"),
    "a term of code": (lambda: changed(terms=["sum(__import__(W))"]), "unknown name"),
    "a product as a term": (lambda: changed(terms=["mul(sum(W), sum(G))"]), "not a single term"),
    "a dead term": (lambda: changed(terms=["sum(disconnect(W))"]), "disconnected"),
    "a space of lines": (lambda: changed(space="a\nb"), "control character"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_one_line_and_code_two(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, message = CASES[case]
    commands = ("export x.json --to json --predictor", "rank nano-gpt2 --proxy x.json")
    check_refused(make(), message, capsys, *commands)


def test_junk_in_any_place_is_refused_or_read_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> None:
        proxy = find("x.json")
        assert isinstance(proxy, PredictorProxy)
        of = proxy.predictor
        row = dict(zip(of.inputs.names, of.inputs.centre.tolist(), strict=True))
        assert len(of.predict([row], np.array([1.0])).scores) == 1

    monkeypatch.chdir(tmp_path)
    good = json.loads(text())
    tried = [p for p in places(good) if p[0] not in ("sha256", "format", "formula")]
    check_junk(good, random.Random(0).sample(tried, 150), changed, read)


def test_repeated_points_with_hardly_any_noise_still_predict(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(changed(points=points(15), noise=1e-9))
    proxy = find(str(tmp_path / "x.json"))
    assert isinstance(proxy, PredictorProxy)
    row = dict(zip(made().inputs.names, made().inputs.centre.tolist(), strict=True))
    assert np.isfinite(proxy.predictor.predict([row], np.array([1.0])).scores).all()


def test_a_table_of_another_space_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.json"
    path.write_text(text())
    assert run(["rank", "nano-rnn", "--proxy", str(path)]) == 2
    assert "cannot score space nano-rnn" in capsys.readouterr().err

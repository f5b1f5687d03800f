"""Every form of a formula gives the scores of the engine."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from lpzero.errors import InputError
from lpzero.export import Provenance, Selection, export, from_file, json_form
from lpzero.export.record import Batch, Exported, Figures
from lpzero.export.synthetic_networks import TOLERANCE
from lpzero.sketches.sketch import SketchOptions
from primitives.errors import Rejected, TensorError
from primitives.expressions import drop_dead
from primitives.formula import Formula
from primitives.naive import score
from primitives.parser import parse
from primitives.pruning import check
from primitives.registry import BINARIES, UNARIES
from primitives.symbolic import score_sympy, to_sympy
from tests.lpzero.export.network_tensors import (
    LIMIT,
    blocks,
    engine,
    exported,
    module_of,
    tensors,
    written,
)
from tests.random_formulas import random_formula, random_tree

N = 60
PARTS = 4  # for as many workers
PAIRS = ("abs(W), abs(G)", "fro(W), abs(G)", "abs(W), l1(G)", "fro(A), l1(J)")  # of every kind


def formulas(n: int, seed: int = 11, kept: bool = False) -> Iterator[Formula]:
    """Random formulas; `kept` leaves out what pruning rejects, which may be rounding noise."""
    rng, found = random.Random(seed), 0
    while found < n:
        formula = random_tree(rng, 5) if found % 8 == 0 else random_formula(rng, 2)
        if drop_dead(formula.term.expression) is not None and not (kept and check(formula)):
            found += 1
            yield formula


def close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-12)


def is_alike_in_every_form(formula: Formula) -> bool:
    """Assert that all forms have the engine's score; False if the engine has none either."""
    one, name = exported(formula, limit=LIMIT), str(formula)
    assert json_form.from_value(json.loads(written(one, "json")), name).entries == [one]
    module = module_of(one)
    found, expected = module.score(tensors()), engine().score(formula)
    if isinstance(expected, Rejected):
        assert math.isnan(found), name
        return False
    assert close(found, expected[0]), name
    on_whole = score(formula, blocks(None))
    assert not isinstance(on_whole, Rejected)
    assert close(module.score(tensors(), limit=None), on_whole), name
    written(one, "sympy")  # which compares its scores with the formula's
    assert close(score_sympy(to_sympy(formula), blocks(None)), on_whole), name
    return True


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_random_formulas_score_alike_in_every_form(part: int) -> None:
    alike = filter(is_alike_in_every_form, formulas(2 * N, seed=part, kept=True))
    assert len(list(islice(alike, N // PARTS))) == N // PARTS


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(UNARIES) - {"disconnect"}))
def test_every_unary_is_alike_in_every_form_after_a_matrix_and_a_number(name: str) -> None:
    matrix, number = parse(f"mean({name}(A))"), parse(f"sum(add({name}(fro(W)), mean(J)))")
    assert any([is_alike_in_every_form(matrix), is_alike_in_every_form(number)])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BINARIES))
@pytest.mark.parametrize(
    "pair", ["abs(W), abs(G)", "fro(W), abs(G)", "abs(W), l1(G)", "fro(A), l1(J)"]
)
def test_every_binary_is_alike_in_every_form_for_every_pair_of_kinds(name: str, pair: str) -> None:
    assert is_alike_in_every_form(parse(f"mean({name}({pair}))"))


@pytest.mark.slow
def test_every_pruned_formula_can_be_written_all_the_same() -> None:
    pruned = [formula for formula in formulas(60) if check(formula) is not None]
    assert len(pruned) > 10
    for formula in pruned:
        assert module_of(exported(formula)).main() == 0


def test_files_of_the_time_when_softmax_had_an_axis_are_read() -> None:
    one = exported("sum(mul(softmax(W), log_softmax(G)))")
    for axis in ("first", "last"):
        value = {**json_form.to_value(one), "softmax_axis": axis}
        del value["sha256"]
        value["sha256"] = json_form._digest(value)
        if axis == "first":
            assert json_form.from_value(value, "text").entries == [one]
        else:
            with pytest.raises(InputError, match="softmax_axis is 'last', use one of first"):
                json_form.from_value(value, "text")


def record() -> Exported:
    figures = Figures(
        "table",
        "nano-gpt2",
        "minus <loss> & %",
        "0f",
        3,
        {"test": 31},
        {"train": 0.9, "test": -0.5},
        {"test": (-0.7, -0.1)},
        {"test": 0.25},
    )
    provenance = Provenance(
        "campaign",
        campaign="ab",
        method="front",
        seed=7,
        chosen_on="valid",
        id=12,
        generation=4,
        figures=(figures,),
    )
    batch = Batch("nano-gpt2", 1, (8, 64), "text")
    options = SketchOptions(None, "cotangent", 2, 3)
    return Exported(
        "=best <b>one</b>",
        parse("-mean(add(square(W), square(softmax(G))))"),
        provenance,
        options,
        (batch,),
    )


def test_json_keeps_everything(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(written(record(), "json"))
    assert from_file(path) == [record()]
    assert written(from_file(path)[0], "json") == path.read_text()


def test_several_formulas_fit_in_json_and_csv(tmp_path: Path) -> None:
    both = [record(), exported("sum(fro(A))", limit=100)]
    for form in ("json", "csv"):
        path = tmp_path / f"both.{form}"
        path.write_text(export(Selection(both, []), form))
        read = from_file(path)
        shown = [(one.name, one.formula, one.options) for one in read]
        assert shown == [(one.name, one.formula, one.options) for one in both]


@pytest.mark.parametrize("form", ["python", "sympy"])
def test_other_forms_hold_one_formula(form: str) -> None:
    with pytest.raises(InputError, match="2 were chosen"):
        export(Selection([record(), record()], []), form)


def test_a_spreadsheet_sees_a_name_as_text() -> None:
    assert "\n'=best <b>" in "\n" + written(record(), "csv").splitlines()[1]


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("-sum(l1(W))", "-sum(block_mean(total(Abs(W))))"),
        ("mul(depth, sqrt(inner(params)))", "depth*sqrt(inner(block_mean(params)))"),
    ],
)
def test_a_sympy_file_carries_its_formula(formula: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "form.txt"
    path.write_text(written(exported(formula), "sympy"))
    assert path.read_text().splitlines()[-1] == text
    assert from_file(path)[0].formula == parse(formula)


def test_a_folded_constant_has_no_matrix_product() -> None:
    formula = parse("sum(matmul(log(neg(abs(W))), G))")
    with pytest.raises(TensorError, match="its shape is lost"):
        score_sympy(to_sympy(formula), blocks(None))


def test_a_formula_that_sympy_folds_is_refused_when_written() -> None:
    folded = exported("sum(l1(exp(add(matmul(H, W), sub(G, G)))))")
    with pytest.raises(InputError, match="no sympy form with its scores"):
        written(folded, "sympy")


def test_a_score_of_rounding_noise_is_not_tried() -> None:
    noise = exported("-mean(sub(A, inverse(mean(norm_sum(zscore(W))))))")
    assert noise.trial == (None, None, None)
    assert module_of(noise).main() == 0


def test_sympy_does_not_reach_through_a_mean_in_a_condition() -> None:
    formula = parse("sum(log(sub(G, mean(log(W)))))")
    expected = score(formula, blocks(None))
    assert score_sympy(to_sympy(formula), blocks(None)) == pytest.approx(expected)


def test_log_softmax_survives_where_softmax_underflows() -> None:
    formula = parse("sum(log_softmax(exp(exp(H))))")
    expected = score(formula, blocks(None))
    assert score_sympy(to_sympy(formula), blocks(None)) == pytest.approx(expected)


OLD = {
    "one_term": ["-mean(add(square(W), square(softmax(G))))"],
    "several_terms": [
        "mul(inner(l1(abslog(J))), sqrt(inner(sqrt(params))),"
        " inverse(sqrt(sum(sqrt(softmax(S))))))",
        "-sub(log(embedding(l1(W))), mul(depth, inverse(head(fro(A)))))",
    ],
}
OLD["ensemble"] = [OLD["one_term"][0], OLD["several_terms"][0]]


@pytest.mark.parametrize("name", OLD)
def test_exports_that_the_engine_wrote_before_still_open(name: str) -> None:
    """The files were written at commit 2ac81b7, when formulas were two types."""
    path = Path(__file__).parent / "exports_0_2_0" / f"{name}.json"
    whole = json_form.load(path)
    assert [str(one.formula) for one in whole.entries] == OLD[name]
    assert whole.ensemble == ("both" if name == "ensemble" else None)
    again = json.loads(json_form.write(whole.entries, whole.ensemble))
    assert _without_digests(again) == _without_digests(json.loads(path.read_text()))


def test_an_old_export_of_a_product_in_another_spelling_opens() -> None:
    """Version 0.2.0 kept mul(a, a) as its user wrote it; it is square(a) now."""
    path = Path(__file__).parent / "exports_0_2_0" / "repeated_factor.json"
    (entry,) = json_form.load(path).entries
    assert str(entry.formula) == "mul(square(sum(l1(W))), sqrt(inner(abs(A))))"


def _without_digests(value: Any) -> Any:
    """Without what the files of version 0.2.0 have more, and the digests over it."""
    if isinstance(value, dict):
        gone = ("sha256", "softmax_axis")
        return {k: _without_digests(inner) for k, inner in value.items() if k not in gone}
    return [_without_digests(inner) for inner in value] if isinstance(value, list) else value

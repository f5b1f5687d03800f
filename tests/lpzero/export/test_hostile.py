"""Files from strangers: refused in one clear line or kept as data, and never run."""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lpzero.cli.main import run
from lpzero.errors import InputError
from lpzero.export import Selection, export, from_file
from lpzero.export.latex_form import escaped
from lpzero.proxies import find
from primitives.errors import FormulaError
from tests.lpzero.export.network_tensors import exported, module_of, written

GOOD = json.loads(written(exported("sum(mul(abs(G), abs(W)))"), "json"))
NASTY = (
    """"'''\\ __import__('os').system('touch pwned') <script>alert(1)</script> ${x} %s {0}"""
    " \\input{/etc/passwd} é"
)


def changed(**fields: Any) -> str:
    """A good file with other fields, and the digest that belongs to them."""
    value = {k: v for k, v in {**GOOD, **fields}.items() if k != "sha256" and v is not ...}
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return json.dumps({**value, "sha256": hashlib.sha256(text.encode()).hexdigest()})


def provenance(**fields: Any) -> dict[str, Any]:
    return {**GOOD["provenance"], **fields}


FIGURES = {
    "table": "t",
    "space": "s",
    "target": "x",
    "digest": "0",
    "split_seed": 0,
    "n": {},
    "rho": {},
    "rho_ci": {},
    "rho_given_params": {},
}

CASES: dict[str, tuple[str, str]] = {
    "not JSON": ("{", "not valid JSON"),
    "code": ("__import__('os').system('id')", "not valid JSON"),
    "a list": ("[]", "contains no formula"),
    "a key twice": ('{"formula": "sum(W)", "formula": "sum(A)"}', "'formula' appears twice"),
    "NaN": ('{"formula": "sum(W)", "x": NaN}', "NaN is not a JSON number"),
    "infinity": ('{"formula": "sum(W)", "x": 1e999}', "beyond the range"),
    "a number without end": ('{"x": ' + "9" * 5000 + "}", "5000 digits"),
    "deep lists": ("[" * 5000 + "]" * 5000, "nested"),
    "very deep lists": ("[" * 400_000 + "]" * 400_000, "nested"),
    "deep objects": ('{"a":' * 30 + "1" + "}" * 30, "nested deeper"),
    "a deep formula": (json.dumps({"formula": "sum(" + "abs(" * 900 + "W" + ")" * 901}), "deeper"),
    "a long formula": (json.dumps({"formula": "sum(" + " " * 30_000 + "W)"}), "20000"),
    "code as formula": (json.dumps({"formula": "sum(__import__(W))"}), "unknown name"),
    "a dead formula": (json.dumps({"formula": "sum(disconnect(W))"}), "disconnected"),
    "a plain schema": (json.dumps({"formula": "sum(W)", "schema": 9}), "schema 9"),
    "a name of NUL": (json.dumps({"formula": "sum(W)", "name": "a\0b"}), "control character"),
    "a name of lines": (changed(name="a\nb"), "control character"),
    "a name turned around": (changed(name="a\u202eb"), "control character"),
    "half a letter": ('{"formula": "sum(W)", "name": "\\ud800"}', "control character"),
    "a long name": (changed(name="x" * 301), "301 characters"),
    "a name that is none": (changed(name={"a": 1}), "is an object, expected a text"),
    "another format": (changed(format="pickle"), "format is 'pickle'"),
    "a newer schema": (changed(schema=2), "schema 2"),
    "a true schema": (changed(schema=True), "schema True"),
    "no schema": (changed(schema=...), "schema None"),
    "an unknown field": (changed(code="import os"), "unknown field 'code'"),
    "an unknown inner field": (changed(provenance=provenance(date="now")), "unknown field 'date'"),
    "a missing field": (changed(batches=...), "has no 'batches'"),
    "a changed byte": (json.dumps({**GOOD, "name": "other"}), "digest does not match"),
    "no digest": (json.dumps({k: v for k, v in GOOD.items() if k != "sha256"}), "no 'sha256'"),
    "another spelling": (changed(formula="sum( mul(abs(G), abs(W)))"), "canonical spelling"),
    "another sign": (changed(sign=-1), "not those of"),
    "a sign of text": (changed(sign="1"), "is a text, expected a whole number"),
    "another reduction": (changed(reduction="max"), "use one of sum, mean"),
    "another formula": (changed(formula="sum(W)"), "computes other scores"),
    "no trial": (changed(trial={"limit": 40, "scores": []}), "computes other scores"),
    "a trial of text": (changed(trial={"limit": 40, "scores": ["1", 2, 3]}), "expected a number"),
    "a limit of zero": (changed(sketch={**GOOD["sketch"], "limit": 0}), "expected at least 1"),
    "a seed of text": (changed(sketch={**GOOD["sketch"], "seed": "0"}), "expected a whole number"),
    "a negative seed": (changed(sketch={**GOOD["sketch"], "seed": -1}), "expected at least 0"),
    "an unknown loss": (changed(sketch={**GOOD["sketch"], "loss": "evil"}), "use one of auto"),
    "a rho of two": (
        changed(provenance=provenance(figures=[{**FIGURES, "rho": {"test": 2}}])),
        "magnitude 1 at most",
    ),
    "a rho of elsewhere": (
        changed(provenance=provenance(figures=[{**FIGURES, "rho": {"x": 1}}])),
        "not one of train, valid, test",
    ),
    "a broken interval": (
        changed(provenance=provenance(figures=[{**FIGURES, "rho_ci": {"test": [0]}}])),
        "interval",
    ),
    "a list of nothing": (
        json.dumps({"format": "lpzero-formulas", "schema": 1, "formulas": []}),
        "contains 0 formulas",
    ),
    "a list of texts": (
        json.dumps({"format": "lpzero-formulas", "schema": 1, "formulas": ["x"]}),
        "formula 1 is not an object",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_one_line_and_code_two(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refused(*CASES[case], capsys, "export x.json --to python", "rank none --proxy x.json")


def check_refused(
    text: str, message: str, capsys: pytest.CaptureFixture[str], *commands: str
) -> None:
    """Assert that every command refuses x.json of that text in one line, and writes nothing."""
    Path("x.json").write_text(text, encoding="utf-8")
    for command in commands:
        assert run(command.split()) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1, err
        assert err.startswith("error: ")
        assert message in err
        assert len(err) < 600
    assert os.listdir() == ["x.json"]


def big(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(100_000_000)


def test_a_file_of_100_megabytes_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big(tmp_path / "x.json")
    monkeypatch.setattr("builtins.open", None)  # would fail if it were opened
    with pytest.raises(InputError, match="100,000,000 bytes"):
        from_file(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "has no run"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: path.symlink_to(path), "leads to itself"),
        (lambda path: path.symlink_to("gone"), "no file"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "not text in UTF-8"),
        (lambda path: path.write_bytes(b""), "not valid JSON"),
        (lambda path: None, "no file"),
    ],
)
def test_what_is_no_file_is_refused(
    make: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    make(tmp_path / "x.json")
    with pytest.raises(InputError, match=message):
        find(str(tmp_path / "x.json"))


@pytest.mark.parametrize("text", ["a\0b.json", "/etc/passwd\0.json", "x" * 5000 + ".json"])
def test_odd_paths_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError):
        find(text)
    assert run(["export", text, "--to", "json"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", [NASTY, "../../etc/passwd", "/etc/passwd", '"""'])
def test_a_name_is_data_in_every_form(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.json").write_text(
        changed(name=name, provenance=provenance(engine=name, method=name))
    )
    (one,) = from_file(tmp_path / "x.json")
    assert one.name == name
    assert find("x.json").name == name
    module = module_of(one)
    assert module.ABOUT["name"] == name
    assert module.ABOUT["provenance"]["engine"] == name
    source = written(one, "python")
    assert source.isascii()
    calls = {
        n.func.id
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    assert "__import__" not in calls
    latex = export(Selection([one, one], []), "latex") + written(one, "latex")
    assert not any(word in latex for word in ("<script>", "input{", "${x}"))
    (tmp_path / "y.csv").write_text(written(one, "csv"))
    assert from_file(tmp_path / "y.csv")[0].name == name
    assert sorted(os.listdir(tmp_path)) == ["x.json", "y.csv"]


JUNK: list[Any] = [None, True, -1, 1e308, 10**20, "", "\0", "sum(W)", [], {}, [1], {"a": 1}, "../x"]


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The keys that lead to every value inside the value."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else (enumerate(value) if isinstance(value, list) else ())
    )
    found = [place] if place else []
    return found + [deeper for key, inner in inside for deeper in places(inner, (*place, key))]


def replaced(value: Any, place: Sequence[Any], junk: Any) -> Any:
    """A copy of the value with junk in the place."""
    value = inner = copy.deepcopy(value)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = junk
    return value


def check_junk(
    good: Any,
    tried: Sequence[tuple[Any, ...]],
    written: Callable[..., str],
    read: Callable[[], object],
) -> None:
    """Assert that x.json, with junk in any of the places, is read or refused, and both happen."""
    rng = random.Random(0)
    fates = {"read": 0, "refused": 0}
    for place in tried:
        Path("x.json").write_text(written(**replaced(good, place, rng.choice(JUNK))))
        try:
            read()
            fates["read"] += 1
        except (InputError, FormulaError):
            fates["refused"] += 1
    assert fates["refused"] > 50
    assert fates["read"] > 0


def test_junk_in_any_place_is_refused_or_read_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tried = [place for place in places(GOOD) if place[0] not in ("sha256", "format")]
    check_junk(GOOD, tried * 4, changed, lambda: from_file(Path("x.json")))


def test_latex_prints_a_label_as_it_is() -> None:
    assert escaped(r"\input{x} & <b>_%$#~^") == (
        r"\textbackslash{}input\{x\} \& \textless{}b\textgreater{}\_\%\$\#"
        r"\textasciitilde{}\textasciicircum{}"
    )
    assert escaped("é √ 漢") == r"e \ensuremath{\surd} [cjk unified ideograph-6f22]"


FORM = "# lpzero-sympy 1\n# formula: sum(fro(W))\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# lpzero-sympy 2\n# formula: sum(W)\n", "expected the first line '# lpzero-sympy 1'"),
        ("# lpzero-sympy 1\nblock_mean(W)", "0 lines '# formula: ...', expected one"),
        (FORM + "# formula: sum(W)\nblock_mean(W)", "2 lines '# formula: ...'"),
        ("# lpzero-sympy 1\n# formula: sum(blur(W))\nblock_mean(W)", "unknown name"),
        ("# lpzero-sympy 1\n# formula: __import__('os').system('id')", "error: "),
        ("# lpzero-sympy 1\n# formula: sum(" + "abs(" * 900 + "W" + ")" * 901, "deeper"),
        ("# lpzero-sympy 1\n# formula: sum(disconnect(W))", "disconnected"),
        (FORM + "\0" * 2_000_000, "bytes"),
    ],
)
def test_a_bad_sympy_file_is_one_line_and_code_two(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.txt").write_text(text)
    assert run(["export", str(tmp_path / "x.txt"), "--to", "json"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


@pytest.mark.parametrize("text", ["__import__('os').system('touch pwned')", "9**9**9**9", ""])
def test_the_sympy_text_itself_is_never_run(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.txt").write_text(FORM + text)
    (one,) = from_file(tmp_path / "x.txt")
    assert str(one.formula) == "sum(fro(W))"
    assert os.listdir(tmp_path) == ["x.txt"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column 'formula'"),
        ("name\nx\n", "no column 'formula'"),
        ("name,formula\nx,sum(W),more\n", "fewer cells"),
        ("name,formula\nx\n", "fewer cells"),
        ("formula\nsum(blur(W))\n", "unknown name"),
        ("formula,limit\nsum(W),-3\n", "whole number"),
        ("formula,loss\nsum(W),evil\n", "loss 'evil'"),
        ('formula\n"sum(W)\n', "not a CSV file"),
        ("formula\n" + "sum(W)\n" * 1001, "1001 rows"),
    ],
)
def test_a_bad_csv_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises((InputError, FormulaError), match=message):
        from_file(tmp_path / "x.csv")

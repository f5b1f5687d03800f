"""`lpzero export`: from a campaign, a file, a formula or a name to every form, and its errors."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lpzero.export
from lpzero import exhaust
from lpzero.cli.main import run
from lpzero.errors import InputError
from lpzero.exhaust.run import exhaustive_config
from lpzero.proxies import Context, Measurements, find
from lpzero.runs.directory import RunDirectory
from primitives.parser import parse
from spaces.tables import split
from tests.lpzero.sealed_runs import content, rewrite
from tests.lpzero.small_campaign import discovery, sketches, table

pytestmark = pytest.mark.slow


def result(campaign: Path) -> Any:
    return json.loads((campaign / "result.json").read_text())


def exports(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert run(["export", *map(str, arguments)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 2) -> str:
    assert run(["export", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    return err


def test_the_forms_are_those_of_the_modules() -> None:
    modules = sorted(path.stem for path in Path(lpzero.export.__path__[0]).glob("*_form.py"))
    assert [f"{name}_form" for name in lpzero.export.EXPORTERS] == modules


def test_no_form_needs_torch_to_be_listed() -> None:
    code = "import sys, lpzero.verbs.export; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_chosen_formula_with_its_figures(
    campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(exports(capsys, campaign, "--to", "json"))
    best = result(campaign)["best"]
    assert found["formula"] == best["formula"]
    assert found["provenance"]["id"] == best["id"]
    (figures,) = found["provenance"]["figures"]
    judged = best["judged"]["made-up"]
    assert figures["rho"] == best["rho"]
    assert figures["rho_ci"] == {p: judged[p]["rho_ci"] for p in ("train", "valid", "test")}
    assert found["batches"][0]["space"] == "nano-gpt2"
    assert found["sketch"]["limit"] == 4096


@pytest.mark.parametrize("form", list(lpzero.export.EXPORTERS))
def test_equal_campaigns_give_equal_files(
    form: str, campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (again := campaign.parent / "again").exists():
        discovery(again).run()
    assert exports(capsys, campaign, "--to", form) == exports(capsys, again, "--to", form)


def test_places_ids_and_the_whole_hall(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hall = json.loads((campaign / "hall_of_fame.json").read_text())
    judged = {line["id"] for line in result(campaign)["top"]}
    rows = list(csv.DictReader(io.StringIO(exports(capsys, campaign, "--to", "csv", "--all"))))
    assert [row["formula"] for row in rows] == [row["formula"] for row in hall]
    assert {int(row["id"]) for row in rows if row["rho_test"]} == judged & {r["id"] for r in hall}
    assert any(not row["rho_test"] for row in rows)
    assert all(row["rho_train"] for row in rows)
    for row in rows:
        assert bool(row["rho_test_low"]) == bool(row["rho_test"])
    third = json.loads(exports(capsys, campaign, "--to", "json", "--formula", "3"))
    assert third["formula"] == hall[2]["formula"]
    named = exports(capsys, campaign, "--to", "json", "--formula", f"id:{hall[2]['id']}")
    assert json.loads(named) == third
    top = json.loads(exports(capsys, campaign, "--to", "json", "--top", "2"))
    assert [one["formula"] for one in top["formulas"]] == [row["formula"] for row in hall[:2]]


def test_the_table_ends_with_the_counters(
    campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = exports(capsys, campaign, "--to", "latex", "--top", "3")
    assert all(line in text for line in ("sizes alone", r"attention-{}parameters", r"\toprule"))
    whole = exports(capsys, campaign, "--to", "latex", "--document")
    assert whole.startswith(r"\documentclass")


def test_an_exhaustive_run_is_a_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, split_ = table(), split(table(), 0)
    asked = exhaust.ExhaustSettings(unaries=1)
    run_ = exhaust.exhaust(made, sketches(), split_, tmp_path, asked)
    answer = exhaust.report(made, split_, run_, asked, exhaust.Query(top=4))
    with RunDirectory(tmp_path, exhaustive_config(made, split_, asked), True) as directory:
        directory.write_result(answer, 0.0)
    one = json.loads(exports(capsys, tmp_path, "--to", "json"))
    assert one["formula"] == answer["best"]["formula"]
    (figures,) = one["provenance"]["figures"]
    assert figures["rho_ci"]["test"] == answer["best"]["judged"]["made-up"]["test"]["rho_ci"]
    rows = exports(capsys, tmp_path, "--to", "csv", "--all").splitlines()
    assert len(rows) == 5
    assert "sizes alone" in exports(capsys, tmp_path, "--to", "latex", "--top", "3")


def test_a_formula_and_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(exports(capsys, " sum(mul( G,W))", "--to", "json", "--name", "mine"))
    assert (found["formula"], found["name"]) == ("sum(mul(G, W))", "mine")
    paper = json.loads(exports(capsys, "lpzero-gpt2", "--to", "json", "--exact"))
    assert paper["formula"] == "-mean(add(square(W), square(softmax(G))))"
    assert paper["sketch"]["limit"] is None
    assert json.loads(exports(capsys, "snip", "--to", "json"))["formula"] == "sum(l1(mul(G, W)))"


def test_an_exported_file_is_a_source_and_a_proxy(
    campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "best.json"
    assert exports(capsys, campaign, "--to", "json", "--out", file) == ""
    assert exports(capsys, file, "--to", "json") == file.read_text()
    few = table().archs[:3]
    from_campaign: Any = find(str(file))
    written_out = find(from_campaign.definition)
    measurements = Measurements(Context(folder=tmp_path))
    space = table().space
    assert list(from_campaign.score(space, few, measurements)) == list(
        written_out.score(space, few, measurements)
    )


def test_a_run_is_a_proxy_and_a_file_of_several_is_none(
    campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert find(str(campaign)).definition == result(campaign)["best"]["formula"]
    exports(capsys, campaign, "--to", "json", "--top", "2", "--out", tmp_path / "two.json")
    with pytest.raises(InputError, match="contains 2 formulas: choose one with lpzero export"):
        find(str(tmp_path / "two.json"))


def test_several_tables_have_their_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    discovery(tmp_path / "run", table=[table(), table(name="another")]).run()
    one = json.loads(exports(capsys, tmp_path / "run", "--to", "json"))
    assert [f["table"] for f in one["provenance"]["figures"]] == ["made-up", "another"]
    best = result(tmp_path / "run")["best"]
    for figures in one["provenance"]["figures"]:
        assert figures["rho"] == best["rho_by_table"][figures["table"]]
    text = exports(capsys, tmp_path / "run", "--to", "latex", "--top", "3")
    assert text.count("sizes alone") == 2
    rows = list(
        csv.DictReader(io.StringIO(exports(capsys, tmp_path / "run", "--to", "csv", "--all")))
    )
    assert [row["table"] for row in rows[:2]] == ["made-up", "another"]


def test_an_exported_proxy_uses_the_options_it_carries(tmp_path: Path) -> None:
    few, space, measurements = (
        table().archs[:3],
        table().space,
        Measurements(Context(folder=tmp_path)),
    )
    scores = {}
    for options in ({"limit": 64}, {"limit": None}, {"seed": 5}, {"batch_seed": 2}):
        sketch = lpzero.sketches.sketch.SketchOptions(**options)  # type: ignore[arg-type]
        made = lpzero.export.Exported(
            "x", parse("sum(l1(G))"), lpzero.export.Provenance("formula"), sketch
        )
        file = tmp_path / "x.json"
        file.write_text(lpzero.export.export(lpzero.export.Selection([made], []), "json"))
        proxy: Any = find(str(file))
        assert proxy.sketching(measurements.context) == sketch
        scores[str(options)] = list(proxy.score(space, few, measurements))
        later = Context(seed=1, loss="ones", folder=tmp_path)
        assert proxy.sketching(later).seed == sketch.seed + 1
        assert proxy.sketching(later).loss == "ones"
    assert len(set(map(tuple, scores.values()))) == 4


def test_a_file_is_written_whole_and_not_over_another(
    campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "best.py"
    file.write_text("mine")
    assert "--force" in refused(capsys, campaign, "--to", "python", "--out", file)
    assert file.read_text() == "mine"
    exports(capsys, campaign, "--to", "python", "--out", file, "--force")
    assert "def score(" in file.read_text()
    assert os.listdir(tmp_path) == ["best.py"]
    assert "no directory" in refused(capsys, campaign, "--to", "csv", "--out", tmp_path / "a" / "b")
    assert "is not a file name" in refused(capsys, campaign, "--to", "csv", "--out", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "python", "--top", "2"], "one formula, but 2 were chosen"),
        (["--to", "json", "--formula", "999"], "none is 999"),
        (["--to", "json", "--formula", "0"], "none is 0"),
        (["--to", "json", "--formula", "best"], "use a position"),
        (["--to", "json", "--top", "2", "--all"], "exclude each other"),
        (["--to", "json", "--document"], "is for --to latex"),
        (["--to", "json", "--all", "--name", "x"], "is for one formula"),
        (["--to", "pickle"], "pickle"),
        ([], "--to"),
    ],
)
def test_bad_options_are_one_line(
    arguments: list[str], message: str, campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, campaign, *arguments)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("sum(blur(W))", "unknown name 'blur'"),
        ("sum(disconnect(W))", "disconnected"),
        ("synflow", "no equivalent formula"),
        ("grasp", "is not a formula"),
        ("snipp", "did you mean 'snip'"),
        ("none.json", "no file none.json"),
        ("runs/none", "no file or directory runs/none"),
    ],
)
def test_bad_sources_are_one_line(
    source: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, source, "--to", "json")


def test_broken_campaigns_are_one_line(
    tmp_path: Path, campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "has no run" in refused(capsys, tmp_path, "--to", "json")
    out = tmp_path / "run"
    discovery(out).search()
    assert "there is no winner" in refused(capsys, out, "--to", "json")
    assert run(["export", str(out), "--to", "csv", "--all"]) == 0
    text, note = capsys.readouterr()
    assert "rho" in text
    assert "note: The campaign is not finished" in note
    for text in ("{}", "[]", "\0"):
        (out / "result.json").write_text(text)
        refused(capsys, out, "--to", "json")
    for value in ({"best": 3}, {"tables": [], "best": {}}):
        rewrite(out, "result.json", value)
        refused(capsys, out, "--to", "json")
    found = content(campaign, "result.json")
    found["best"]["formula"] = "sum(__import__(W))"
    rewrite(out, "result.json", found)
    assert "unknown name" in refused(capsys, out, "--to", "json")


def test_the_ensemble_of_a_campaign_has_the_members_it_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "stable"
    discovery(out, choose="stable", permutations=0).run()
    members = result(out)["ensemble"]["members"]
    assert len(members) > 5
    written = json.loads(exports(capsys, out, "--to", "json", "--ensemble"))
    assert [one["formula"] for one in written["members"]] == members
    two = json.loads(exports(capsys, out, "--to", "json", "--ensemble", "--top", "2"))
    hall = json.loads((out / "hall_of_fame.json").read_text())
    assert [one["formula"] for one in two["members"]] == [row["formula"] for row in hall[:2]]


def test_an_ensemble_of_one_or_of_none_is_refused(
    campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "has no ensemble, which only campaigns with --choose nested or stable have" in refused(
        capsys, campaign, "--to", "json", "--ensemble"
    )
    one = refused(capsys, campaign, "--to", "json", "--ensemble", "--formula", "1")
    assert "at least two members" in one
    assert "at least two members" in refused(capsys, "sum(W)", "--to", "json", "--ensemble")


def test_a_latex_table_has_the_winner_and_the_best_count(
    campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = exports(capsys, campaign, "--to", "latex", "--top", "3")
    found = result(campaign)
    assert "the winner, then the best on train" in text
    rows = text.split(r"\midrule")
    best = found["best"]["rho"]
    assert (
        f"${best['train']:.3f}$ & ${best['valid']:.3f}$ & ${best['test']:.3f}$"
        in (rows[1].splitlines()[2])  # below the formula
    )
    count = found["count"]["rho"]
    lines = rows[2].splitlines()
    [name] = [place for place, line in enumerate(lines) if "{best count:}" in line]
    figures = f"${count['train']:.3f}$ & ${count['valid']:.3f}$ & ${count['test']:.3f}$"
    assert figures in lines[name + 2]

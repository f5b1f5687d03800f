"""`lpzero rank`: the contract of its JSON, its table, and its errors."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import spaces
from lpzero.cli.main import run
from lpzero.export import Selection, export
from lpzero.export.record import Exported, Figures, Provenance
from lpzero.proxies import get, names
from lpzero.proxies.ranking import is_released, must_be_named, ranked_by_default
from primitives.parser import parse
from spaces.tables.table import Table, make_table


@pytest.fixture
def small_table(monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table of twelve small architectures under the name nano-gpt2."""
    space = spaces.get("nano-gpt2")
    drawn = dict.fromkeys(space.sample(random.Random(i)) for i in range(60))
    archs = sorted(drawn, key=space.parameters)[:12]
    rows = [(str(i), arch, float(i % 5)) for i, arch in enumerate(archs)]
    table = make_table("nano-gpt2", space, rows, "made up", "none")
    monkeypatch.setattr("spaces.tables.load_any", lambda name, data=None, space=None: table)
    return table


def ranked(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["rank", *arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_json_is_a_list_of_the_proxies_asked_for(
    small_table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["snip", "sum(fro(G))", "rank-mean(snip, depth)"]
    options = [word for text in asked for word in ("--proxy", text)]
    rows = ranked(capsys, "nano-gpt2", *options, "--cache", str(tmp_path))
    assert {row["proxy"] for row in rows} == set(asked)
    assert [row["rho"] for row in rows] == sorted((row["rho"] for row in rows), reverse=True)
    for row in rows:
        assert row["n"] == 12
        assert -1 <= row["rho_ci"][0] <= row["rho_ci"][1] <= 1
        assert abs(row["rho_untied"]) <= abs(row["rho"])
        assert {"tau", "rho_given_params", "train", "valid", "test", "seconds"} <= set(row)
    assert ranked(capsys, "nano-gpt2", *options, "--cache", str(tmp_path)) == rows


@pytest.mark.slow
def test_a_formula_is_in_sample_on_the_table_it_was_chosen_on(
    small_table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.json"
    figures = Figures("nano-gpt2", "nano-gpt2", "made up", "0" * 64, split_seed=3)
    found = Exported("found", parse("sum(fro(W))"), Provenance("campaign", figures=(figures,)))
    file.write_text(export(Selection([found], []), "json"))
    words = ["--cache", str(tmp_path), "--proxy", str(file), "--proxy", "sum(fro(W))"]
    words += ["--proxy", f"rank-mean(depth, {file})"]
    for seed in ("0", "3"):
        assert run(["rank", "nano-gpt2", *words, "--split-seed", seed, "--format", "json"]) == 0
        out, err = capsys.readouterr()
        marked = {row["proxy"] for row in json.loads(out) if row["in_sample"]}
        assert marked == {"found", "rank-mean(depth, found)"}
        assert ("found was chosen on split 3 of nano-gpt2" in err) == (seed == "0")


def test_a_proxy_that_cannot_score_the_space_is_refused_before_any_work(
    small_table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--proxy", "snip", "--proxy", "supernet-snip-released", "--cache", str(tmp_path)]
    assert run(["rank", "nano-gpt2", *arguments]) == 2
    assert "proxy supernet-snip-released cannot score space nano-gpt2" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# They run on 16 or 32 inputs, which costs more than all others together.
ON_MORE_INPUTS = {
    *("v-pca", "w-pca", "swap", "swap-regularised", "az-expressivity", "az-progressivity"),
    *("az-trainability", "az-nas", "az-nas-vit"),
}


@pytest.mark.slow
def test_without_proxies_all_that_apply_are_ranked_but_the_expensive_ones(
    small_table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--batch", "2", "--length", "8"]
    rows = ranked(capsys, "nano-gpt2", "--cache", str(tmp_path), *small)
    applying = {n for n in names() if get(n).applies_to(small_table.space)}
    released = {n for n in applying if is_released(get(n))}
    assert applying > ON_MORE_INPUTS
    assert {row["proxy"] for row in rows} == applying - released - ON_MORE_INPUTS
    assert "auto-prox" in applying - released - ON_MORE_INPUTS  # it shares the pass of the others
    assert all(row["missing"] == 0 for row in rows)


def test_what_runs_on_more_inputs_is_ranked_where_it_is_named_and_in_no_other_case(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert {name for name in names() if must_be_named(get(name))} == ON_MORE_INPUTS
    space = spaces.get("nano-gpt2")
    with_released = {proxy.name for proxy in ranked_by_default(space, with_released=True)}
    assert not with_released & ON_MORE_INPUTS
    assert with_released > {proxy.name for proxy in ranked_by_default(space)}
    assert run(["rank", "--help"]) == 0
    default = " ".join(capsys.readouterr().out.split()).split("those that run on more inputs: ")[1]
    stems = tuple(default.split("]")[0].split(", "))
    assert all(name.startswith(stems) for name in ON_MORE_INPUTS)
    assert not [name for name in names() if name.startswith(stems) and name not in ON_MORE_INPUTS]


@pytest.mark.slow
def test_an_expensive_proxy_is_ranked_by_its_name(
    small_table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = ranked(capsys, "nano-gpt2", "--proxy", "v-pca", "--cache", str(tmp_path))
    assert (row["proxy"], row["missing"]) == ("v-pca", 0)


@pytest.mark.slow
def test_the_table_has_sizes_beside_the_proxies(
    small_table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--proxy", "depth", "--proxy", "snip", "--seeds", "2", "--cache", str(tmp_path)]
    assert run(["rank", "nano-gpt2", *arguments]) == 0
    out = capsys.readouterr().out
    assert "for comparison, the counters" in out
    assert [out.count(f"\n{name} ") for name in ("snip", "depth", "parameters")] == [1, 1, 1]
    assert " ± " in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nano-gpt2", "--proxy", "snipp"], "did you mean 'snip'?"),
        (["nano-gpt2", "--proxy", "sum(blur(G))"], "blur"),
        (["nano-gpt2", "--proxy", "none.json"], "no file none.json"),
        (["nano-gpt", "--proxy", "snip"], "unknown table 'nano-gpt'"),
        (["nano-gpt2", "--seeds", "0"], "0 is not in the range"),
        (["nano-flexibert", "--loss", "next-token", "--proxy", "snip"], "predicts no tokens"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rank", *arguments, "--cache", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.strip().splitlines()[-1].startswith("error: ")


@pytest.mark.slow
def test_the_batch_can_be_chosen_and_a_bad_corpus_is_one_line(
    small_table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(b"the quick brown fox jumps over the lazy dog" * 9)
    asked = ["nano-gpt2", "--proxy", "snip", "--proxy", "sum(l1(A))", "--cache", str(tmp_path)]

    def rhos(*options: str) -> dict[str, float]:
        return {row["proxy"]: row["rho"] for row in ranked(capsys, *asked, *options)}

    assert rhos() != rhos("--batch", "3", "--length", "9", "--corpus", str(text))
    assert rhos() == rhos("--batch", "8", "--length", "64")  # the space's own
    for wrong in (["--corpus", str(tmp_path / "none")], ["--length", "65"]):
        assert run(["rank", *asked, *wrong]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1

"""Campaigns on columns: the space, its variation, what is found, resuming; with networks too."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpzero.arrays import FloatArray
from lpzero.discover.discovery import Campaign
from lpzero.discover.language import Language
from lpzero.discover.settings import preset
from lpzero.discover.variation import as_global_rng
from lpzero.errors import InputError
from lpzero.judgement.counters import score as count
from lpzero.runs import layout
from lpzero.scores.columns import ColumnFacts, parts_of
from primitives.canonical import canonical
from primitives.parser import parse
from spaces.tables import Table
from spaces.tables.column_files import read_columns
from spaces.tables.readers import ReadOptions
from tests.lpzero.column_file import TARGET, write_csv
from tests.lpzero.discover.toolboxes import toolbox_of, variation_of
from tests.lpzero.small_campaign import discovery, table

SMALL: dict[str, Any] = {"population": 24, "offspring": 12, "generations": 3, "permutations": 0}
FACTS = ColumnFacts(
    ("size", "cost", "change"), frozenset({"size"}), frozenset({"size", "cost", "change"})
)
ONLY = Language(preset("default", columns_only=True), FACTS)
MIXED = Language(preset("default"), FACTS)


def campaign(folder: Path, out: Path | None = None, **options: Any) -> Campaign:
    given = read_columns(write_csv(folder), ReadOptions(target=TARGET))
    return Campaign(given, out=out, **(SMALL | options))


@pytest.mark.parametrize("language", [ONLY, MIXED])
def test_what_is_drawn_and_varied_stays_in_the_space(language: Language) -> None:
    rng, toolbox = random.Random(1), toolbox_of(language)
    kinds = set()
    with as_global_rng(rng):
        drawn = [language.draw(random) for _ in range(150)]  # type: ignore[arg-type]
        formulas = [formula for formula in drawn if language.why_outside(formula) is None]
        assert len(formulas) > 100
        for first, second in pairwise(formulas):
            for made in (first, toolbox.mate(first, second), toolbox.mutate(first)):
                assert language.why_outside(made) is None, str(made)
                assert parse(str(made)) == made
                kinds.add((bool(made.columns), bool(made.terms), parts_of(made) is not None))
        for near in variation_of(language).neighbours(formulas[0]):
            assert language.why_outside(near) is None
    is_mixed = language is MIXED
    assert ((True, False, True) in kinds, (True, True, False) in kinds) == (True, is_mixed)


def test_a_ranking_of_columns_has_one_text() -> None:
    texts = {
        str(ONLY.product(parse_factors(text)))
        for text in (
            "size 1 cost -1/2",
            "cost -1 size 2",
            "size 1/2 cost -1/4",
            "size -1 cost 1/2",  # the sign is fitted
        )
    }
    assert texts == {"mul(inverse(sqrt(abs(cost))), size)"}


def parse_factors(text: str) -> Any:
    from fractions import Fraction

    from primitives.formula import Column

    words = text.split()
    return [(Column(a), Fraction(b)) for a, b in zip(words[::2], words[1::2], strict=True)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mul(size, speed)", "column speed, which a campaign does not know"),
        ("mul(size, sum(l1(W)))", "with --columns-only there are columns alone"),
        ("add(signed_log(size), log(cost), change, log(size), log(change))", "5 terms, 4"),
    ],
)
def test_why_a_formula_is_outside(text: str, reason: str) -> None:
    assert reason in str(ONLY.why_outside(parse(text)))


@pytest.mark.slow
def test_a_campaign_on_a_file_finds_the_product_and_the_rivals_are_columns(tmp_path: Path) -> None:
    found = campaign(tmp_path).run()
    result = found.result_
    assert result["best"]["rho"]["test"] > 0.93
    assert {"model_size", "params_column", "cost"} <= set(parse(result["best"]["formula"]).columns)
    rivals = [line["proxy"] for line in result["counters"]]
    assert rivals[:3] == ["model_size", "params_column", "cost"]
    assert rivals[3] in ("change", "-change")
    assert result["count"] is None
    assert result["stability"] is None
    (against,) = result["differences"]
    known = found.objective.tables_fitness[0].train_valid_rho
    columns = found.objective.tables_fitness[0].columns.values
    best = max(columns, key=lambda name: abs(known(columns[name][np.newaxis])[0]))
    assert against["against"].lstrip("-") == best
    assert f"{best} (the best column on train and valid)" in result["verdict"]
    assert result["best"]["judged"]["metrics"]["test"]["rho_given_params"] is None
    assert result["tables"][0]["space"] == "none"


@pytest.mark.slow
def test_the_targets_of_test_rows_are_not_there_during_the_search(tmp_path: Path) -> None:
    first = campaign(tmp_path).search()
    spoilt = read_columns(write_csv(tmp_path), ReadOptions(target=TARGET))
    targets = spoilt.targets.copy()
    (fitness,) = first.objective.tables_fitness
    test = np.setdiff1d(np.arange(len(spoilt)), fitness.train_valid_rows)
    targets[test] = 1e6 * np.arange(len(test))
    again = Campaign(replace(spoilt, targets=targets), **SMALL).search()
    assert again.hall_of_fame_ == first.hall_of_fame_


@pytest.mark.slow
def test_a_stopped_campaign_on_columns_ends_as_an_unstopped_one(tmp_path: Path) -> None:
    path, reading = str(write_csv(tmp_path)), ReadOptions(target=TARGET)
    Campaign(path, reading=reading, out=tmp_path / "whole", **SMALL).run()
    stop = {"callbacks": [lambda progress: progress.generation == 1]}
    Campaign(path, reading=reading, out=tmp_path / "cut", **SMALL, **stop).search()
    (tmp_path / "cut" / layout.CHECKPOINT).unlink()  # replays the journal
    Campaign(out=tmp_path / "cut", resume=True, permutations=0).run()
    for name in (layout.JOURNAL, layout.HALL, layout.RESULT, layout.SCORES):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()


@pytest.mark.slow
def test_columns_as_ranks_make_a_rank_combined_proxy_that_says_so(tmp_path: Path) -> None:
    result = campaign(tmp_path, columns_as="ranks").run().result_
    assert all(name.startswith("rank-of-") for name in parse(result["best"]["formula"]).columns)
    assert "It is a rank-combined proxy" in result["verdict"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ("speed",)}, "table metrics has no column 'speed'"),
        ({"terms_from": ("snip",)}, "table metrics has no networks that snip could score"),
        ({"terms": 1}, "they need --terms 2 or more"),
        ({"objectives": ("given-params",)}, "no networks, hence no parameters"),
        ({"objectives": ("within",)}, "cannot be measured"),
        ({"start": ("mul(cost, speed)",)}, "column speed, which a campaign does not know"),
    ],
)
def test_what_a_table_of_columns_does_not_have_is_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        campaign(tmp_path, **options).search()


def sizes(table: Table, names: Sequence[str], options: Any) -> Mapping[str, FloatArray]:
    """Counters as proxies; those of another seed differ a little."""
    return {name: count(name, table) + 0.001 * options.seed for name in names}


@pytest.mark.slow
def test_columns_are_terms_beside_those_of_networks() -> None:
    latency = np.array([float(len(i)) + k for k, i in enumerate(table().ids)])
    given = replace(table(), extra={"Latency": latency, "other": latency})
    found = discovery(
        table=[given],
        terms=3,
        columns=("Latency",),
        terms_from=("depth", "parameters"),
        proxy_scores=sizes,
        choose="stable",
        start=("mul(depth, sum(l1(W)))", "sub(signed_log(latency), log(depth))"),
        population=24,
    ).run()
    (fitness,) = found.objective.tables_fitness
    assert set(fitness.columns.beside_counters) == {"latency", "depth", "parameters"}
    assert {"flops", "sept"} <= fitness.columns.counters
    tried = [canonical(c.formula) for c in found.outcome_.hall.entries]
    assert any("depth" in formula.columns for formula in tried)
    assert {"latency", "-latency"} & {line["proxy"] for line in found.result_["counters"]}
    roles = [line["against"] for line in found.result_["differences"]]
    assert roles[0] == "best count"
    assert len(roles) in (2, 3)


@pytest.mark.slow
def test_columns_only_on_a_table_with_networks_reads_no_sketch() -> None:
    found = Campaign(
        table(), columns_only=True, terms_from=("depth", "parameters"), proxy_scores=sizes, **SMALL
    ).run()
    assert not parse(found.best_["formula"]).terms
    assert found.result_["stability"]["least"] > 0.99
    assert found.result_["count"] is not None

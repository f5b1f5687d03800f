"""Rows of an experiment are computed once, and random rows of a table are a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from experiments.resumable import Row, random_rows, resume
from lpzero.errors import InputError
from tests.lpzero.proxies.test_ranking import TABLE


def test_a_stopped_experiment_continues_with_what_is_missing(tmp_path: Path) -> None:
    asked: list[str] = []

    def work(key: str) -> Iterator[Row]:
        asked.append(key)
        yield {"value": len(key)}
        if key == "fails":
            raise RuntimeError
        yield {"value": -len(key)}

    path = tmp_path / "rows.jsonl"
    with pytest.raises(RuntimeError):
        resume(path, ["one", "fails", "three"], work)
    found = resume(path, ["three", "one"], work)
    assert asked == ["one", "fails", "three"]
    values = [(row["key"], row["value"]) for row in found]
    assert values == [("three", 5), ("three", -5), ("one", 3), ("one", -3)]


def test_random_rows_are_the_first_of_one_order() -> None:
    few, more = random_rows(TABLE, 3), random_rows(TABLE, 5)
    assert (len(few), len(more)) == (3, 5)
    assert set(few.ids) < set(more.ids) < set(TABLE.ids)
    places = [TABLE.ids.index(name) for name in more.ids]
    assert places == sorted(places)
    assert [TABLE.archs[i] for i in places] == list(more.archs)
    assert np.array_equal(TABLE.targets[places], more.targets)
    assert more.digest != few.digest != TABLE.digest
    assert random_rows(TABLE, None) is random_rows(TABLE, len(TABLE)) is TABLE
    with pytest.raises(InputError, match="needs at least 3"):
        random_rows(TABLE, 2)

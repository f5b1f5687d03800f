"""Runs of somebody else as Python objects: their files are data, and junk in them is one error."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import lpzero
from lpzero.errors import InputError
from lpzero.runs import layout
from tests.lpzero.sealed_runs import content, rewrite

ELSEWHERE: dict[str, Any] = {
    "scheduler": "tcp://192.0.2.1:8786", "out": "elsewhere", "track": ["mlflow:http://192.0.2.1"],
    "cache": "elsewhere", "corpus": "secret.txt", "jobs": 99, "plugins": ["evil.py"],
}  # fmt: skip


@pytest.fixture
def run(campaign: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(campaign, tmp_path / "run"))


def test_where_a_loaded_campaign_computes_is_not_what_its_files_say(run: Path) -> None:
    config = content(run, layout.CONFIG)
    config["request"]["settings"] |= ELSEWHERE
    rewrite(run, layout.CONFIG, config)
    loaded = lpzero.load(run)
    assert isinstance(loaded, lpzero.Discovery)
    usual = lpzero.Discovery().get_params()
    given = loaded.get_params()
    assert given["out"] == str(run)
    for name in ELSEWHERE.keys() - {"out"}:
        assert given.get(name) == usual.get(name), name


@pytest.mark.parametrize("junk", [None, 3, [], {}, "x"])
def test_junk_in_a_result_is_one_error(junk: object, run: Path) -> None:
    result = content(run, layout.RESULT)
    rewrite(run, layout.RESULT, {**result, "best": junk})
    with pytest.raises(InputError, match="are not those of a run of this version"):
        lpzero.load(run)


@pytest.mark.parametrize("junk", [None, 3, [], {}, "x"])
def test_junk_that_is_not_read_does_no_harm(junk: object, run: Path) -> None:
    result = content(run, layout.RESULT)
    rewrite(run, layout.RESULT, {**result, "difference": junk, "verdict": junk})
    assert repr(lpzero.load(run)).startswith("Discovery(")

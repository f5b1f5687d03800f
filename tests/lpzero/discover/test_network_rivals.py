"""NTSR among a campaign's rivals: on the test rows alone, where they are few."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpzero.discover.campaign_columns import MOST_NETWORKS, NetworkRivals
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from lpzero.judgement.table import TableJudge
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies.ranking import ProxyColumns
from lpzero.runs import layout
from lpzero.sketches.sketch import SketchOptions
from spaces.tables import split
from tests.lpzero.sealed_runs import content
from tests.lpzero.small_campaign import discovery, table


def of(n: int, proxy_scores: Any) -> list[Any]:
    made = table(n)
    judged = TableJudge(made, split(made, 0), with_test=True)
    return NetworkRivals(proxy_scores, SketchOptions()).of(judged)


@pytest.mark.slow
def test_ntsr_of_the_test_rows_is_a_rival_of_the_winner(tmp_path: Path) -> None:
    context = Context(folder=tmp_path / "cache")
    made = table(24)
    discovery(tmp_path / "run", table=made, proxy_scores=ProxyColumns(context)).run()
    lines = content(tmp_path / "run", layout.SCORES)["tables"]["made-up"]["rivals"]
    (line,) = [line for line in lines if line["proxy"] == "ntsr"]
    rows = split(made, 0).open_test()
    archs = [made.archs[i] for i in rows]
    alone = get("ntsr").score(made.space, archs, Measurements(Context()))
    assert (line["kind"], line["n"]) == ("zoo", len(rows))
    assert line["rho"] == pytest.approx(spearman(alone, made.targets[rows]))
    assert line["difference"]["n"] == len(rows)


def test_only_test_rows_are_run_and_not_too_many() -> None:
    asked: list[int] = []

    def scores(made: Any, names: Any, options: Any) -> dict[str, Any]:
        asked.append(len(made))
        return {"ntsr": np.arange(float(len(made)))}

    (rival,) = of(40, scores)
    assert asked == [int(np.isfinite(rival.scores).sum())] == [12]
    assert of(4 * MOST_NETWORKS, scores) == []
    assert of(40, None) == []
    assert len(asked) == 1


@pytest.mark.parametrize("error", [InputError("no"), RuntimeError("a hook is missing")])
def test_a_space_that_it_cannot_score_has_no_such_rival(error: Exception) -> None:
    def scores(made: Any, names: Any, options: Any) -> Any:
        raise error

    assert of(40, scores) == []

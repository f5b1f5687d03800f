"""A predictor on real networks: the campaign's own scores again, from Python and from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lpzero
from lpzero.discover.discovery import Campaign
from lpzero.export import export, select
from lpzero.proxies import Context, Measurements, find
from lpzero.proxies.predictor import PredictorProxy
from lpzero.search.ledger import Ledger
from lpzero.search.scorer import Scorer
from spaces.tables import load
from spaces.tables.table import make_table

pytestmark = pytest.mark.slow
N = 26


@pytest.mark.parametrize("weights_seeds", [2, 1])
def test_labelled_rows_have_their_scores_again_without_the_table(
    tmp_path: Path, weights_seeds: int
) -> None:
    whole = load("nano-gpt2")
    order = sorted(range(len(whole)), key=lambda i: whole.space.flops(whole.archs[i]))
    rows = [(str(i), whole.archs[i], float(whole.targets[i])) for i in order[:N]]
    table = make_table("small", whole.space, rows, whole.target, "none")
    asked = {"generations": 0, "permutations": 0, "statistics": ("W",), "unaries": 0}
    campaign = Campaign(
        table,
        out=tmp_path / "run",
        cache=tmp_path / "cache",
        weights_seeds=weights_seeds,
        **asked,
    ).run()
    assert campaign.prediction_ is not None
    expected = campaign.prediction_.scores
    measurements = Measurements(Context(folder=tmp_path / "cache"))

    text = export(select(str(tmp_path / "run")), "json", predictor=True)
    (tmp_path / "p.json").write_text(text)
    proxy = find(str(tmp_path / "p.json"))
    assert isinstance(proxy, PredictorProxy)
    assert proxy.n_seeds == weights_seeds
    again = proxy.score(table.space, table.archs, measurements)
    np.testing.assert_allclose(again, expected, rtol=0, atol=1e-9)

    loaded = lpzero.Discovery.load(tmp_path / "run").set_params(cache=str(tmp_path / "cache"))
    scores, deviations = loaded.predictor_.predict(table.archs[:3], return_std=True)
    np.testing.assert_allclose(scores, expected[:3], rtol=0, atol=1e-9)
    assert (deviations > 0).all()

    scorer = Scorer(proxy, table.space, measurements, Ledger(table.space))
    np.testing.assert_allclose(scorer.scores(table.archs[:4]), expected[:4], rtol=0, atol=1e-9)

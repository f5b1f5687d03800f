"""A campaign read as it grows equals the campaign that is read as a whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lpzero.discover import record
from lpzero.discover.candidate import Candidate
from lpzero.discover.hall_of_fame import Tally
from lpzero.discover.record import CampaignRun, watch
from lpzero.runs import journal, layout
from lpzero.runs.run import open_run
from tests.lpzero.sealed_runs import rewrite_journal
from tests.lpzero.small_campaign import discovery

pytestmark = pytest.mark.slow

OPTIONS = {"generations": 12, "population": 60, "offspring": 60}
COMPARED = ("tables", "scores", "hall", "counts", "rejected")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("live") / "campaign"
    discovery(out, **OPTIONS).run()
    return out


def opened(folder: Path) -> CampaignRun:
    found = open_run(folder)
    assert isinstance(found, CampaignRun)
    return found


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_the_tally_of_a_journal_is_that_of_its_candidates(campaign: Path, size: int) -> None:
    whole = discovery(campaign, resume=True, **OPTIONS).search()
    lines = opened(campaign).lines
    assert len(lines) > 500
    tally = Tally()
    for start in range(0, len(lines), size):
        tally.count([Candidate.from_json(line) for line in lines[start : start + size]])
    expected = whole.outcome_.tally
    assert tally.history == expected.history
    assert (tally.tried, tally.evaluated, tally.repeats) == (
        expected.tried,
        expected.evaluated,
        expected.repeats,
    )
    assert tally.rejected == expected.rejected
    assert tally.hall.rows(["made-up"]) == whole.hall_of_fame_


def test_a_run_without_a_result_is_read_as_it_grows(campaign: Path, tmp_path: Path) -> None:

    folder = tmp_path / "growing"
    shutil.copytree(campaign, folder)
    (folder / layout.RESULT).unlink()
    lines = [dict(line) for line in opened(folder).lines]
    config = opened(folder).config
    live = watch(config)
    for n in (100, 400, len(lines)):
        rewrite_journal(folder, lines[:n])
        seen, whole = live.update(10), opened(folder)
        for name in COMPARED:
            assert getattr(seen, name) == getattr(whole, name), (n, name)
        assert [int(row["evaluated"]) for row in seen.history] == [
            int(row["evaluated"]) for row in whole.history
        ]
        assert seen.remarks == whole.remarks
        assert live.now().facts["formulas evaluated"] == f"{whole.counts['evaluated']:,}"
    assert live.update(10) is seen


@pytest.mark.parametrize("small", [0, 8 << 20])
def test_the_journal_of_a_finished_campaign_may_stay_unread(
    campaign: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(record, "_SMALL", small)
    seen, whole = watch(opened(campaign).config).update(10), opened(campaign)
    for name in (*COMPARED, "result", "remarks"):
        assert getattr(seen, name) == getattr(whole, name), name
    assert [float(row["fitness"]) for row in seen.history] == [
        row["fitness"] for row in whole.history
    ]
    assert bool(seen.lines) == bool(small)


def test_what_a_campaign_published_counts_every_formula_once(
    campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A formula that is rejected for its scores was evaluated too."""
    whole = opened(campaign)
    assert sum("key" in line and "rejected" in line for line in whole.lines) > 0
    folder = tmp_path / "behind"
    shutil.copytree(campaign, folder)
    (folder / layout.RESULT).unlink()
    monkeypatch.setattr(journal.JournalFollower.read, "__defaults__", (1000,))
    seen = watch(opened(folder).config).update(0)
    assert any("being read" in remark for remark in seen.remarks)
    assert seen.counts == whole.counts


def test_a_formula_of_an_unknown_operation_is_left_out_and_said(
    campaign: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "plug-in"
    shutil.copytree(campaign, folder)
    (folder / layout.RESULT).unlink()
    whole = opened(folder)
    best = whole.hall[0]["id"]
    lines = [dict(line) for line in whole.lines]
    lines[best]["formula"] = "sum(unheard(W))"
    rewrite_journal(folder, lines)
    found = opened(folder)
    assert [row["id"] for row in found.hall] == [row["id"] for row in whole.hall][1:]
    assert any("1 of the best formulas" in remark for remark in found.remarks)

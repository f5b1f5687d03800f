"""What `import lpzero` offers, and the page that shows it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpzero
from lpzero.errors import InputError
from lpzero.python.rows import Rows
from spaces.tables import load
from tests.lpzero.few_rows import few_rows

PAGE = Path(__file__).parents[3] / "docs" / "in-a-notebook.md"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The names that the page's code defines."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch, few_rows():
        patch.chdir(tmp_path_factory.mktemp("page"))
        for block in blocks:
            exec(block, names)  # noqa: S102
        yield names


@pytest.mark.slow
def test_the_code_of_the_page_runs(shown: dict[str, Any]) -> None:
    found, table = shown["found"], shown["table"]
    assert found.score("nano-gpt2") == pytest.approx(
        lpzero.rank("nano-gpt2", str(found.best_.formula))[0]["rho"]
    )
    as_json = [table.space.to_json(arch) for arch in table.archs[:3]]
    np.testing.assert_array_equal(found.predict(as_json), found.predict(table.archs[:3]))
    assert found.get_params()["generations"] == 2
    assert found.run_.settings["crossover"] == 0.5
    assert found.best_["rho"].keys() == {"train", "valid", "test"}
    assert f"{found.best_['rho']['test']:.3f}" in repr(found)
    assert "<table>" in found._repr_html_()
    assert str(found.best_.formula) in [line["formula"] for line in found.result_["top"]]
    assert len(found.history_) == 3
    assert shown["best_rho"] == max(row["rho"] for row in shown["ranked"])
    assert Path("best.json").exists()
    assert shown["architecture"]["proxy"] == "mine.json"
    assert repr(shown["mine"]) == "mul(sum(l1(A)), inverse(mean(fro(W))))"
    assert str(found.best_.formula) in shown["page"].html
    assert len(shown["figure"].data) > 0


@pytest.mark.slow
def test_a_campaign_that_has_not_run_says_so() -> None:
    waiting = lpzero.Discovery("nano-gpt2", generations=1)
    assert repr(waiting) == "Discovery(nano-gpt2, generations=1)"
    assert "not fitted" in waiting._repr_html_()
    with pytest.raises(InputError, match="call fit"):
        waiting.latex()


def test_rows_are_printed_shown_and_escaped() -> None:
    rows = Rows([{"name": "<b>", "rho": 0.25, "more": None}, {"name": "long", "rho": 1}], ("name",))
    assert repr(rows) == "name\n<b>\nlong"
    assert "<td>&lt;b&gt;</td>" in rows._repr_html_()
    ragged = Rows([{"b": 1}, {"a": 2, "b": 3}, {"c": None}])
    assert [line.split() for line in repr(ragged).splitlines()] == [
        ["b", "a", "c"], ["1", "-", "-"], ["3", "2", "-"], ["-", "-", "-"]
    ]  # fmt: skip
    assert ragged._repr_html_().startswith("<table><thead><tr><th>b</th><th>a</th><th>c</th></tr>")
    assert repr(Rows([{"a": 1}], ("gone",))).split() == ["a", "1"]
    assert repr(Rows()) == "no rows"
    assert repr(Rows({"n": i} for i in range(25))).endswith("... and 15 more")


@pytest.mark.slow
@pytest.mark.slow
def test_the_types_of_rows_name_what_rows_have(shown: dict[str, Any]) -> None:
    from lpzero.python import rows

    [step, *_] = shown["architecture"].history_
    for kind, row in (
        (rows.RankedRow, shown["ranked"][0]),
        (rows.Judged, shown["ranked"][0]["test"]),
        (rows.GenerationRow, shown["found"].history_[0]),
        (rows.StepRow, step),
        (rows.FoundArch, shown["architecture"].best_),
    ):
        assert set(row) <= set(kind.__annotations__), kind
        assert set(row) >= kind.__required_keys__
    measures = {"nano-gpt2 rho", "nano-gpt2 rho_given_params", "nano-gpt2 rho_within"}
    assert set(shown["found"].hall_of_fame_[0]) <= set(rows.FormulaRow.__annotations__) | measures


def test_rows_become_a_frame_where_pandas_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows([{"name": "a", "rho": 0.25}, {"name": "b", "rho": 1.0}], ("name",))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pandas", None)
        with pytest.raises(InputError, match="pandas is not installed"):
            rows.to_pandas()
    pytest.importorskip("pandas")
    assert rows.to_pandas()["rho"].tolist() == [0.25, 1.0]


def test_tables_are_loaded_by_name_and_by_path(tmp_path: Path) -> None:
    assert lpzero.load_table("nano-gpt2").digest == load("nano-gpt2").digest
    path = tmp_path / "numbers.csv"
    path.write_text("id,depth,accuracy\na,1,0.5\nb,2,0.7\nc,3,0.9\n")
    table = lpzero.load_table(path, target="accuracy")
    assert table.space is None
    assert list(table.columns) == ["depth"]


@pytest.mark.parametrize("code", ["import lpzero", "import lpzero; lpzero.__all__; dir(lpzero)"])
def test_importing_is_cheap(code: str) -> None:
    words = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    loaded = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "scipy", "sympy", "matplotlib", "click"} & set(loaded)


@pytest.mark.slow
def test_the_package_is_a_command() -> None:
    words = [sys.executable, "-m", "lpzero", "--version"]
    assert "lpzero" in subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_every_name_is_there() -> None:
    for name in lpzero.__all__:
        if name != "hf":  # which needs an extra
            assert getattr(lpzero, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'serch'"):
        lpzero.serch  # noqa: B018

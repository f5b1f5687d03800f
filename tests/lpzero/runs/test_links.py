"""No file of the user's is changed through a link in a run's directory, whichever verb writes.

The files and folders to attack are found by listing what a finished run of each verb has written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lpzero.cli.main import run
from lpzero.exhaust.run import ExhaustSettings, exhaust
from lpzero.runs import layout
from spaces.tables import split
from tests.lpzero import small_campaign
from tests.lpzero.column_file import write_csv
from tests.lpzero.verbs.test_reproduce import FILES

Write = Callable[[Path], int]
_SEARCH = ["search", "nano-gpt2", "--proxy", "depth", "--evaluator", "table", "--quiet"]
_SUPERNET = ["train", "--supernet", "nano-autoformer", "--steps", "2", "--every", "1"]
TRAINED = """
import lpzero
from tests.spaces.own.small_space import CHOICES, Model

SPACE = lpzero.space(CHOICES, name="linked", build=Model, batch=(2, 6), train=lambda arch, seed: 1.0
                     * arch.width * arch.layers + seed)
"""


def resumed(words: list[str], folder: Path) -> int:
    more = ["--resume"] if folder.exists() else []
    return run([*words, "--out", str(folder), *more])


def discover(folder: Path) -> int:
    table = str(write_csv(folder.parent))
    words = ["discover", table, "--target", "accuracy", "--columns-only", "--generations", "2"]
    words += ["--population", "8", "--permutations", "0", "--splits", "0", "--quiet"]
    return resumed(words, folder)


def search(folder: Path) -> int:
    return resumed([*_SEARCH, "--loop", "random", "--samples", "6"], folder)


def compare(folder: Path) -> int:
    words = ["--compare", "--loop", "random", "--samples", "6", "--seeds", "2"]
    return resumed([*_SEARCH, *words], folder)


def rank(folder: Path) -> int:
    table = str(write_csv(folder.parent))
    words = ["rank", table, "--target", "accuracy", "--proxy", "cost"]
    return run([*words, "--out", str(folder)])


def train(folder: Path) -> int:
    (folder.parent / "linked_space.py").write_text(TRAINED)
    words = ["train", str(folder.parent / "linked_space.py:SPACE"), "--n", "4", "--quiet"]
    return run([*words, "--out", str(folder)])


def train_supernet(folder: Path) -> int:
    preferred = str(FILES["PREFERRED"](folder.parent))
    words = [*_SUPERNET, "--batch", "4", "--images", "20", "--select", preferred, "--quiet"]
    return run([*words, "--out", str(folder)])


def exhaust_table(folder: Path) -> int:
    table, asked = small_campaign.table(), ExhaustSettings(unaries=1, progress=False)
    try:
        exhaust(table, small_campaign.sketches(), split(table, 0), folder, asked)
    except ValueError:
        return 2
    return 0


def report(folder: Path) -> int:
    if not folder.exists():
        search(folder)
    return run(["report", str(folder)])


WRITERS = [
    discover,
    search,
    rank,
    exhaust_table,
    report,
    pytest.param(compare, marks=pytest.mark.slow),
    pytest.param(train, marks=pytest.mark.slow),
    pytest.param(train_supernet, marks=pytest.mark.slow),
]


def shorten(folder: Path) -> None:
    """Cut the run's journals in half and remove what was written last, so that it is written."""
    for journal in folder.rglob(layout.JOURNAL):
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[: len(lines) // 2]))
    for name in (layout.RESULT, layout.CHECKPOINT, "00000.npz"):
        for path in folder.rglob(name):
            path.unlink()


def content(path: Path) -> dict[str, bytes]:
    """The bytes of every file below the path, or of the file itself."""
    paths = path.rglob("*") if path.is_dir() else [path]
    return {str(inner): inner.read_bytes() for inner in paths if inner.is_file()}


def replace_by_link(path: Path, victim: Path, make_link: Callable[[Path, Path], None]) -> None:
    victim.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, victim)
        shutil.rmtree(path)
    elif path.exists():
        shutil.copy(path, victim)
        path.unlink()
    else:  # it was removed, so that the run writes it again
        victim.write_bytes(b"the user's own")
    make_link(victim, path)


def attacks(folder: Path) -> list[tuple[list[Path], Callable[[Path, Path], None]]]:
    """Which names are replaced at the same time, and by which kind of link.

    What is refused hides what would be written after it: such files and every folder are replaced
    one at a time, all other files together.
    """
    names = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    folders = [name for name in names if (folder / name).is_dir()]
    alone = [[name] for name in names if name.name in (layout.CONFIG, layout.LOCK, layout.JOURNAL)]
    rest = [name for name in names if [name] not in alone and name not in folders]
    groups = [*alone, rest]
    by_symlink = [(group, os.symlink) for group in [*groups, *([name] for name in folders)]]
    return [*by_symlink, *((group, os.link) for group in groups)]


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITERS)
def test_nothing_behind_a_link_is_changed(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = tmp_path / "finished"
    assert write(finished) == 0
    for number, (names, make_link) in enumerate(attacks(finished)):
        place = tmp_path / str(number)
        folder, victims = place / "run", place / "victims"
        shutil.copytree(finished, folder)
        shorten(folder)
        for name in names:
            replace_by_link(folder / name, victims / name, make_link)
        before = content(victims)
        capsys.readouterr()
        code = write(folder)
        said = capsys.readouterr().err
        assert content(victims) == before, f"{names} through {make_link.__name__}"
        assert code in (0, 2), said
        assert "unexpected" not in said
        assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("name", [layout.LOCK, layout.JOURNAL])
@pytest.mark.parametrize("make_link", [os.symlink, os.link])
def test_a_link_that_would_be_written_through_is_named(
    tmp_path: Path,
    name: str,
    make_link: Callable[[Path, Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "run"
    assert discover(folder) == 0
    replace_by_link(folder / name, tmp_path / "victim", make_link)
    capsys.readouterr()
    assert discover(folder) == 2
    said = capsys.readouterr().err
    assert str(folder / name) in said
    assert "link" in said
    assert said.count("\n") == 1


@pytest.mark.slow
def test_a_report_folder_that_is_a_link_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    assert discover(folder) == 0
    elsewhere.mkdir()
    (folder / "report").symlink_to(elsewhere)
    assert run(["report", str(folder)]) == 2
    assert "is a link" in capsys.readouterr().err
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("write", [discover, search, compare, rank])
@pytest.mark.parametrize("names", [("lock",), ("lock", "notes.txt"), ("notes.txt",), ("runs",)])
def test_a_folder_of_other_things_is_left_as_it_is(
    write: Write, names: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "foreign"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("do not touch")
    before = content(folder)
    assert write(folder) == 2
    assert f"contains {names[0]} but no" in capsys.readouterr().err
    assert content(folder) == before

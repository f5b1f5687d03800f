"""The targets of `make fuzz` on valid files, seeded mutations and past findings."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import targets
from tests.fuzz.child import dictionary
from tests.fuzz.run import Fuzzed, fuzzed
from tests.fuzz.targets import TARGETS, Target, mutations, problem

N_MUTATIONS = 200
SLOW = {"run", "space-yaml"}  # they read many files, and import transformers

DIGITS, HEXADECIMAL = b"9" * 400, b"0x" + b"f" * 5000  # no float, no decimal text
CAMPAIGN, EXHAUSTIVE = TARGETS["run"].corpus()[:2]
OPTIONS = b'"options": {"tables": ["one"], "seed": 3}'
# Inputs that were once read in a wrong way, by target.
FINDINGS: list[tuple[str, bytes]] = [
    ("table-naslib", b'{"t": {"a": {"val_accuracy": %b, "x": {"score": 1}}}}' % DIGITS),
    ("layout", b'{"H": [{"module": "a", "element": 1e999}]}'),
    ("project-yaml", b"tables:\n  ? %b\n  : {}\n" % HEXADECIMAL),
    ("project-yaml", b"tables:\n  a:\n    ? %b\n    : 1\n" % HEXADECIMAL),
    ("project-yaml", b"tables: {a: {file: ~nobody-has-this-name.csv}}"),
    ("space-yaml", b"model_type: !!bool x"),
    ("space-yaml", b"search:\n  ? %b\n  : [1]\n" % HEXADECIMAL),
    ("space-yaml", b"search: {n_layer: [1]}\nfields:\n  a:\n    ? %b\n    : 1\n" % HEXADECIMAL),
    ("run", EXHAUSTIVE.replace(b'"unaries": 1', b'"unaries": 3')),  # 9 s
    ("run", CAMPAIGN.replace(b'"test": 0.25', b'"test": %b' % DIGITS)),
    ("run", CAMPAIGN.replace(OPTIONS, b'"options": {"preset": []}')),
    ("run", CAMPAIGN.replace(OPTIONS, b'"options": {"crossover": %b}' % DIGITS)),
]


def slow_if_imports(name: str, *values: object) -> object:
    marks = pytest.mark.slow if name in SLOW else ()
    return pytest.param(name, *values, marks=marks)


each_target = pytest.mark.parametrize("name", [slow_if_imports(name) for name in TARGETS])


def warmed_up(name: str, folder: Path) -> Target:
    """The target, once it has imported what reading needs."""
    target = TARGETS[name]
    problem(target, target.corpus()[0], folder)
    return target


@each_target
def test_every_reader_reads_a_valid_file(name: str, tmp_path: Path) -> None:
    target, has_read = warmed_up(name, tmp_path), set[int]()
    for data in target.corpus():
        assert problem(target, data, tmp_path) is None
        for number, reader in enumerate(target.readers):
            target.write(tmp_path / target.file, data)
            try:
                reader(tmp_path / target.file)
            except ValueError:
                continue
            has_read.add(number)
    assert has_read == set(range(len(target.readers)))


@each_target
def test_mutated_files_are_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    target = warmed_up(name, tmp_path)
    for data in mutations(target.corpus(), N_MUTATIONS, seed=3):
        assert problem(target, data, tmp_path) is None, data


@pytest.mark.parametrize(("name", "data"), [slow_if_imports(*found) for found in FINDINGS])
def test_past_findings_are_read_or_refused_in_one_line(
    name: str, data: bytes, tmp_path: Path
) -> None:
    target = warmed_up(name, tmp_path)
    assert data not in target.corpus()
    assert problem(target, data, tmp_path) is None


def _unexpected(path: Path) -> None:
    raise KeyError(path.name)


def _slow(path: Path) -> None:
    start = time.process_time()
    while time.process_time() - start < 0.02:
        pass


def _broken_promise(path: Path) -> None:
    assert path.read_bytes() == b"b", "another file"


def _accepting(path: Path) -> None:
    pass


def made_up(reader: Callable[[Path], object]) -> Target:
    return Target("made", "file", lambda: [b"a"], (reader,))


@pytest.mark.parametrize(
    ("reader", "found"),
    [
        (_unexpected, "unexpected KeyError: 'file'"),
        (_broken_promise, "unexpected AssertionError: another file"),
    ],
)
def test_an_unexpected_error_is_found(
    reader: Callable[[Path], object], found: str, tmp_path: Path
) -> None:
    assert found in str(problem(made_up(reader), b"a", tmp_path))


def test_a_slow_and_a_wasteful_reader_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert problem(made_up(_accepting), b"a", tmp_path) is None
    monkeypatch.setattr(targets, "MOST_SECONDS", 0.01)
    assert "more than 0.01 s" in str(problem(made_up(_slow), b"a", tmp_path))
    monkeypatch.setattr(targets, "_peak", iter([500.0, 801.0]).__next__)
    assert "more than 300 MB: 301 MB" in str(problem(made_up(_accepting), b"a", tmp_path))


def test_mutations_are_many_and_repeat_with_their_seed() -> None:
    corpus = TARGETS["formula"].corpus()
    drawn = list(mutations(corpus, 300, seed=1))
    assert drawn == list(mutations(corpus, 300, seed=1))
    assert len({*drawn} - {*corpus}) > 200


def test_the_last_numbers_of_the_fuzzer_are_taken() -> None:
    log = "INFO: seed\n#2\tINITED cov: 4 ft: 5\n#31\tNEW    cov: 17 ft: 5\n#90\tDONE   cov: 18 "
    assert fuzzed(log) == Fuzzed(90, 18)
    assert fuzzed("ModuleNotFoundError") == Fuzzed(0, 0)


def test_words_are_quoted_for_the_fuzzer() -> None:
    assert dictionary([b'a"', b"", b"x" * 65]) == '"\\x61\\x22"\n'

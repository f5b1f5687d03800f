"""Dask and Ray really run: the same bytes as one process, whatever is killed or joins late.

Each backend has one cluster for this file, killed by the last tests.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaces
from lpzero.cli.main import run
from lpzero.errors import InputError
from lpzero.parallel import Lost, stream
from lpzero.parallel.tasks import Payload
from lpzero.sketches.builder import Builder, build
from lpzero.sketches.store import Store
from tests.lpzero.parallel import loopback
from tests.lpzero.parallel.loopback import ROOT, DaskLoopback, RayLoopback

SPACE = spaces.get("nano-flexibert")
ARCHS = [SPACE.sample(random.Random(seed)) for seed in range(10)]
EXAMPLE = ROOT / "docs" / "examples" / "my_work.py"
Tell = Callable[[str, object], None]
Loopback = DaskLoopback | RayLoopback
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Loopback]]:
    """The cluster of a backend, started when it is first asked for."""
    started: dict[str, Loopback] = {}

    def of(name: str) -> Loopback:
        if name not in started:
            pytest.importorskip({"dask": "distributed"}.get(name, name))
            folder = tmp_path_factory.mktemp(name)
            started[name] = DaskLoopback(folder) if name == "dask" else RayLoopback()
        return started[name]

    yield of
    for cluster in started.values():
        cluster.close()


@pytest.fixture
def cluster(clusters: Callable[[str], Loopback], request: pytest.FixtureRequest) -> Loopback:
    return clusters(request.param)


on_each = pytest.mark.parametrize("cluster", ["dask", "ray"], indirect=True)


@on_each
def test_a_function_goes_to_each_worker_once_and_its_arrays_are_shared(
    cluster: Loopback, record_property: Tell
) -> None:
    class Counted:
        pickled = 0

        def __init__(self) -> None:
            self.numbers = np.arange(1 << 20, dtype=np.float64)

        def __getstate__(self) -> dict[str, Any]:
            type(self).pickled += 1
            return {"numbers": self.numbers}

        def __setstate__(self, state: dict[str, Any]) -> None:
            import builtins

            self.numbers = state["numbers"]
            setattr(builtins, "unpacked", getattr(builtins, "unpacked", 0) + 1)  # noqa: B010

        def __call__(self, x: int) -> tuple[int, int, float, bool]:
            import builtins

            time.sleep(0.02)
            unpacked: int = builtins.unpacked  # type: ignore[attr-defined]
            return os.getpid(), unpacked, float(self.numbers[x]), self.numbers.flags.writeable

    counted = Counted()
    size = Payload.of(counted).nbytes
    found = dict(stream(counted, range(40), cluster.workers))
    assert Counted.pickled == 2  # once above
    answers = [one for one in found.values() if not isinstance(one, Lost)]
    assert [found[i][2] for i in range(40)] == list(range(40))  # type: ignore[index]
    processes = {pid for pid, *_ in answers}
    assert len(processes) == 2
    assert {unpacked for _, unpacked, *_ in answers} == {1}
    assert not any(writeable for *_, writeable in answers)
    told = f"{size:,} bytes sent once to each of 2 processes for 40 items"
    record_property("cluster", f"{cluster.backend}: {told}")


@on_each
def test_sketches_have_the_same_bytes_though_a_worker_is_killed(
    cluster: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Tell
) -> None:
    build(SPACE, ARCHS, Builder(store=Store(tmp_path / "one")))

    def identify(x: int) -> int:
        time.sleep(0.1)
        return os.getpid()

    [victim, *_] = dict(stream(identify, range(4), cluster.workers)).values()
    assert isinstance(victim, int)
    written = []
    has = Store.has

    def kill_after_three(self: Store, space: str, address: str) -> bool:
        found = has(self, space, address)
        if found:
            written.append(address)
            if len(written) == 3:
                loopback.kill(victim)
        return found

    monkeypatch.setattr(Store, "has", kill_after_three)
    report, _ = build(SPACE, ARCHS, Builder(store=Store(tmp_path / "two"), workers=cluster.workers))
    monkeypatch.undo()
    assert (report.built, report.failed) == (10, {})
    assert _contents(tmp_path / "two") == _contents(tmp_path / "one")
    told = f"worker process {victim} killed after 3 of 10 sketches; bytes equal"
    record_property("cluster", f"{cluster.backend}: {told}")


@on_each
def test_a_worker_that_joins_late_gets_work(cluster: Loopback, record_property: Tell) -> None:
    numbers = np.arange(1 << 18, dtype=np.float64)

    def work(x: int) -> tuple[str, float]:
        import sys

        time.sleep(0.05)
        place = f"process {os.getpid()}"
        if "ray" in sys.modules:
            place = f"node {sys.modules['ray'].get_runtime_context().get_node_id()[:8]}"
        return place, float(numbers[x])

    # A process may be new because another one was killed; a node is not.
    before = {place for _, (place, _) in stream(work, range(40), cluster.workers)}  # type: ignore[misc]
    newcomer = None
    results = stream(work, range(4000), cluster.workers)
    for count, (index, result) in enumerate(results):
        assert not isinstance(result, Lost)
        assert result[1] == index
        if count == 20:
            cluster.add_worker()
        if result[0] not in before:
            newcomer = result[0], count
            break
    results.close()
    assert newcomer is not None, "4,000 items and the new worker had none"
    place, count = newcomer
    assert count > 20
    told = f"a worker joined after 20 items; {place} answered item number {count}"
    record_property("cluster", f"{cluster.backend}: {told}")


@on_each
def test_an_error_of_the_function_is_raised_here_as_it_is(cluster: Loopback) -> None:
    def fail(x: int) -> int:
        raise InputError(f"item {x} is bad")

    with pytest.raises(InputError, match=r"^item \d is bad$"):
        list(stream(fail, range(4), cluster.workers))


@on_each
def test_workers_of_another_version_are_refused(
    cluster: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lpzero.parallel.workers.engine", lambda: "0.0.9")
    wanted = r"workers need lpzero 0\.0\.9, as here; found lpzero .* on .*: install the same"
    with pytest.raises(InputError, match=wanted):
        list(stream(abs, range(4), cluster.workers))


# Verbs in one process, which connects once; argument 1 is the options of the cluster, the others
# are the verbs, by default all.
VERBS = """
import json, sys
from lpzero.cli.main import run
from lpzero.report import page
page._encoded = lambda chart: {"svg": b"<svg></svg>"}  # pages are not compared
where = json.loads(sys.argv[1])
table = ["results.csv", "--space", "my_work:SPACE", "--target", "accuracy"]
table += ["--batch", "2", "--length", "4"]
# Before the plug-in is loaded: the space's module is enough for the same sketches.
before = [] if where else [["stats", *table, "--cache", "bare"]]
own = ["--plugin", "my_work.py", "--cache", "cache"] + where
table += own
formulas = ["--proxy", "sum(softsign(W))", "--proxy", "snip"]
quick = ["--generations", "1", "--permutations", "0", "--population", "4", "--offspring", "2"]
quick += ["--unaries", "1", "--terms", "1", "--choose", "train", "--quiet"]
loop = ["--loop", "random", "--samples", "6", "--evaluator", "proxy", "--quiet"]
trained = ["train", "my_work:TRAINED", "--n", "4", "--quiet", "--out", "trained", *own[:2]]
verbs = (
    *before,
    ["stats", *table],
    ["exhaust", *table, "--permutations", "0", "--out", "exhausted"],
    ["rank", *table, *formulas, "--out", "ranked"],
    ["discover", *table, *quick, "--out", "campaign"],
    ["search", "my_work:SPACE", *loop, *formulas[:2], *own, "--out", "searched"],
    [*trained, *(where or ["--jobs", "2"])],  # these run the plug-in, too
    ["export", "campaign", "--to", "python", "--out", "best.py", *own[:2]],
    ["report", "campaign", *own[:2]],
)
for words in verbs:
    code = run(words) if not sys.argv[2:] or words[0] in sys.argv[2:] else 0
    if code:
        sys.exit(code)
"""
TRAINED = """

def train(arch, seed):
    return arch.width + seed

TRAINED = lpzero.space(CHOICES, build=Model, name="my-trained", batch=(4, 16), train=train)
"""


@pytest.fixture(scope="module")
def plug_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example and 24 rows of its results, about as few as a campaign takes."""
    folder = tmp_path_factory.mktemp("plug-in")
    (folder / "my_work.py").write_text(EXAMPLE.read_text() + TRAINED)
    (folder / "verbs.py").write_text(VERBS)
    _run_python(folder, "my_work.py")
    rows = (folder / "results.csv").read_text().splitlines(keepends=True)
    (folder / "results.csv").write_text("".join(rows[:25]))
    return folder


@pytest.fixture(scope="module")
def one_process(plug_in: Path) -> dict[str, bytes]:
    """What every verb writes without a cluster."""
    files = _run_verbs(plug_in, [])
    bare = {name: files.pop(name) for name in list(files) if name.startswith("bare")}
    sketches = [name for name in bare if name.endswith(".sketch")]
    assert len(sketches) == 24
    assert all(files[name.replace("bare", "cache", 1)] == bare[name] for name in sketches)
    assert b"A zero-cost proxy" in files["best.py"]
    return files


@on_each
def test_verbs_write_the_same_bytes_with_a_space_and_a_primitive_of_ones_own(
    cluster: Loopback,
    one_process: dict[str, bytes],
    plug_in: Path,
    record_property: Tell,
) -> None:
    """Every verb by Dask; all have one way to workers, and by Ray two are enough."""
    where = ["--backend", cluster.backend, "--scheduler", cluster.address]
    is_dask = cluster.backend == "dask"
    found = _run_verbs(plug_in, where, *([] if is_dask else ["stats", "train"]))
    expected = one_process if is_dask else {name: one_process[name] for name in found}
    assert found.keys() == expected.keys()
    assert [name for name, content in found.items() if content != expected[name]] == []
    for name in ("trained", "cache", *(["exhausted", "campaign", "searched"] if is_dask else [])):
        assert any(path.startswith(name) for path in found), name
    record_property("cluster", f"{cluster.backend}: verbs of a plug-in: {len(found)} equal files")


@pytest.mark.parametrize("cluster", ["dask"], indirect=True)
def test_a_dask_scheduler_that_comes_back_empty_gets_everything_again(
    cluster: DaskLoopback, record_property: Tell
) -> None:
    numbers = np.arange(1 << 16, dtype=np.float64)

    def work(x: int) -> float:
        time.sleep(0.02)
        return float(numbers[x])

    found: dict[int, float | Lost] = {}
    for index, result in stream(work, range(200), cluster.workers):
        found[index] = result
        if len(found) == 20:
            killed = cluster.restart_head()
    assert found == {i: float(i) for i in range(200)}
    told = f"{killed} and all workers killed after 20 of 200 items, others started: all answered"
    record_property("cluster", f"dask: {told}")


@on_each
def test_a_killed_head_is_one_line_and_the_same_command_continues(
    cluster: Loopback, tmp_path: Path, record_property: Tell, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--backend", cluster.backend, "--scheduler", cluster.address)
    cache = tmp_path / "cache"
    words = ["stats", "nano-flexibert", "--cache", str(cache), "--format", "json"]
    words += ["--batch", "2", "--length", "4"]
    python = [sys.executable, "-m", "lpzero.cli.main"]
    running = subprocess.Popen(
        [*python, *words, *where],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        end = time.monotonic() + 600
        while len(list(cache.rglob("*.sketch"))) < 3:
            if running.poll() is not None or time.monotonic() > end:
                running.kill()
                pytest.fail(f"it did not begin: {running.communicate()[1]}")
            time.sleep(0.05)
        killed = cluster.stop_head()
        _, told = running.communicate(timeout=600)
    finally:
        running.kill()
        running.wait()
    [line] = [line for line in told.splitlines() if line.startswith("error:")]
    assert "cluster at" in line
    assert "is lost" in line
    assert "the same command continues" in line
    assert running.returncode == 1
    assert "Traceback" not in told
    before = {path.name for path in cache.rglob("*.sketch")}
    told = (
        f"{cluster.backend}: {killed} killed after {len(before)} sketches: exit code 1 in one line"
    )
    if cluster.backend == "ray":
        # To continue needs the files of the cache alone, which are the same from every backend (see
        # the test of sketches): Dask, which starts sooner, shows it for both.
        record_property("cluster", told)
        return
    assert run(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["present"] == len(before)
    assert report["built"] + report["present"] == report["n"]
    record_property("cluster", f"{told}, continued by {report['built']} more")


def _run_verbs(plug_in: Path, where: list[str], *verbs: str) -> dict[str, bytes]:
    """Every file that the verbs write, but for times; always in the same folder, which is named."""
    folder = plug_in.with_name("verbs")
    shutil.copytree(plug_in, folder)
    _run_python(folder, "verbs.py", json.dumps(where), *verbs)
    return _contents(folder.rename(folder.with_name(f"verbs-{where[1] if where else 'one'}")))


def _run_python(folder: Path, *words: str) -> None:
    """Run a file in the folder, as a process of its own, because plug-ins change the language."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("LPZERO_CACHE", None)
    command = [sys.executable, "-P", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def _contents(folder: Path) -> dict[str, bytes]:
    """Every file under the folder, without what differs between equal runs: times."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        is_timed = path.name == "timing.json" or "__pycache__" in name or "/report/" in name
        if path.is_file() and not is_timed:
            found[name] = _without_times(name, path.read_bytes())
    return found


def _without_times(name: str, content: bytes) -> bytes:
    """The content without the seconds that proxies and trainings took, and the seal over them."""
    if name.startswith("cache/proxies"):
        records = json.loads(content)["records"]
        return json.dumps({key: row[:-1] for key, row in records.items()}).encode()
    if name.endswith(("result.json", "journal.jsonl", "table.json")):
        content = re.sub(rb'"(seconds|seal)": ?[^,\n}]+', b"", content)
    if name == "trained/journal.jsonl":  # in the order in which trainings end
        return b"\n".join(sorted(content.splitlines()))
    return content

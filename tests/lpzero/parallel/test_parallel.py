"""Spreading work: same results anywhere, errors surface, a dying worker costs one item."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from lpzero.errors import InputError
from lpzero.parallel import Lost, Workers, progress, stream
from lpzero.parallel.tasks import dumps

# Functions for workers are local ones on purpose: they are sent by value, and a worker cannot
# import a test module.


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_item_comes_back_once_with_its_result(jobs: int) -> None:
    def square(x: int) -> int:
        return x * x

    found = dict(stream(square, range(20), Workers(jobs)))
    assert found == {i: i * i for i in range(20)}


def test_nothing_to_do_starts_nothing() -> None:
    assert list(stream(abs, [], Workers(2))) == []


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_function_surfaces(jobs: int) -> None:
    def fail(x: int) -> int:
        raise ZeroDivisionError(f"item {x}")

    with pytest.raises(ZeroDivisionError, match="item"):
        list(stream(fail, range(4), Workers(jobs)))


def deadly_for(bad: int) -> object:
    def work(x: int) -> int:
        if x == bad:
            os.kill(os.getpid(), signal.SIGKILL)
        return -x

    return work


@pytest.mark.slow
def test_an_item_that_kills_its_worker_is_given_up_alone() -> None:
    found = dict(stream(deadly_for(3), range(8), Workers(2)))  # type: ignore[arg-type]
    assert isinstance(found.pop(3), Lost)
    assert found == {i: -i for i in range(8) if i != 3}


@pytest.mark.slow
def test_large_arrays_are_mapped_and_leave_nothing_behind() -> None:
    numbers, odd = np.arange(1 << 18, dtype=np.float64), np.arange(2 << 20, dtype=np.uint8)[1:]

    def work(x: int) -> tuple[float, int, bool]:
        return float(numbers[x]), int(odd[-1]), numbers.flags.writeable

    before = set(Path("/dev/shm").glob("lpzero-*"))
    for size in (1 << 18, 10):
        numbers = numbers[:size]
        found = dict(stream(work, range(6), Workers(2)))
        assert found == {i: (float(i), 255, size == 10) for i in range(6)}
    assert set(Path("/dev/shm").glob("lpzero-*")) <= before


def test_relative_paths_are_the_drivers() -> None:
    sent = pickle.loads(dumps({"at": Path("a")}))  # noqa: S301 (written here)
    assert sent == {"at": Path.cwd() / "a"}


@pytest.mark.slow
def test_a_worker_whose_memory_grows_is_replaced_in_silence() -> None:
    pytest.importorskip("psutil")  # without it workers do not look at their memory

    def hoard(x: int) -> int:
        import builtins
        import time

        if x == 4:
            setattr(builtins, "hoard", bytearray(b"x" * 400_000_000))  # noqa: B010
        time.sleep(0.3)
        return x

    assert dict(stream(hoard, range(20), Workers(2))) == {i: i for i in range(20)}


def test_results_stop_when_the_stream_is_closed() -> None:
    results = stream(abs, range(100), Workers(1))
    assert next(results) == (0, 0)
    results.close()
    assert list(results) == []


def test_an_unknown_backend_or_number_of_jobs_is_refused() -> None:
    with pytest.raises(InputError, match="backend 'slurm' is unknown"):
        Workers(backend="slurm")
    with pytest.raises(InputError, match="at least 1"):
        Workers(jobs=0)
    for cluster in ("dask", "ray"):
        with pytest.raises(InputError, match="needs a scheduler"):
            Workers(backend=cluster)
    with pytest.raises(InputError, match="dask or ray"):
        Workers(scheduler="tcp://127.0.0.1:8786")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "address", "told"),
    [
        ("dask", "tcp://127.0.0.1:1", "no Dask scheduler at tcp://127.0.0.1:1"),
        ("dask", "ray://127.0.0.1:1", "is not the address of a Dask scheduler"),
        ("dask", "tcp://127.0.0.1", "is not the address of a Dask scheduler"),
        ("ray", "127.0.0.1:1", "no Ray cluster at 127.0.0.1:1"),
        ("ray", "tcp://127.0.0.1:1", "is not the address of a Ray cluster"),
    ],
)
def test_an_address_where_nothing_can_be_is_refused_at_once(
    backend: str, address: str, told: str
) -> None:
    pytest.importorskip({"dask": "distributed"}.get(backend, backend))
    with pytest.raises(InputError, match=told):
        list(stream(abs, [1], Workers(backend=backend, scheduler=address)))


def test_a_missing_extra_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "lpzero.parallel.ray", raising=False)
    with pytest.raises(InputError, match=r"pip install 'lpzero\[ray\]'"):
        list(stream(abs, [1], Workers(backend="ray", scheduler="auto")))
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "lpzero.parallel.dask", raising=False)
    with pytest.raises(InputError, match=r"pip install 'lpzero\[dask\]'"):
        list(stream(abs, [1], Workers(backend="dask", scheduler="tcp://127.0.0.1:1")))


def test_progress_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("sketches", 2) as advance:
        advance()
        advance()
    out, err = capfd.readouterr()
    assert out == ""
    assert "sketches" in err
    assert "2/2" in err


def test_workers_ignore_the_signals_that_their_driver_handles() -> None:
    """A terminal, a scheduler or `timeout` sends them to every process of the command."""

    def signalled(x: int) -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        return x

    assert dict(stream(signalled, range(4), Workers(2))) == {i: i for i in range(4)}

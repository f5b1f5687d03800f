"""Questions to a Dask scheduler that get no answer: asked again, and one line if that is no use.

A real scheduler and real workers in this process; the client's calls fail on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lpzero.errors import InputError
from lpzero.parallel import ClusterLostError, Workers, stream

distributed = pytest.importorskip("distributed")

from distributed.comm import CommClosedError  # noqa: E402

from lpzero.parallel import dask as pool  # noqa: E402


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",  # with None it takes the default port
        local_directory=str(tmp_path_factory.mktemp("dask")),
    ) as started:
        yield started


@pytest.fixture
def workers(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """The workers, to which no client is connected yet."""
    monkeypatch.setattr(pool, "_CLIENTS", {})
    monkeypatch.setattr(pool, "PAUSE", 0.01)
    yield Workers(backend="dask", scheduler=cluster.scheduler_address)
    for client in pool._CLIENTS.values():
        client.close()


class Failing:
    """A method that fails the first times it is called."""

    def __init__(self, method: Callable[..., Any], times: float, error: Exception) -> None:
        self.method, self.left, self.error, self.failed = method, times, error, 0

    def __get__(self, client: Any, kind: type[Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            if self.left > 0:
                self.left -= 1
                self.failed += 1
                raise self.error
            return self.method(client, *words, **more)

        return call


def failing(
    monkeypatch: pytest.MonkeyPatch, name: str, times: float, error: Exception | None = None
) -> Failing:
    """The client's method of that name, which now fails so many times."""
    made = Failing(getattr(distributed.Client, name), times, error or CommClosedError("in test"))
    monkeypatch.setattr(distributed.Client, name, made)
    return made


SQUARES = {i: i * i for i in range(8)}


def square(x: int) -> int:
    return x * x


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("name", ["nthreads", "scatter", "submit", "run"])
def test_a_question_that_is_lost_does_not_stop_a_run(
    workers: Workers, monkeypatch: pytest.MonkeyPatch, name: str, times: int
) -> None:
    lost = failing(monkeypatch, name, times)
    assert dict(stream(square, range(8), workers)) == SQUARES
    assert lost.failed == (1 if name == "run" else times)  # versions are compared by tasks too


@pytest.mark.slow
def test_without_workers_the_payload_waits_for_the_first(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = failing(monkeypatch, "scatter", 2, distributed.TimeoutError("No valid workers found"))
    monkeypatch.setattr(pool, "ASK_SECONDS", -1)  # no time to ask again is left
    assert dict(stream(square, range(8), workers)) == SQUARES
    assert lost.failed == 2


def test_a_lost_result_is_computed_again(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = distributed.Future.result
    made = Failing(plain, 2, CommClosedError("in test"))
    monkeypatch.setattr(distributed.Future, "result", made)
    assert dict(stream(square, range(8), workers)) == SQUARES
    assert made.failed == 2


@pytest.mark.parametrize("name", ["nthreads", "scatter", "submit"])
def test_a_scheduler_that_never_answers_is_one_line(
    workers: Workers, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lost = failing(monkeypatch, name, float("inf"))
    monkeypatch.setattr(pool, "ASK_SECONDS", 0.2)
    with pytest.raises(ClusterLostError, match=r"the Dask cluster at tcp.* is lost: in test;"):
        list(stream(square, range(8), workers))
    assert lost.failed > 2


def test_a_closed_client_is_a_lost_cluster(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = stream(square, range(100), workers)
    next(results)
    [client] = pool._CLIENTS.values()
    client.close()
    with pytest.raises(ClusterLostError, match="its scheduler does not answer"):
        list(results)


def test_a_worker_that_was_lost_while_versions_are_compared_is_not_accused(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def run(self: Any, *words: Any, **more: Any) -> dict[str, Any]:
        asked.append(words)
        return {"tcp://lost": CommClosedError("in test"), "tcp://there": pool.VERSION}

    monkeypatch.setattr(distributed.Client, "run", run)
    assert dict(stream(square, range(8), workers)) == SQUARES
    assert len(asked) == 1


def test_a_worker_without_lpzero_is_refused(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"tcp://bare": ModuleNotFoundError("No module named 'lpzero'")}
    monkeypatch.setattr(distributed.Client, "run", lambda self, *words, **more: answers)
    with pytest.raises(InputError, match="found lpzero none on tcp://bare"):
        list(stream(square, range(8), workers))


def test_a_stream_waits_for_a_client_that_is_connecting_again(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dict(stream(square, range(8), workers)) == SQUARES
    [client] = pool._CLIENTS.values()
    waited = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        client.status = "running"

    client.status = "connecting"
    monkeypatch.setattr(pool.time, "sleep", pause)
    assert pool.connected(str(workers.scheduler)) is client
    assert len(waited) == 1


def test_answers_without_a_result_are_not_fetched(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    fetch = distributed.Future.result

    def watched(future: Any, timeout: float | None = None) -> Any:
        fetched.append(future.key)
        return fetch(future, timeout)

    monkeypatch.setattr(distributed.Future, "result", watched)
    assert dict(stream(_none_if_even, range(8), workers)) == {
        item: _none_if_even(item) for item in range(8)
    }
    assert len(fetched) == 4


def _none_if_even(item: int) -> int | None:
    return None if item % 2 == 0 else item

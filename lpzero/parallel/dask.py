"""joblib's Dask backend, extended to report a task whose workers all died.

joblib passes a task's error to its future but never to its callback, so a run would wait forever
for a task that Dask has given up (KilledWorker). Errors of the function itself are reported,
wrapped in a result.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from joblib._dask import DaskDistributedBackend


@dataclass(frozen=True, slots=True)
class _GivenUp:
    error: BaseException


class Backend(DaskDistributedBackend):  # type: ignore[misc]
    """The backend of one client; a task given up ends the run with its error."""

    def submit(self, func: Any, callback: Callable[[Any], None]) -> Future[Any]:
        def report(done: Future[Any]) -> None:
            error = done.exception()
            if error is not None:
                callback(_GivenUp(error))

        future: Future[Any] = super().submit(func, callback)
        future.add_done_callback(report)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        if isinstance(out, _GivenUp):
            raise out.error
        return super().retrieve_result_callback(out)

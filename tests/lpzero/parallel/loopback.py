"""Clusters of real processes on this machine: two workers to begin with, more later, any killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from lpzero.parallel import Workers

ROOT = Path(__file__).parents[3]
_PATIENCE = 600.0


class DaskLoopback:
    """A scheduler and workers of one thread, each a process of its own, without nannies."""

    backend = "dask"

    def __init__(self, folder: Path) -> None:
        from distributed import Client

        self._folder = folder
        self._workers: list[subprocess.Popen[bytes]] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self._port = port
        self._start_head()
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=_PATIENCE)

    @property
    def workers(self) -> Workers:
        return Workers(backend=self.backend, scheduler=self.address)

    def add_worker(self, path: Path = ROOT) -> subprocess.Popen[bytes]:
        """Start one more; it imports lpzero from the path."""
        words = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60")
        self._workers.append(self._start("worker", self.address, *words, path=path))
        return self._workers[-1]

    def stop_head(self) -> str:
        """Kill the scheduler; says what was killed."""
        self._head.kill()
        self._head.wait()
        return f"scheduler, process {self._head.pid}"

    def restart_head(self) -> str:
        """Kill the scheduler and start another one at its address, with two new workers."""
        told = self.stop_head()
        for process in self._workers:
            process.kill()
            process.wait()
        self._workers.clear()
        self._start_head()
        return told

    def _start_head(self) -> None:
        place = ("--host", "127.0.0.1", "--port", str(self._port))
        self._head = self._start("scheduler", *place, "--dashboard-address", "127.0.0.1:0")
        wait_for_port(self._port)
        for _ in range(2):
            self.add_worker()

    def close(self) -> None:
        for process in (*self._workers, self._head):
            process.kill()
            process.wait()

    def _start(self, what: str, *words: str, path: Path = ROOT) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", f"distributed.cli.dask_{what}", *words],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


class RayLoopback:
    """A head with two processes, to which nodes of one process can be added."""

    backend = "ray"

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        os.environ["PYTHONPATH"] = str(ROOT)  # what its processes import, wherever drivers are
        os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (else a busy machine starves it)
        self._store = {"object_store_memory": 80 << 20}
        head = {"num_cpus": 2, "include_dashboard": False, **self._store}
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self.address: str = self._cluster.address

    @property
    def workers(self) -> Workers:
        return Workers(backend=self.backend, scheduler=self.address)

    def add_worker(self) -> None:
        """Start one more, on a node of its own."""
        self._cluster.add_node(num_cpus=1, wait=False, **self._store)

    def stop_head(self) -> str:
        """Kill the head's store and its node; says what was killed."""
        import ray

        ray.shutdown()  # else Ray ends this process when the head does not come back
        killed = []
        for name, processes in list(self._cluster.head_node.all_processes.items()):
            for one in processes:
                one.process.kill()
                killed.append(f"{name} {one.process.pid}")
        return "head: " + ", ".join(killed)

    def close(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()


def kill(pid: int) -> None:
    """End a process at once."""
    os.kill(pid, signal.SIGKILL)


def wait_for_port(port: int) -> None:
    """Return when something listens there."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens at port {port}")

"""A dashboard in a thread of the test, and requests to it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from lpzero.dashboard.server import application, listen, new_token, server_config


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """Where the dashboard is; `base` is its path with the token."""

    port: int
    base: str

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.base}"

    def ask(self, path: str = "", method: str = "GET", **headers: str) -> Answer:
        """The answer to a request below the token."""
        return self.ask_path(f"{self.base}{path}", method, **headers)

    def ask_path(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """The answer to a request for exactly that path."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            found = connection.getresponse()
            return Answer(found.status, dict(found.getheaders()), found.read())
        finally:
            connection.close()

    def runs(self) -> dict[str, dict[str, Any]]:
        """The lines of the list, by name."""
        return {line["name"]: line for line in self.ask("api/runs").json()["runs"]}


@contextmanager
def serving(root: Path) -> Iterator[Served]:
    """The dashboard of the runs below the folder."""
    token, listening = new_token(), listen(_free())
    server = uvicorn.Server(server_config(application(root, token)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Served(listening.getsockname()[1], f"/{token}/")
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


def _free() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])

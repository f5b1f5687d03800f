"""The dashboard's server: a few read-only routes behind a guard, on loopback.

Requests are answered that have the token, to a loopback name, from a page of the dashboard itself.
Everything else is answered with 403 before any route is looked at. The name is checked because a
web site can let its own name point to 127.0.0.1, the origin because any web site can send requests.
The token is part of the path and not a cookie: a browser sends cookies to every port of a machine.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from lpzero.dashboard.pages import beside, list_page, live_page
from lpzero.dashboard.places import Place, find_runs, shown
from lpzero.dashboard.watched import Summaries, Summary, View, Watched, view
from lpzero.errors import InputError
from lpzero.report.page import asset
from lpzero.report.plotly_chart import script
from lpzero.runs.run import Run

LOOPBACK = "127.0.0.1"
PORT = 8787
_MOST_COMPARED = 12
_HERE = "lpzero.dashboard"
_SCRIPT, _STYLE = "text/javascript", "text/css"
# The only files that are served: our own.
_STATIC: dict[str, tuple[str, Callable[[], str]]] = {
    "report.css": (_STYLE, lambda: asset("report.css")),
    "report.js": (_SCRIPT, lambda: asset("report.js")),
    "plotly.js": (_SCRIPT, script),
    "dashboard.css": (_STYLE, lambda: _own("dashboard.css")),
    "list.js": (_SCRIPT, lambda: _own("list.js")),
    "live.js": (_SCRIPT, lambda: _own("live.js")),
}


def application(root: Path, token: str) -> Guard:
    """The dashboard of the runs below `root`; its addresses begin with the token."""
    library, base = Library(root), f"/{token}/"

    def runs(request: Request) -> Response:
        page = list_page(library.runs(), library.remarks(), shown(str(root)), base)
        return _html(page)

    def runs_now(request: Request) -> Response:
        lines = [line.to_json() for line in library.runs()]
        return _json({"runs": lines, "remarks": library.remarks()})

    def run(request: Request) -> Response:
        id = request.path_params["id"]
        line, _, view = library.look(id)
        return _html(live_page(view, line.name, base, f"{base}api/run/{id}"))

    def run_now(request: Request) -> Response:
        _, _, view = library.look(request.path_params["id"])
        return _newer(request, view.version, view.to_json)

    def compared(request: Request) -> Response:
        ids = _ids(request)
        asked = "&".join(f"run={id}" for id in ids)
        view, address = library.compare(ids, base), f"{base}api/compare?{asked}"
        return _html(live_page(view, "comparison", base, address))

    def compared_now(request: Request) -> Response:
        view = library.compare(_ids(request), base)
        return _newer(request, view.version, view.to_json)

    routes = [
        Route("/", runs),
        Route("/run/{id:str}", run),
        Route("/compare", compared),
        Route("/api/runs", runs_now),
        Route("/api/run/{id:str}", run_now),
        Route("/api/compare", compared_now),
        Route("/static/{name:str}", _static),
    ]
    app = Starlette(routes=routes, exception_handlers={UnknownRunError: _missing})
    return Guard(app, token)


def listen(port: int | None) -> socket.socket:
    """A socket on loopback, at the port or, if None, at the usual one or any that is free."""
    for number in (PORT, 0) if port is None else (port,):
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((LOOPBACK, number))
            made.listen()  # who opens the address at once waits until the server answers
        except OSError as error:
            made.close()
            reason = error.strerror
            continue
        return made
    raise InputError(f"port {port} of {LOOPBACK} cannot be used: {reason}; choose another --port")


def serve(app: Guard, listening: socket.socket) -> None:
    """Answer requests until the process is asked to stop."""
    uvicorn.Server(server_config(app)).run(sockets=[listening])


def server_config(app: Guard) -> uvicorn.Config:
    """How the application is served."""
    return uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
    )


SLOW = 10.0  # seconds between two looks at a connection
_MOST_LOOKS = 6  # at which the same answer may be on its way


class Connection(H11Protocol):
    """A connection that is closed when its client is slow to ask, or to read the answer."""

    _last: object = None
    _n_looks = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(SLOW, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        is_answering = self.cycle is not None and not self.cycle.response_complete
        is_new = self._last != (self.cycle, is_answering)
        self._last = (self.cycle, is_answering)
        self._n_looks = 0 if is_new else self._n_looks + 1
        if self._n_looks >= (_MOST_LOOKS if is_answering else 1):
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(SLOW, self._look)


def _ids(request: Request) -> list[str]:
    """The runs that are asked for, as text that is safe in an address."""
    given = dict.fromkeys(request.query_params.getlist("run"))
    ids = [id for id in given if id.isalnum() and id.isascii()]
    if not ids or len(ids) < len(given) or len(ids) > _MOST_COMPARED:
        raise UnknownRunError("runs")
    return ids


def _newer(request: Request, version: str, content: Callable[[], object]) -> Response:
    """The content, or nothing if the page has it already."""
    if request.query_params.get("seen") == version:
        return Response(status_code=204)
    return _json(content())


def _json(content: object) -> Response:
    """The content as ASCII: a path that is not UTF-8 cannot be sent otherwise."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(text, media_type="application/json")


def _html(page: bytes) -> Response:
    return Response(page, media_type="text/html; charset=utf-8")


def _missing(request: Request, error: Exception) -> Response:
    return PlainTextResponse("404: there is no such run below the folder\n", 404)


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        return PlainTextResponse("404: there is no such file\n", 404)
    kind, _ = _STATIC[name]
    # The address has the token of this process, so a newer version has another address.
    keep = {"Cache-Control": "private, max-age=86400, immutable"}
    return Response(_content(name), media_type=f"{kind}; charset=utf-8", headers=keep)


@lru_cache(maxsize=len(_STATIC))
def _content(name: str) -> bytes:
    return _STATIC[name][1]().encode()


def _own(name: str) -> str:
    return files(_HERE).joinpath(name).read_text(encoding="utf-8")


_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_METHODS = ("GET", "HEAD")
# Scripts and styles come from this server alone, and nothing is sent anywhere else. Plotly sets
# styles on its own elements; a style cannot load anything either.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def new_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_urlsafe(24)


class Guard:
    """The application behind the checks; it sees paths without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # web sockets are closed without an answer
        reason = self._refused(scope)
        answer: ASGIApp = self.app
        if reason is not None:
            answer = PlainTextResponse(f"403: {reason}\n", 403)
        elif scope["method"] not in _METHODS:
            answer = PlainTextResponse("405: the dashboard only shows\n", 405)
        else:
            _, _, rest = scope["path"].removeprefix("/").partition("/")
            path = f"/{rest}"
            scope = {**scope, "path": path, "raw_path": path.encode(), "root_path": ""}
        await answer(scope, receive, _with_headers(send))

    def _refused(self, scope: Scope) -> str | None:
        """Why the request is refused; None if it is not."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = host.rpartition(":")[0] if _has_port(host) else host
        if len(headers.getlist("host")) != 1 or name.lower() not in _NAMES:
            return "ask for the address that lpzero dashboard printed"
        origins = headers.getlist("origin")
        if any(origin.lower() != f"http://{host}".lower() for origin in origins):
            return "another site asked"
        given = scope["path"].removeprefix("/").partition("/")[0]
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return "the token is missing: use the address that lpzero dashboard printed"
        return None


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdigit() and not host.endswith("]")


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: Any = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending


_FRESH = 1.0  # seconds for which what was found is used again
_MOST_WATCHED = 64


class UnknownRunError(LookupError):
    """No run below the folder has that id."""


class Library:
    """The runs below `root`; nothing outside it can be asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._turn = threading.Lock()
        self._summaries = Summaries()
        self._watched: OrderedDict[str, Watched] = OrderedDict()
        self._places: dict[str, Place] = {}
        self._is_cut = False
        self._looked = float("-inf")

    def runs(self) -> list[Summary]:
        """The line of every run."""
        with self._turn:
            self._find(_FRESH)
            return [self._summaries.of(place) for place in self._places.values()]

    def remarks(self) -> list[str]:
        """What the list leaves out."""
        return ["The folder is very large: not all of it was searched."] if self._is_cut else []

    def look(self, id: str) -> tuple[Summary, Run | None, View]:
        """A run's line, the run if it can be read, and its page as they are now."""
        with self._turn:
            if id not in self._places:
                self._find(_FRESH)
            if id not in self._places:
                raise UnknownRunError(id)
            place = self._places[id]
            line = self._summaries.of(place)
            watched = self._watched.pop(id, None) or Watched(place)
            self._watched[id] = watched
            while len(self._watched) > _MOST_WATCHED:
                self._watched.popitem(last=False)
        run, seen = watched.look(line)
        return line, run, seen

    def compare(self, ids: Sequence[str], base: str) -> View:
        """The page of several runs beside each other."""
        looked = [self.look(id) for id in dict.fromkeys(ids)]
        is_behind = any(seen.is_behind for _, _, seen in looked)
        return view(beside([(line, run) for line, run, _ in looked], base), is_behind)

    def _find(self, fresh: float) -> None:
        if time.monotonic() - self._looked < fresh:
            return
        listing = find_runs(self.root)
        self._places, self._is_cut = listing.places, listing.is_cut
        self._looked = time.monotonic()

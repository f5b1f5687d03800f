"""The dashboard's server: a few read-only routes behind the guard, on loopback."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from lpzero.dashboard.guard import Guard
from lpzero.dashboard.library import Library, UnknownRunError
from lpzero.dashboard.pages import list_page, live_page
from lpzero.dashboard.places import shown
from lpzero.errors import InputError
from lpzero.report.page import asset
from lpzero.report.plotly_chart import script

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
        return JSONResponse({"runs": lines, "remarks": library.remarks()})

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
        return _html(live_page(view, "beside each other", base, address))

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
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listening])


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
    return JSONResponse(content())


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

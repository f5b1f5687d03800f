"""Who may ask: requests with the token, to a loopback name, from a page of the dashboard itself.

Everything else is answered with 403 before any route is looked at. The name is checked because a
web site can let its own name point to 127.0.0.1, the origin because any web site can send requests.
The token is part of the path and not a cookie: a browser sends cookies to every port of a machine.
"""

from __future__ import annotations

import secrets
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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

"""dashboard: Show every run below a folder in a browser, live."""

from __future__ import annotations

import logging
import os
import webbrowser
from dataclasses import dataclass
from pathlib import Path

from lpzero.errors import InputError
from lpzero.options import Switch, Whole, argument, option
from lpzero.verbs import Outcome, Screen

_NICE = 5  # a run that works has the processor first
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Show every run below FOLDER (the current folder by default) in a browser, live.

    A list of the runs, a page for each that follows it while it works, and runs side by side. The
    address that is printed has a token: without it, and from other machines, nothing can be seen.
    Runs are only read, never locked or changed. Ctrl-C ends the dashboard.
    """

    folder: str = argument("FOLDER", ".")
    port: int | None = option(
        None, "The port on 127.0.0.1.  [default: 8787, or a free one]", Whole(1, 65535)
    )
    open: bool = option(False, "Open the list in a browser.", Switch())


def run(request: Request, screen: Screen) -> Outcome:
    """The address of the dashboard, which is served once the address is shown."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"the dashboard needs {error.name}: install it with pip install 'lpzero[dashboard]'"
        ) from None
    from lpzero.dashboard.server import application, listen, new_token, serve

    root = Path(request.folder)
    if not root.is_dir():
        raise InputError(f"{root} is not a folder: name one with runs below it")
    token, listening = new_token(), listen(request.port)
    host, port = listening.getsockname()[:2]
    address = f"http://{host}:{port}/{token}/"
    os.nice(_NICE)
    app = application(root.resolve(), token)
    screen.say(f"the runs below {root}; Ctrl-C ends the dashboard")
    if request.open and not webbrowser.open(address):
        logger.warning("no browser was found; open the address manually")
    return Outcome({"address": address}, {"lines": [address]}, then=lambda: serve(app, listening))

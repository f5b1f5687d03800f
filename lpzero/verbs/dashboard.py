"""dashboard: Show every run below a folder in a browser, live."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import webbrowser
from dataclasses import dataclass
from pathlib import Path

from lpzero.errors import InputError
from lpzero.files import write_text
from lpzero.options import Switch, Whole, argument, option
from lpzero.verbs import Outcome, Screen
from spaces.untrusted import user_path

_NICE = 5  # a run that works has the processor first
logger = logging.getLogger(__name__)
EXAMPLES = ("lpzero dashboard runs --open",)


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

    root = user_path(request.folder)
    if not root.is_dir():
        raise InputError(f"{root} is not a folder: name one with runs below it")
    token, listening = new_token(), listen(request.port)
    host, port = listening.getsockname()[:2]
    address = f"http://{host}:{port}/{token}/"
    os.nice(_NICE)
    app = application(root.resolve(), token)
    screen.say(f"the runs below {root}; Ctrl-C ends the dashboard")
    private = Path(tempfile.mkdtemp(prefix="lpzero-")) if request.open else None
    if private is not None and not webbrowser.open(_redirect(private, address)):
        logger.warning("no browser was found; open the address manually")

    def serve_until_stopped() -> None:
        try:
            serve(app, listening)
        finally:
            if private is not None:
                shutil.rmtree(private, ignore_errors=True)

    return Outcome({"address": address}, {"lines": [address]}, then=serve_until_stopped)


def _redirect(folder: Path, address: str) -> str:
    """The address of a page in the folder, which only this user may read, that leads on.

    Other users of the machine see the arguments of a browser, and the token is in the address.
    """
    page = folder / "dashboard.html"
    refresh = f'<meta http-equiv="refresh" content="0;url={address}">'
    write_text(page, f"<!DOCTYPE html>\n<title>lpzero dashboard</title>{refresh}\n")
    return page.as_uri()

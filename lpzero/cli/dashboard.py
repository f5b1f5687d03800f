"""`lpzero dashboard [FOLDER]`: every run below a folder, live, in a browser on this machine."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path

import click

from lpzero.cli import output

_NICE = 5  # a run that works has the processor first


@click.command()
@click.argument("folder", default=".", type=click.Path())
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="The port on 127.0.0.1.  [default: 8787, or a free one]",
)
@click.option("--open", "is_opened", is_flag=True, help="Open the list in a browser.")
def dashboard(folder: str, port: int | None, is_opened: bool) -> None:
    """Show every run below FOLDER (the current folder by default) in a browser, live.

    A list of the runs, a page for each that follows it while it works, and runs beside each other.
    The address that is printed has a token: without it, and from other machines, nothing can be
    seen. Runs are only read, never locked or changed. Ctrl-C ends the dashboard.
    """
    from lpzero.errors import InputError

    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"the dashboard needs {error.name}: install it with pip install 'lpzero[dashboard]'"
        ) from None
    from lpzero.dashboard.guard import new_token
    from lpzero.dashboard.server import application, listen, serve

    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"{folder} is not a folder: name one with runs below it")
    token, listening = new_token(), listen(port)
    address = f"http://{listening.getsockname()[0]}:{listening.getsockname()[1]}/{token}/"
    os.nice(_NICE)
    app = application(root.resolve(), token)
    click.echo(address)
    output.note(f"the runs below {output.printable(str(root))}; Ctrl-C ends the dashboard")
    if is_opened and not webbrowser.open(address):
        output.note("note: no browser was found; open the address manually")
    serve(app, listening)

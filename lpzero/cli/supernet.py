"""`lpzero train --supernet SPACE`: the options of one-shot training, and what it prints."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from lpzero.cli import output
from lpzero.cli.interruption import stopped_with
from lpzero.cli.settings_options import click_option, given_settings
from lpzero.options import options
from lpzero.supernet.settings import SupernetSettings

Command = TypeVar("Command", bound=Callable[..., Any])
# --steps is an option of the command already.
_OPTIONS = [entry for entry in options(SupernetSettings) if entry.name != "steps"]


def supernet_options(command: Command) -> Command:
    """Gives the command --supernet and the options of one-shot training."""
    for entry in reversed(_OPTIONS):
        text = f"{entry.help}.  [default: {entry.default}; for --supernet]"
        command = click_option(entry, text)(command)
    words = {
        "--dataset": "characters, digits (needs scikit-learn) or text.  [for --supernet]",
        "--weights": "Start from this file of weights: safetensors, or a checkpoint of AutoFormer's"
        " or PreNAS's code.  [for --supernet]",
        "--select": "The preferred architectures: the JSON output of `lpzero search SPACE --loop"
        " prenas`, or a list.  [default: selected here; for --supernet]",
    }
    for word, text in words.items():
        command = click.option(word, help=text)(command)
    switch = click.option(
        "--supernet", "is_supernet", is_flag=True, help="Train one supernet of the SPACE instead."
    )
    return switch(command)


def refuse_supernet_options(context: click.Context) -> None:
    """Raise UsageError if an option of one-shot training was given without --supernet."""
    for name in ("dataset", "weights", "select", *(entry.name for entry in _OPTIONS)):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} is for --supernet")


def train_supernet(context: click.Context, given: dict[str, Any]) -> None:
    """Run the one-shot training that the options describe."""
    from lpzero.supernet.one_shot import SupernetRequest
    from lpzero.supernet.one_shot import train_supernet as run

    if given["backend"] != "loky":
        raise click.UsageError("a supernet is one training, step after step: --backend cannot help")
    name = given["space"]
    settings = given_settings(context, _OPTIONS, given)
    if given["steps"] is not None:
        settings["steps"] = given["steps"]
    start = None if given["weights"] is None else Path(given["weights"])
    chosen = None if given["select"] is None else Path(given["select"])
    made = SupernetSettings(**settings)
    request = SupernetRequest.of(name, made, chosen, given["dataset"], start)
    if start is not None:
        _say_what_fits(request, start)
    began = time.perf_counter()

    def show(record: dict[str, Any]) -> None:
        mean = sum(record["valid"]) / len(record["valid"])
        output.note(
            f"step {record['step']:,}/{made.steps:,}  loss {record['loss']:.4f}  held out"
            f" {min(record['valid']):.4f} to {max(record['valid']):.4f}, mean {mean:.4f}"
        )

    folder = Path(given["out"] or Path("runs", f"supernet-{name}"))
    quiet = {} if given["quiet"] else {"show": show}
    with stopped_with(context):
        result = run(request, folder, start, lock=not given["no_lock"], **quiet)
        seconds = round(time.perf_counter() - began, 3)
        if given["form"] == "json":
            output.print_json({**result, "directory": str(folder), "seconds": seconds})
        else:
            _print(result, folder, seconds)


def _say_what_fits(request: Any, start: Path) -> None:
    """Note what of the file does not fit the supernet."""
    from lpzero.errors import InputError
    from lpzero.supernet import weights

    supernet = request.made_space.supernet(0)
    fit = weights.load_into(supernet.largest, weights.read(start))
    for line in fit.lines():
        output.note(f"{start}: {line}")
    if not (fit.loaded or fit.cut):
        raise InputError(f"{start} has nothing that fits space {request.space}")


def _print(result: dict[str, Any], folder: Path, seconds: float) -> None:
    rows = [
        {
            "parameters": row["parameters"],
            "flops": row["flops"],
            "valid": row["valid"],
            "test": row["test"],
            "95%": "{:.3f} to {:.3f}".format(*row["test_ci"]),
        }
        for row in result["networks"]
    ]
    which = "preferred" if result["is_preferred"] else "some"
    title = f"{result['target']} of {which} networks with the supernet's weights"
    output.print_rows(rows, "table", title)
    click.echo(output.printable(f"\n{folder} ({seconds:.0f} s)"))

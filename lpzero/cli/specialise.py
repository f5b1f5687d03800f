"""`lpzero specialise DIR`: a network with its weights, out of a trained supernet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from lpzero.cli import output


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option("--max-parameters", type=click.FloatRange(min=0), help="At most this many.")
@click.option("--max-flops", type=click.FloatRange(min=0), help="At most this many.")
@click.option(
    "--arch", "arch_text", metavar="JSON", help="This architecture instead of the best one."
)
@click.option(
    "--out", type=click.Path(dir_okay=False), required=True, help="The safetensors file to write."
)
@output.format_option
def specialise(
    folder: str,
    max_parameters: float | None,
    max_flops: float | None,
    arch_text: str | None,
    out: str,
    form: str,
) -> None:
    """Take the best network within the bounds out of the supernet trained in DIR.

    It needs no further training. The best is chosen among the preferred networks on data held out
    for choices; its accuracy is reported on other held-out data.
    """
    from lpzero.supernet.trained import of_architecture, open_supernet, write
    from lpzero.supernet.trained import specialise as best_of

    path = Path(out)
    if path.suffix != ".safetensors":
        raise click.UsageError("--out must end in .safetensors")
    trained = open_supernet(folder)
    space = trained.supernet.space
    chosen = None if arch_text is None else _arch(space, arch_text)

    def allows(arch: Any) -> bool:
        return (max_parameters is None or space.parameters(arch) <= max_parameters) and (
            max_flops is None or space.flops(arch) <= max_flops
        )

    found = best_of(trained, allows) if chosen is None else of_architecture(trained, chosen)
    write(found, path)
    interval = [found.test.value + sign * 1.96 * found.test.error for sign in (-1, 1)]
    row: dict[str, Any] = {
        "parameters": space.parameters(found.arch),
        "flops": space.flops(found.arch),
        "valid": found.valid.value,
        "test": found.test.value,
        "test_ci": interval,
    }
    if form == "json":
        arch = space.to_json(found.arch)
        output.print_json({"arch": arch, **row, "measured": found.n_candidates, "file": out})
        return
    click.echo(json.dumps(space.to_json(found.arch)))
    shown = {**row, "test_ci": "{:.3f} to {:.3f}".format(*interval)}
    output.print_rows([shown], "table", f"{trained.task.target_name} with the supernet's weights")
    click.echo(output.printable(f"\n{out}: load it with lpzero.supernet.load_network"))


def _arch(space: Any, text: str) -> Any:
    from lpzero.errors import InputError

    try:
        fields = json.loads(text)
    except ValueError:
        raise InputError("--arch is not JSON") from None
    return space.from_json(fields)

"""specialise: Take a network with its weights out of a trained supernet."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lpzero.errors import InputError
from lpzero.options import FILE, Real, Text, argument, option
from lpzero.verbs import Outcome, Screen
from spaces.untrusted import user_path

EXAMPLES = ("lpzero specialise runs/supernet --max-parameters 5e6 --out small.safetensors",)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Take the best network within the bounds out of the supernet trained in DIR.

    It needs no further training. The best is chosen among the preferred networks on data held out
    for choices; its accuracy is reported on other held-out data.
    """

    folder: str = argument("DIR")
    max_parameters: float | None = option(None, "At most this many parameters.", Real(0))
    max_flops: float | None = option(None, "At most this many flops.", Real(0))
    arch: str | None = option(None, "This architecture instead of the best one.", Text("JSON"))
    out: str | None = option(None, "The safetensors file to write.  [required]", FILE)


def run(request: Request, screen: Screen) -> Outcome:
    """The architecture that was chosen, its size, and its measures on held-out data."""
    from lpzero.supernet.trained import of_architecture, open_supernet, write
    from lpzero.supernet.trained import specialise as best_of

    path = user_path(request.out or "")
    if path.suffix != ".safetensors":
        raise InputError("--out must end in .safetensors: name the file to write")
    trained = open_supernet(request.folder)
    space = trained.supernet.space

    def allows(arch: Any) -> bool:
        parameters, flops = request.max_parameters, request.max_flops
        return (parameters is None or space.parameters(arch) <= parameters) and (
            flops is None or space.flops(arch) <= flops
        )

    network = (
        best_of(trained, allows)
        if request.arch is None
        else of_architecture(trained, _arch(space, request.arch))
    )
    write(network, path)
    interval = [network.test.value + sign * 1.96 * network.test.error for sign in (-1, 1)]
    arch = space.to_json(network.arch)
    row: dict[str, Any] = {
        "parameters": space.parameters(network.arch),
        "flops": space.flops(network.arch),
        "valid": network.valid.value,
        "test": network.test.value,
        "test_ci": interval,
    }
    file = str(request.out)
    return Outcome(
        {"arch": arch, **row, "measured": network.n_candidates, "file": file},
        {
            "head": [json.dumps(arch)],
            "rows": [{**row, "test_ci": "{:.3f} to {:.3f}".format(*interval)}],
            "title": f"{trained.task.target_name} with the supernet's weights",
            "lines": ["", f"{file}: load it with lpzero.supernet.load_network"],
        },
    )


def _arch(space: Any, text: str) -> Any:
    try:
        fields = json.loads(text)
    except ValueError:
        raise InputError("--arch is not JSON") from None
    return space.from_json(fields)

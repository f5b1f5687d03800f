"""`lpzero score MODEL`: the scores of models of your own, or of Hugging Face configurations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output
from lpzero.statistics.losses import LOSSES

if TYPE_CHECKING:
    from torch import nn

    from lpzero.proxies.model_scores import Scores
    from lpzero.statistics.layout import Layout

_LARGEST_LAYOUT = 1 << 20  # bytes


@click.command()
@click.argument("models", nargs=-1, metavar="[MODULE:MODEL]...")
@click.option(
    "--hf",
    "configurations",
    multiple=True,
    type=click.Path(),
    metavar="CONFIG.json|FOLDER",
    help="A configuration of Hugging Face, built without weights, or a folder that save_pretrained"
    " wrote; repeatable.",
)
@click.option(
    "--proxy",
    "texts",
    multiple=True,
    metavar="NAME|FORMULA|FILE",
    help="A proxy, a formula, an exported file or a run's directory; repeatable."
    "  [default: all, without -released]",
)
@click.option(
    "--released", is_flag=True, help="Without --proxy: also the authors' released recipes."
)
@click.option(
    "--inputs",
    metavar="MODULE:BATCH",
    help="The batch: a tensor, or tensors by the names of the model's arguments.  [default: random"
    " tokens or images]",
)
@click.option(
    "--batch", type=click.IntRange(min=2), help="The number of inputs.  [default: 8; images: 4]"
)
@click.option(
    "--length",
    type=click.IntRange(min=2),
    help="The number of tokens of an input.  [default: 64, or what the model reads]",
)
@output.corpus_options
@click.option(
    "--loss",
    default="auto",
    show_default=True,
    metavar="NAME|MODULE:LOSS",
    help=f"One of {', '.join(LOSSES)}, or a function of the model's output and its batch that gives"
    " one number or one per sample.",
)
@click.option(
    "--layout",
    type=click.Path(dir_okay=False),
    metavar="FILE.json",
    help="Where statistics are read.  [default: found by running the model]",
)
@click.option(
    "--show-layout", is_flag=True, help="Print where statistics are read, as --layout takes it."
)
@click.option("--chunk", type=click.IntRange(min=1), help="Inputs per pass.  [default: all]")
@output.definitions_option
@output.seed_option
@output.device_option
@output.format_option
def score(**given: Any) -> None:
    """Score models: larger is better, whatever the proxy.

    MODULE:MODEL is an object in a Python module or file, my_model.py:MODEL, which is run: a torch
    module, or a function that gives one. With several models, proxies that rank them are scored
    too.
    """
    from lpzero.proxies.model_scores import default_proxies, given_network, score_networks
    from lpzero.statistics.isolation import resolve_device

    models = _models(given)
    if not models:
        raise click.UsageError(
            "no model given: lpzero score my_model.py:MODEL, or --hf CONFIG.json"
        )
    layout, loss = _layout(given["layout"]), _loss(given["loss"])
    batch = _value(given["inputs"]) if given["inputs"] else None
    networks = {}
    for name, model in models.items():
        model.to(resolve_device(given["device"]))
        read = _batch(model, given) if batch is None else batch
        networks[name] = given_network(model, read, loss, layout, given["seed"], given["chunk"])
    if given["show_layout"]:
        shown = {name: network.layout.to_json() for name, network in networks.items()}
        output.print_json(shown if len(shown) > 1 else next(iter(shown.values())))
        return
    proxies = list(given["texts"]) or default_proxies(given["released"])
    _print(score_networks(networks, proxies, given["definitions"]), given["form"])


def _models(given: dict[str, Any]) -> dict[str, nn.Module]:
    from torch import nn

    from lpzero.errors import InputError

    found: dict[str, nn.Module] = {}
    for address in given["models"]:
        value = _value(address)
        model = value if isinstance(value, nn.Module) else value() if callable(value) else value
        if not isinstance(model, nn.Module):
            kind = type(model).__name__
            raise InputError(f"{address} gives {kind}, expected a torch module")
        found[address] = model
    for path in given["configurations"]:
        from lpzero import hf

        is_folder = Path(path).is_dir()
        found[path] = hf.load(path) if is_folder else hf.build(path, given["seed"])
    return found


def _value(address: str) -> Any:
    """The object at MODULE:NAME, whose module is run."""
    from lpzero.errors import InputError
    from primitives.errors import did_you_mean
    from spaces import user_modules

    module_name, _, attribute = address.rpartition(":")
    if not module_name or not attribute.isidentifier():
        raise InputError(f"{address!r} is not an address; write my_module.py:NAME")
    module = user_modules.load(module_name)
    if not hasattr(module, attribute):
        known = [name for name in vars(module) if not name.startswith("_")]
        raise InputError(f"{module_name} has no {attribute}; {did_you_mean(attribute, known)}")
    return getattr(module, attribute)


def _loss(text: str) -> Any:
    if ":" in text:
        return _value(text)
    if text not in LOSSES:
        raise click.UsageError(f"loss {text!r} is unknown; use one of {', '.join(LOSSES)}")
    return text


def _layout(path: str | None) -> Layout | None:
    import json

    from lpzero.errors import InputError
    from lpzero.statistics.layout import layout_from_json
    from spaces.regular_files import read_regular

    if path is None:
        return None
    try:
        fields = json.loads(read_regular(Path(path), _LARGEST_LAYOUT))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    return layout_from_json(fields)


def _batch(model: nn.Module, given: dict[str, Any]) -> Any:
    from lpzero.hf.batches import batch

    text = output.chosen_batch({**given, "batch": None, "length": None})
    return batch(model, given["batch"], given["length"], given["seed"], text)


def _print(scores: Scores, form: str) -> None:
    from lpzero.errors import InputError

    scored = [row for row in scores if row.reason is None]
    if not scored:
        first = scores.rows[0]
        raise InputError(f"{first.proxy} cannot be scored: {first.reason}")
    if form == "json":
        output.print_json(scores.to_json())
        return
    several = len({row.model for row in scores}) > 1
    rows = [
        {
            **({"model": row.model} if several else {}),
            "proxy": row.proxy,
            "score": row.score,
            "ms": round(1000 * row.seconds, 1),
            "needs": row.needs,
        }
        for row in scored
    ]
    title = "larger is better" if several else f"{scored[0].model}: larger is better"
    output.print_rows(rows, "table", title, ("score",))
    output.note(f"not scored: {name}: {reason}" for name, reason in scores.refused.items())

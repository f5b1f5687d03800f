"""score: Score a model of your own, or a Hugging Face configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.options import (
    FILE,
    NETWORKS,
    PAPERS,
    OneOf,
    Repeated,
    Switch,
    Text,
    Whole,
    argument,
    group,
    option,
)
from lpzero.statistics import DEFINITIONS, LOSSES, OURS
from lpzero.verbs import Outcome, Screen, groups
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from lpzero.proxies.model_scores import Scores
    from lpzero.statistics.layout import Layout

_LARGEST_LAYOUT = 1 << 20  # bytes
EXAMPLES = (
    "lpzero score my_model.py:MODEL --proxy snip",
    "lpzero score --hf config.json",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Score models: larger is better, whatever the proxy.

    MODULE:MODEL is an object in a Python module or file, my_model.py:MODEL, which is run: a torch
    module, or a function that gives one. With several models, proxies that rank them are scored
    too.
    """

    models: tuple[str, ...] = argument("MODULE:MODEL", (), is_code=True)
    hf: tuple[str, ...] = option(
        (),
        "A configuration of Hugging Face, built without weights, or a folder that save_pretrained"
        " wrote; repeatable.",
        Repeated("CONFIG.json|FOLDER"),
    )
    proxies: tuple[str, ...] = option(
        (),
        "A proxy, a formula, an exported file or a run's directory; repeatable."
        "  [default: all, without -released]",
        Repeated("NAME|FORMULA|FILE"),
        "--proxy",
    )
    released: bool = option(
        False, "Without --proxy: also the authors' released recipes.", Switch(), panel=PAPERS
    )
    inputs: str | None = option(
        None,
        "The batch: a tensor, or tensors by the names of the model's arguments.  [default: random"
        " tokens or images]",
        Text("MODULE:BATCH"),
        is_code=True,
        panel=NETWORKS,
    )
    batch: int | None = option(
        None, "The number of inputs.  [default: 8; images: 4]", Whole(2), panel=NETWORKS
    )
    length: int | None = option(
        None,
        "The number of tokens of an input.  [default: 64, or what the model reads]",
        Whole(2),
        panel=NETWORKS,
    )
    text: groups.Corpus = group(groups.Corpus)
    loss: str = option(
        "auto",
        f"One of {', '.join(LOSSES)}, or a function of the model's output and its batch that gives"
        " one number or one per sample.",
        Text("NAME|MODULE:LOSS"),
        is_code=True,
        panel=NETWORKS,
    )
    layout: str | None = option(
        None,
        "Where statistics are read.  [default: found by running the model]",
        FILE,
        panel=NETWORKS,
    )
    show_layout: bool = option(
        False, "Print where statistics are read, as --layout takes it.", Switch()
    )
    chunk: int | None = option(None, "Inputs per pass.  [default: all]", Whole(1), panel=NETWORKS)
    definitions: str = option(
        OURS, groups.DEFINITIONS_HELP, OneOf("definitions", DEFINITIONS), panel=NETWORKS
    )
    weights_seed: int = groups.weights_seed()
    device: str = groups.device()
    dtype: str = option(
        "float32",
        "What weights and activations are held in; scores are added up in float32 or float64.",
        OneOf("dtype", ("float32", "bfloat16")),
        panel=NETWORKS,
    )
    memory: int | None = groups.memory()


def run(request: Request, screen: Screen) -> Outcome:
    """A row per model and proxy, or the layouts of the models."""
    import torch

    from lpzero.proxies.base import Needs
    from lpzero.proxies.model_scores import (
        as_proxy,
        default_proxies,
        given_network,
        score_networks,
    )
    from lpzero.statistics.isolation import resolve_device

    proxies = [as_proxy(one) for one in request.proxies or default_proxies(request.released)]
    # Counters need no numbers: the networks are only laid out.
    is_counted = not request.show_layout and all(proxy.needs is Needs.NOTHING for proxy in proxies)
    models = _models(request, is_counted)
    if not models:
        raise InputError("no model given: lpzero score my_model.py:MODEL, or --hf CONFIG.json")
    layout, loss = _layout(request.layout), "cotangent" if is_counted else _loss(request.loss)
    batch = _object(request.inputs) if request.inputs else None
    networks = {}
    for name, model in models.items():
        if not is_counted:
            model.to(resolve_device(request.device))
        if request.dtype != Request.dtype:
            model.to(getattr(torch, request.dtype))
        read = _batch(model, request) if batch is None else batch
        networks[name] = given_network(
            model, read, loss, layout, request.weights_seed, request.chunk
        )
    if request.show_layout:
        layouts = {name: network.layout.to_json() for name, network in networks.items()}
        return Outcome(layouts if len(layouts) > 1 else next(iter(layouts.values())))
    label = screen.label("proxies") if len(proxies) > 1 else None
    scores = score_networks(networks, proxies, request.definitions, label)
    if not any(row.reason is None for row in scores):
        first = scores.rows[0]
        raise InputError(f"{first.proxy} cannot be scored: {first.reason}")
    if screen.is_brief:  # JSON has the reasons in its rows
        for reason in dict.fromkeys(scores.refused.values()):
            without = [proxy for proxy, why in scores.refused.items() if why == reason]
            screen.say(f"not scored: {', '.join(without)}: {reason}")
    return Outcome(scores.to_json(), _table(scores))


def _models(request: Request, is_counted: bool) -> dict[str, nn.Module]:
    """The models by name; those that are only counted on torch's device meta."""
    from torch import nn

    from lpzero import hf

    models: dict[str, nn.Module] = {}
    for address in request.models:
        model = _object(address)
        if not isinstance(model, nn.Module) and callable(model):
            model = _laid_out(model, address) if is_counted else model()
        if not isinstance(model, nn.Module):
            kind = type(model).__name__
            raise InputError(f"{address} gives {kind}, expected a torch module")
        models[address] = model
    for path in request.hf:
        is_folder = user_path(path).is_dir()
        size = request.batch, request.length
        if is_counted:
            models[path] = hf.lay_out(path)
        elif is_folder:
            models[path] = hf.load(path, *size, request.dtype)
        else:
            models[path] = hf.build(path, request.weights_seed, *size, request.dtype)
    return models


def _laid_out(make: Callable[[], Any], address: str) -> Any:
    """What the function gives on the device meta; with numbers if it does not work there."""
    from spaces.errors import MemoryLimitError
    from spaces.outlines import outline

    try:
        return outline(make, address, is_built=False)
    except MemoryLimitError:
        raise
    except Exception:  # of the user's code, which says itself what is wrong when it is really run
        return make()


def _object(address: str) -> Any:
    """The object at an address of the request, whose module was run when the request was made."""
    from spaces.user_modules import find

    return find(address, object, "object")


def _loss(text: str) -> Any:
    if ":" in text:
        return _object(text)
    if text not in LOSSES:
        raise InputError(f"loss {text!r} is unknown; use one of {', '.join(LOSSES)}")
    return text


def _layout(path: str | None) -> Layout | None:
    from lpzero.statistics.layout import layout_from_json
    from spaces.untrusted import read_json

    if path is None:
        return None
    return layout_from_json(read_json(user_path(path), _LARGEST_LAYOUT))


def _batch(model: nn.Module, request: Request) -> Any:
    from lpzero.hf import batch
    from spaces.minibatch import Minibatch

    text = Minibatch.chosen(None, None, request.text.corpus, request.text.tokenizer)
    return batch(model, request.batch, request.length, request.weights_seed, text)


def _table(scores: Scores) -> dict[str, Any]:
    """What a terminal shows."""
    scored = [row for row in scores if row.reason is None]
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
    return {"rows": rows, "title": title, "significant": ("score",)}

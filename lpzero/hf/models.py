"""Models from a configuration, or from a folder that `save_pretrained` wrote; what they read.

In: CONFIG.json, or a folder with config.json and weights. Out: the torch model in eval mode.
A model is laid out without memory first, and refused if it, or a pass of its batch, would not fit
(`spaces.memory`). Weights are read as numbers (safetensors, or torch files with weights only). A
random batch that a model can read is token ids below its vocabulary, or images of its size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lpzero.errors import InputError
from lpzero.hf.configuration import (
    checked_fields,
    make_configuration,
    read_configuration,
    transformers_offline,
)
from lpzero.statistics.inputs import read_inputs
from lpzero.statistics.layout import Layout
from lpzero.statistics.layout_finder import find_layout
from lpzero.statistics.objective import Loss, named_loss
from spaces import memory
from spaces.errors import shown
from spaces.images import noise_images
from spaces.minibatch import Minibatch, zipf_tokens
from spaces.outlines import check_pass, outline
from spaces.untrusted import check_tensors, open_regular, read_regular

_EAGER = "eager"
_LARGEST_INDEX = 16 << 20  # bytes of the list of files that hold weights


def build(
    configuration: str | Path | Mapping[str, Any],
    seed: int = 0,
    inputs: int | None = None,
    length: int | None = None,
    dtype: str = "float32",
) -> nn.Module:
    """The untrained model of a configuration: a file, a folder with one, or its fields.

    Its class is the one under `architectures`, else the causal language model or the encoder of its
    type. Equal seeds give equal weights; they are drawn in the dtype, in which the model is built.
    Raises MemoryLimitError if the model, or a pass of so many inputs of that length, would not fit.
    """
    is_fields = isinstance(configuration, Mapping)
    place = "the configuration" if is_fields else str(configuration)
    fields = (
        checked_fields(configuration, place)
        if isinstance(configuration, Mapping)
        else read_configuration(configuration)
    )
    with transformers_offline(place), _drawn_in(dtype):
        make = _maker(fields, place)
        laid_out = outline(make, place)
        check_pass(laid_out, _empty_batch(laid_out, inputs, length), place)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return make().eval()


@contextmanager
def _drawn_in(dtype: str) -> Iterator[None]:
    """A context in which modules are made in that dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def lay_out(configuration: str | Path) -> nn.Module:
    """The model of a configuration file, or of a folder with one, without numbers: for counting."""
    place = str(configuration)
    fields = read_configuration(configuration)
    with transformers_offline(place):
        return outline(_maker(fields, place), place, is_built=False).eval()


def build_unmeasured(fields: Mapping[str, Any], seed: int) -> nn.Module:
    """The model of a configuration's fields, whose sizes the caller checks."""
    place = "the configuration"
    checked = checked_fields(fields, place)
    with transformers_offline(place), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _maker(checked, place)().eval()


def load(
    folder: str | Path,
    inputs: int | None = None,
    length: int | None = None,
    dtype: str = "float32",
) -> nn.Module:
    """The model in a folder that `save_pretrained` wrote, with its weights in the dtype."""
    place = Path(folder)
    fields = read_configuration(place)
    has_safetensors = any(place.glob("*.safetensors"))
    if not has_safetensors and not any(place.glob("*.bin")):
        raise InputError(f"{place} has no weights: expected model.safetensors or pytorch_model.bin")
    _check_files(place)
    with transformers_offline(str(place)):
        laid_out = outline(_maker(fields, str(place)), str(place))
        check_pass(laid_out, _empty_batch(laid_out, inputs, length), str(place))
        model: nn.Module = type(laid_out).from_pretrained(  # type: ignore[attr-defined]
            str(place),
            config=make_configuration(fields, str(place)),
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=has_safetensors,
            weights_only=True,
            attn_implementation=_EAGER,
            dtype=getattr(torch, dtype),
        )
    return model.eval()


def _check_files(place: Path) -> None:
    """Raise InputError if the folder leads to other files, or has more weights than fit."""
    if (place / "adapter_config.json").exists():
        raise InputError(f"{place} holds an adapter of another model, which is not read")
    weights = [*place.glob("*.safetensors"), *place.glob("*.bin")]
    for packed in place.glob("*.bin"):
        with open_regular(packed) as file:
            check_tensors(file, packed)
    memory.check(sum(file.stat().st_size for file in weights), f"the weights in {place}")
    for index in place.glob("*.index.json"):
        try:
            names = set(json.loads(read_regular(index, _LARGEST_INDEX))["weight_map"].values())
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            raise InputError(f"{index} is not a list of weights") from None
        for name in names:
            if not isinstance(name, str) or Path(name).name != name:
                raise InputError(f"{index} names {shown(name)}, which is not a file of the folder")


def _maker(fields: Mapping[str, Any], place: str) -> Callable[[], nn.Module]:
    """A function that makes the model of checked fields, with attention that shows its weights."""
    kind = _model_class(make_configuration(fields, place), fields.get("architectures"), place)

    def make() -> nn.Module:
        config = make_configuration(fields, place)
        config._attn_implementation = _EAGER
        config._experts_implementation = _EAGER  # the others refuse float64
        model: nn.Module = kind(config)
        return model

    return make


def _model_class(config: Any, architectures: Any, place: str) -> Any:
    """The class that `architectures` names, else the one that fits the configuration."""
    import transformers

    found: Any
    named = architectures[0] if isinstance(architectures, list) and architectures else None
    if named is not None:
        found = getattr(transformers, named, None) if isinstance(named, str) else None
        is_model = isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)
        if not is_model:
            raise InputError(
                f"{place} names the architecture {shown(named)}, which transformers"
                f" {transformers.__version__} does not have"
            )
        asked: Any = found
        if not isinstance(config, asked.config_class):
            raise InputError(f"{place}: {named} is not a model of type {config.model_type}")
        return found
    kinds: tuple[Any, ...]
    if getattr(config, "is_encoder_decoder", False):
        kinds = (transformers.AutoModelForTextEncoding,)
    elif type(config) in transformers.MODEL_FOR_MASKED_LM_MAPPING:
        kinds = (transformers.AutoModel,)
    else:
        kinds = (transformers.AutoModelForCausalLM, transformers.AutoModel)
    for kind in kinds:
        if type(config) in kind._model_mapping:
            found = kind._model_mapping[type(config)]
            return found[0] if isinstance(found, (list, tuple)) else found
    raise InputError(
        f"{place}: models of type {config.model_type} have no class that can be chosen; name one"
        " under architectures"
    )


SEQUENCES, LENGTH = 8, 64
IMAGES = 4
_IMAGE_AXES = 4


def random_batch(
    model: nn.Module,
    inputs: int | None = None,
    length: int | None = None,
    seed: int = 0,
    text: Minibatch | None = None,
) -> Tensor:
    """Token ids (B, T) with frequencies as in text, or images (B, channels, H, W) of noise.

    The configuration says which; without one, the model's longest table of words does. The corpus
    of `text`, if there is one, is read instead of drawing tokens.
    """
    shape, words = _batch_shape(model, inputs, length)
    has_text = text is not None and text.corpus is not None
    if len(shape) == _IMAGE_AXES:
        if has_text:
            raise InputError(f"{type(model).__name__} reads images, not a corpus")
        n, channels, height, width = shape
        return noise_images((n, channels, height, width), seed)
    B, T = shape
    if text is not None and has_text:
        return text.of_text(words, (B, T), seed)
    return zipf_tokens(words, (B, T), seed)


def _empty_batch(model: nn.Module, inputs: int | None, length: int | None) -> Tensor:
    """A batch as `random_batch` draws it, without numbers."""
    shape, _ = _batch_shape(model, inputs, length)
    kind = torch.float32 if len(shape) == _IMAGE_AXES else torch.int64
    return torch.empty(shape, dtype=kind, device="meta")


def _batch_shape(
    model: nn.Module, inputs: int | None, length: int | None
) -> tuple[tuple[int, ...], int]:
    """The shape of a batch that the model reads, and how many words it knows."""
    config = getattr(model, "config", None)
    if getattr(config, "image_size", None) is not None:
        return (inputs or IMAGES, *image_shape(config, type(model).__name__)), 0
    words = getattr(config, "vocab_size", None) or _longest_table(model)
    if not isinstance(words, int) or words < 1:
        raise InputError(
            f"{type(model).__name__} has no table of words and no size of images: give a batch"
        )
    longest = _longest_input(config)
    if length is not None and longest is not None and length > longest:
        raise InputError(f"{type(model).__name__} reads {longest} tokens, {length} were asked for")
    return (inputs or SEQUENCES, length or min(LENGTH, longest or LENGTH)), words


def image_shape(config: Any, place: str) -> tuple[int, int, int]:
    """Channels, height and width of the images that the configuration describes."""
    side, channels = config.image_size, getattr(config, "num_channels", 3)
    sides = [side, side] if isinstance(side, int) else side
    if (
        not isinstance(sides, (list, tuple))
        or len(sides) != 2
        or not all(type(n) is int and n >= 1 for n in (channels, *sides))
    ):
        raise InputError(
            f"{place}: image_size is {shown(side)} with {shown(channels)} channels, expected a"
            " positive number, or height and width"
        )
    return channels, sides[0], sides[1]


def _longest_table(model: nn.Module) -> int | None:
    tables = [m.num_embeddings for m in model.modules() if isinstance(m, nn.Embedding)]
    return max(tables, default=None)


def _longest_input(config: Any) -> int | None:
    longest = getattr(config, "max_position_embeddings", None)
    if not isinstance(longest, int) or longest < 1:
        return None
    # Some families leave out the places up to that of the padding token.
    padding = getattr(config, "pad_token_id", None)
    return longest - (padding + 1 if isinstance(padding, int) and padding + 3 < longest else 0)


def layout(model: nn.Module, batch: Any = None) -> Layout:
    """Blocks, heads, activations, attention probabilities, embedding and head of the model.

    The model runs once on one input of the batch, or of a random one, with eager attention where a
    fused kernel would hide the probabilities; its own implementation is set again afterwards.
    """
    return find_layout(model, random_batch(model) if batch is None else batch)


def loss(model: nn.Module, batch: Any = None) -> str | Loss:
    """What `lpzero.score` differentiates by default: see `lpzero.statistics.objective`."""
    given = random_batch(model) if batch is None else batch
    return named_loss(model, "auto", read_inputs(given, model))

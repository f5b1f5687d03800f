"""Models from a configuration, or from a folder that `save_pretrained` wrote; what they read.

In: CONFIG.json, or a folder with config.json and weights. Out: the torch model in eval mode.
Nothing is downloaded; code that a configuration names is refused, and weights are read as numbers
(safetensors, or torch files with weights only). A random batch that a model can read is token ids
below its vocabulary, or images of its size.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lpzero.errors import InputError
from lpzero.statistics.inputs import read_inputs
from lpzero.statistics.layout import Layout
from lpzero.statistics.layout_finder import find_layout
from lpzero.statistics.objective import Loss, named_loss
from spaces.errors import shown
from spaces.images import noise_images
from spaces.minibatch import Minibatch, zipf_tokens
from spaces.untrusted import UntrustedError, read_regular

CONFIG = "config.json"
_LARGEST = 1 << 20  # bytes of a configuration
_REMOTE = ("auto_map", "custom_pipelines", "trust_remote_code")
_EAGER = "eager"


def read_configuration(path: str | Path) -> dict[str, Any]:
    """The fields of a configuration file, or of the one in a folder."""
    place = Path(path)
    place = place / CONFIG if place.is_dir() else place
    try:
        fields = json.loads(read_regular(place, _LARGEST))
    except FileNotFoundError:
        raise InputError(f"there is no configuration {place}") from None
    except (UntrustedError, PermissionError, IsADirectoryError) as error:
        raise InputError(f"{place}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{place} is not a JSON configuration: {reason}") from None
    if not isinstance(fields, dict):
        raise InputError(f"{place} holds {shown(fields)}, expected an object with model_type")
    return checked_fields(fields, str(place))


def checked_fields(fields: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The fields; raises InputError if they ask for code, or name no type of model."""
    for name in _REMOTE:
        if fields.get(name):
            raise InputError(
                f"{place} has {name}: it asks for code that is not part of transformers, which is"
                " never run here"
            )
    if not isinstance(fields.get("model_type"), str):
        raise InputError(
            f"{place} has model_type {shown(fields.get('model_type'))}, expected a name such as"
            " gpt2"
        )
    return dict(fields)


def build(configuration: str | Path | Mapping[str, Any], seed: int = 0) -> nn.Module:
    """The untrained model of a configuration: a file, a folder with one, or its fields.

    Its class is the one under `architectures`, else the causal language model or the encoder of its
    type. Equal seeds give equal weights.
    """
    is_path = isinstance(configuration, (str, Path))
    place = str(configuration) if is_path else "the configuration"
    if isinstance(configuration, Mapping):
        fields = checked_fields(configuration, place)
    else:
        fields = read_configuration(configuration)
    with refusing(place):
        config = make_configuration(fields)
        kind = _model_class(config, fields.get("architectures"), place)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            config._attn_implementation = _EAGER
            model: nn.Module = kind(config)
    return model.eval()


def load(folder: str | Path) -> nn.Module:
    """The model in a folder that `save_pretrained` wrote, with its weights."""
    place = Path(folder)
    fields = read_configuration(place)
    has_safetensors = any(place.glob("*.safetensors"))
    if not has_safetensors and not any(place.glob("*.bin")):
        raise InputError(f"{place} has no weights: expected model.safetensors or pytorch_model.bin")
    with refusing(str(place)):
        kind = _model_class(make_configuration(fields), fields.get("architectures"), str(place))
        model: nn.Module = kind.from_pretrained(
            str(place),
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=has_safetensors,
            weights_only=True,
            attn_implementation=_EAGER,
            dtype=torch.float32,
        )
    return model.eval()


def make_configuration(fields: Mapping[str, Any]) -> Any:
    """The configuration object of these fields."""
    from transformers import CONFIG_MAPPING, AutoConfig

    if fields["model_type"] not in CONFIG_MAPPING:
        close = get_close_matches(fields["model_type"], list(CONFIG_MAPPING), 3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise InputError(f"transformers has no model_type {shown(fields['model_type'])}{hint}")
    others = {name: value for name, value in fields.items() if name != "model_type"}
    return AutoConfig.for_model(fields["model_type"], **others)


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


@contextmanager
def refusing(place: str) -> Iterator[None]:
    """Turn whatever transformers raises into one line, and keep its log quiet meanwhile."""
    try:
        import transformers
    except ImportError:
        raise InputError(
            "models of Hugging Face need transformers: pip install 'lpzero[hf]'"
        ) from None
    log = logging.getLogger("transformers")
    before, has_bar = log.level, transformers.utils.logging.is_progress_bar_enabled()
    log.setLevel(logging.CRITICAL)
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # of validation, of a constructor or of reading weights
        reason = " ".join(f"{error}".split())[:300] or type(error).__name__
        raise InputError(f"{place} cannot be built: {reason}") from error
    finally:
        log.setLevel(before)
        if has_bar:
            transformers.utils.logging.enable_progress_bar()


SEQUENCES, LENGTH = 8, 64
IMAGES = 4


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
    has_text = text is not None and text.corpus is not None
    config = getattr(model, "config", None)
    side = getattr(config, "image_size", None)
    if side is not None and has_text:
        raise InputError(f"{type(model).__name__} reads images, not a corpus")
    if side is not None:
        height, width = (side, side) if isinstance(side, int) else side
        channels = getattr(config, "num_channels", 3)
        return noise_images((inputs or IMAGES, channels, height, width), seed)
    words = getattr(config, "vocab_size", None) or _longest_table(model)
    if words is None:
        raise InputError(
            f"{type(model).__name__} has no table of words and no size of images: give a batch"
        )
    longest = _longest_input(config)
    if length is not None and longest is not None and length > longest:
        raise InputError(f"{type(model).__name__} reads {longest} tokens, {length} were asked for")
    T = length or min(LENGTH, longest or LENGTH)
    shape = inputs or SEQUENCES, T
    if text is not None and has_text:
        return text.of_text(int(words), shape, seed)
    return zipf_tokens(int(words), shape, seed)


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

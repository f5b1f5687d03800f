"""A space of Hugging Face configurations: fixed fields, and choices for some of them.

SPACE.yaml:

    model_type: gpt2
    fields: {vocab_size: 256, n_positions: 64}
    search:
      n_layer: [2, 3, 4]
      n_embd: {from: 32, to: 128, step: 32}
    batch: [8, 64]
    where: n_embd % 64 == 0 or n_layer > 2

Combinations that transformers refuses (a width that the heads do not divide) are not architectures
of the space: they are drawn again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lpzero.errors import InputError
from lpzero.hf.configuration import checked_fields, make_configuration, transformers_offline
from lpzero.hf.models import build_unmeasured, image_shape
from lpzero.own import space as own_space
from spaces.errors import DeclarationError, as_text, shown
from spaces.own.configuration import DEPTHS, MOST_VALUES, Configuration
from spaces.own.space import Holds, OwnSpace, laid_out_fits
from spaces.own.where import Where
from spaces.tables.readers import read_yaml

_LARGEST = 1 << 16  # bytes of a space; the YAML reader takes a second for so many
_KEYS = ("model_type", "fields", "search", "batch", "where")
_TEXT, _IMAGES = (8, 64), 4


@dataclass(frozen=True, slots=True)
class BuildModel:
    """From the choices of an architecture to the untrained model, weights from torch's seed.

    `fields` are the other fields of the configuration, as JSON.
    """

    fields: str

    def __call__(self, choices: Mapping[str, Any]) -> nn.Module:
        seed = torch.initial_seed() if torch.get_default_device().type != "meta" else 0
        return build_unmeasured(self.configuration(choices), seed)

    def configuration(self, choices: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the configuration with these choices."""
        return {**json.loads(self.fields), **choices}


@dataclass(frozen=True)
class HfSpace(OwnSpace):
    """Configurations that transformers can build; `stated` is what all of them have, as JSON."""

    stated: str = ""
    where_text: str | None = None

    def identity(self) -> dict[str, Any]:
        import transformers

        own = {"stated": self.stated, "transformers": transformers.__version__}
        own |= {} if self.where_text is None else {"where": self.where_text}
        return {**super().identity(), **own}

    def refusal(self, arch: Configuration) -> str | None:
        return super().refusal(arch) or _refused(self, arch, self.inputs)

    def shown_to_where(self, arch: Configuration) -> Configuration:
        return Configuration(tuple({**json.loads(self.stated), **arch}.items()))

    def check_size(self, arch: Configuration, shape: tuple[int, ...]) -> None:
        _refused(self, arch, shape)


@lru_cache(maxsize=1 << 16)
def _refused(of: HfSpace, arch: Configuration, shape: tuple[int, ...]) -> str | None:
    """Why the model cannot be built; None if it can, as a layout without memory shows.

    Raises MemoryLimitError if it is too large for this machine, which is no property of the space:
    drawing another architecture would give every machine other results.
    """
    try:
        laid_out_fits(of, arch, shape)
    except InputError as error:
        return f"{arch}: {error}"
    return None


def read_space(path: str | Path) -> HfSpace:
    """The space that a YAML file describes."""
    place = Path(path)
    given = read_yaml(place, _LARGEST)
    if not isinstance(given, dict) or not set(given) <= set(_KEYS):
        raise InputError(f"{place} holds {shown(given)}, expected the keys {', '.join(_KEYS)}")
    return make_space(place.stem, given, str(place))


def space_of(
    configuration: Any,
    *,
    name: str | None = None,
    batch: Sequence[int] | None = None,
    where: str | Holds | None = None,
    **choices: Sequence[Any] | Mapping[str, int],
) -> HfSpace:
    """The space of configurations that differ from one in these fields.

    `configuration` is an object of transformers, `LlamaConfig(...)`, its fields with `model_type`,
    or what a SPACE.yaml holds, with its choices under `search`. A choice is a list of values or a
    range, `{"from": 32, "to": 128, "step": 32}`. `where` says whether a configuration is one of the
    space's: a function of it, or an expression as in the file.
    """
    fields = dict(configuration) if isinstance(configuration, Mapping) else _fields(configuration)
    if "search" in fields:
        given = {**fields, "search": {**fields["search"], **choices}}
    else:
        kind = fields.pop("model_type", None)
        given = {"model_type": kind, "fields": fields, "search": choices}
    given |= {} if batch is None else {"batch": list(batch)}
    given |= {} if where is None else {"where": where}
    return make_space(name or f"{given.get('model_type')}-space", given)


def _fields(configuration: Any) -> dict[str, Any]:
    """The fields of a configuration of transformers that are not the usual ones."""
    if not hasattr(configuration, "to_diff_dict"):
        kind = type(configuration).__name__
        raise InputError(f"a {kind} is no configuration: give a LlamaConfig, say, or its fields")
    found = dict(configuration.to_diff_dict())
    found["model_type"] = configuration.model_type
    return {key: value for key, value in found.items() if key != "transformers_version"}


def make_space(name: str, given: Mapping[str, Any], place: str = "the space") -> HfSpace:
    """The space of that name with `model_type`, `fields`, `search` and `batch`."""
    fields, search = given.get("fields") or {}, given.get("search")
    if not isinstance(fields, Mapping) or not isinstance(search, Mapping) or not search:
        raise InputError(f"{place}: expected fields and search to map names to values")
    named = {as_text(field): of for field, of in search.items()}
    choices = {field: _choices(place, field, of) for field, of in named.items()}
    example = {field: of[0] for field, of in choices.items()}
    config = _configuration({"model_type": given.get("model_type"), **fields, **example}, place)
    plain = type(config)()
    for field in choices:
        if not hasattr(plain, field):
            raise InputError(f"{place}: a configuration of {config.model_type} has no {field}")
    depth = next((field for field in (*DEPTHS, "num_layers") if field in choices), None)
    stated = _text(place, {"model_type": config.model_type, **fields})
    batch, vocabulary = _batch(place, given.get("batch"), config)
    make = BuildModel(stated)
    where = given.get("where")
    if where is not None and not callable(where):
        where = _where(place, where, {**fields, **example})
    sizes: dict[str, Any] = {"batch": batch, "vocabulary": vocabulary}
    made = own_space(choices, make, name=name, depth=depth, where=where, **sizes)
    values = {field: getattr(made, field) for field in made.__dataclass_fields__}
    text = where.text if isinstance(where, Where) else None
    return HfSpace(**values, stated=stated, where_text=text)


def _where(place: str, given: Any, example: Mapping[str, Any]) -> Where:
    """The constraint that the expression states; tried on an example."""
    try:
        where = Where(given)
        where(example)
    except DeclarationError as error:
        raise InputError(f"{place}: {error}") from None
    return where


def _text(place: str, fields: Mapping[str, Any]) -> str:
    try:
        return json.dumps(fields, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{place}: fields are not plain values: {error}") from None


def _configuration(fields: dict[str, Any], place: str) -> Any:
    checked = checked_fields(fields, place)
    with transformers_offline(place):
        return make_configuration(checked, place)


def _choices(place: str, field: str, given: Any) -> list[Any]:
    if isinstance(given, Mapping):
        bounds = {"step": 1, **given}
        if set(bounds) == {"from", "to", "step"} and all(type(n) is int for n in bounds.values()):
            first, last, step = bounds["from"], bounds["to"], bounds["step"]
            if step > 0 and first <= last:
                n_values = (last - first) // step + 1
                if n_values > MOST_VALUES:
                    raise InputError(
                        f"{place}: {field} is {shown(dict(given))}, expected at most"
                        f" {MOST_VALUES:,} values"
                    )
                return list(range(first, last + 1, step))
        raise InputError(
            f"{place}: {field} is {shown(dict(given))}, expected from, to and step as whole numbers"
        )
    if not isinstance(given, list) or not given:
        raise InputError(f"{place}: {field} is {shown(given)}, expected a list or a range")
    return given


def _batch(place: str, given: Any, config: Any) -> tuple[tuple[int, ...], int]:
    words = getattr(config, "vocab_size", None) or 256
    if type(words) is not int or words < 1:
        raise InputError(f"{place}: vocab_size is {shown(words)}, expected a positive number")
    if given is not None and (
        not isinstance(given, list) or not all(type(n) is int for n in given)
    ):
        raise InputError(f"{place}: batch is {shown(given)}, expected whole numbers")
    if getattr(config, "image_size", None) is not None:
        return (given[0] if given else _IMAGES, *image_shape(config, place)), words
    return tuple(given or _TEXT), words

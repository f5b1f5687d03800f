"""Configurations of Hugging Face: read as data, and made without a network or foreign code.

A configuration is a stranger's file. Fields that ask for code, that name a model or a file outside
the configuration, or whose counts no model has are refused before transformers sees them; while
transformers works, its hub is offline.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lpzero.errors import InputError
from spaces.errors import SpaceError, as_text, shown
from spaces.tables.readers import read_json

CONFIG = "config.json"
_LARGEST = 1 << 20  # bytes of a configuration
_MOST_VALUES, _MOST_LEVELS = 200_000, 20

_CODE = ("auto_map", "custom_pipelines", "trust_remote_code")
_OTHER_MODELS = ("backbone", "use_pretrained_backbone", "use_timm_backbone")
_TIMM = ("timm_backbone", "timm_wrapper")  # its models are outside transformers, and may be fetched
# Where a configuration came from, and texts for people; left out, because nothing needs them.
_ORIGINS = ("_name_or_path", "name_or_path", "_commit_hash", "task_specific_params")
_ADDRESS = re.compile(r"\S/\S|^[/~]|^\.\.|\\")
_LABELS = ("id2label", "label2id")
# Counts that transformers loops over before a model can be measured.
_COUNTS = re.compile("layer|depth|block|stage|expert|indices|attention_types|dense_replace")
_NO_COUNTS = re.compile("size|dim|width|channel|length|capacity")
_MOST_PARTS, _MOST_EXPERTS, _MOST_LABELS = 5_000, 20_000, 90_000


def read_configuration(path: str | Path) -> dict[str, Any]:
    """The fields of a configuration file, or of the one in a folder."""
    place = Path(path)
    place = place / CONFIG if place.is_dir() else place
    fields = read_json(place, _LARGEST)
    if not isinstance(fields, dict):
        raise InputError(f"{place} holds {shown(fields)}, expected an object with model_type")
    return checked_fields(fields, str(place))


def checked_fields(fields: Mapping[str, Any], place: str) -> dict[str, Any]:
    """A copy of the fields, at every level without where they came from.

    Raises InputError if they ask for code or for another model, have a count that no model has, are
    too many or too deep, or name no type of model.
    """
    checked: dict[str, Any] = _Checked(place).copy("", fields, 0)
    if not isinstance(checked.get("model_type"), str):
        raise InputError(
            f"{place} has model_type {shown(checked.get('model_type'))}, expected a name such as"
            " gpt2"
        )
    return checked


class _Checked:
    """Copies values of a configuration, and counts them: aliases may repeat a value endlessly."""

    def __init__(self, place: str) -> None:
        self.place, self.n_values = place, 0

    def copy(self, key: str, value: Any, level: int) -> Any:
        """A copy of the value under that key, whose every part is allowed."""
        self.n_values += 1
        if self.n_values > _MOST_VALUES or level > _MOST_LEVELS:
            raise InputError(
                f"{self.place} has more than {_MOST_VALUES:,} values or {_MOST_LEVELS} levels"
            )
        if key in _CODE and value:
            raise InputError(
                f"{self.place} has {key}: it asks for code that is not part of transformers, which"
                " is never run here"
            )
        if isinstance(value, Mapping):
            return {
                inner: self.copy(key if key in _LABELS else as_text(inner), part, level + 1)
                for inner, part in value.items()
                if inner not in _ORIGINS
            }
        self._check(key, value)
        if isinstance(value, (list, tuple)):
            return [self.copy(key, part, level + 1) for part in value]
        return value

    def _check(self, key: str, value: Any) -> None:
        is_timm = key == "model_type" and value in _TIMM
        is_address = isinstance(value, str) and key not in _LABELS and _is_address(value)
        if is_timm or is_address or (key in _OTHER_MODELS and value):
            raise self._outside(key, value)
        most = _most(key)
        if isinstance(value, int) and most is not None and value > most:
            raise InputError(f"{self.place}: {key} is {shown(value)}, expected at most {most:,}")

    def _outside(self, key: str, value: Any) -> InputError:
        return InputError(
            f"{self.place}: {key} is {shown(value)}, which names a model or a file outside the"
            " configuration; nothing is downloaded: describe it inside (backbone_config)"
        )


def _is_address(text: str) -> bool:
    """Whether the text may be a repository of a hub, an address of the web or a path."""
    return bool(_ADDRESS.search(text))


def _most(key: str) -> int | None:
    if key == "num_labels":
        return _MOST_LABELS
    if not _COUNTS.search(key) or _NO_COUNTS.search(key):
        return None
    return _MOST_EXPERTS if "expert" in key else _MOST_PARTS


def make_configuration(fields: Mapping[str, Any], place: str) -> Any:
    """The configuration object of these fields, which `checked_fields` gave."""
    from transformers import CONFIG_MAPPING, AutoConfig

    if fields["model_type"] not in CONFIG_MAPPING:
        close = get_close_matches(fields["model_type"], list(CONFIG_MAPPING), 3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise InputError(f"transformers has no model_type {shown(fields['model_type'])}{hint}")
    others = {name: value for name, value in fields.items() if name != "model_type"}
    made = AutoConfig.for_model(fields["model_type"], **others)
    # The defaults of a type may name another model, too.
    checked_fields(made.to_dict(), place)
    heads, shared = (
        getattr(made, f"num_{kind}_heads", None) for kind in ("attention", "key_value")
    )
    # transformers builds such a model, which then cannot run.
    if isinstance(heads, int) and isinstance(shared, int) and shared > 0 and heads % shared:
        raise InputError(
            f"num_attention_heads = {heads} is not divisible by num_key_value_heads = {shared}"
        )
    return made


_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
# What the libraries remember of them: the hub's, and that of transformers before version 5.
_CONSTANTS = {
    "huggingface_hub.constants": "HF_HUB_OFFLINE",
    "transformers.utils.hub": "_is_offline_mode",
}


class _Offline:
    """Hugging Face's hub without a network, for as long as one thread or more needs it so."""

    def __init__(self) -> None:
        self._lock, self._n_users = threading.Lock(), 0

    def __enter__(self) -> None:
        from huggingface_hub import constants

        with self._lock:
            self._n_users += 1
            if self._n_users == 1:
                self._was_offline = bool(constants.HF_HUB_OFFLINE)
                self._variables = {name: os.environ.get(name) for name in _VARIABLES}
                os.environ.update(dict.fromkeys(_VARIABLES, "1"))
                _set_constants(True)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_users -= 1
            if self._n_users == 0:
                _set_constants(self._was_offline)
                for name, value in self._variables.items():
                    os.environ.pop(name) if value is None else os.environ.update({name: value})


def _set_constants(is_offline: bool) -> None:
    for module, name in _CONSTANTS.items():
        if hasattr(sys.modules.get(module), name):
            setattr(sys.modules[module], name, is_offline)


_OFFLINE = _Offline()


@contextmanager
def transformers_offline(place: str) -> Iterator[None]:
    """A context in which transformers may work: without a network, quiet, every error one line."""
    try:
        with _OFFLINE:
            import transformers

            with _quiet(transformers.utils.logging):
                yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("transformers", "huggingface_hub"):
            raise InputError(f"{place} cannot be built: {_reason(error)}") from error
        raise InputError(
            "models of Hugging Face need transformers: pip install 'lpzero[hf]'"
        ) from None
    except (InputError, SpaceError, MemoryError):
        raise
    except Exception as error:  # of validation, of a constructor or of reading weights
        raise InputError(f"{place} cannot be built: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return " ".join(f"{error}".split())[:300] or type(error).__name__


@contextmanager
def _quiet(hub_logging: Any) -> Iterator[None]:
    log = logging.getLogger("transformers")
    before, has_bar = log.level, hub_logging.is_progress_bar_enabled()
    log.setLevel(logging.CRITICAL)
    hub_logging.disable_progress_bar()
    try:
        yield
    finally:
        log.setLevel(before)
        if has_bar:
            hub_logging.enable_progress_bar()

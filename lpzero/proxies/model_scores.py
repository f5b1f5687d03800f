"""Scores of a model of your own, by any proxy.

    score_networks({"model": given_network(model, batch)}, ["snip", "sum(mul(abs(G), abs(W)))"])

`lpzero.score` is this with a random batch and all proxies by default. Larger is always better, and
a name that ends in -normalised is a mean. A proxy that cannot score the model has a reason instead
of a score. The models are a space of which they are the architectures, so every proxy scores them
as it scores a table, with its own sign.
"""

from __future__ import annotations

import html
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from torch import nn

from lpzero.errors import InputError
from lpzero.parallel import progress
from lpzero.proxies.base import Measure, Needs, NetworkProxy, Proxy
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.lookup import find
from lpzero.proxies.measurements import Measurements, Record, evaluate
from lpzero.proxies.network import Network
from lpzero.proxies.ranking import is_released
from lpzero.proxies.registry import get, names
from lpzero.statistics import OURS
from lpzero.statistics.inputs import read_inputs
from lpzero.statistics.isolation import single_thread
from lpzero.statistics.layout import Layout
from lpzero.statistics.layout_finder import find_layout
from lpzero.statistics.model_sizes import ModelSizes, model_flops, model_sizes
from lpzero.statistics.objective import Loss, LossError, named_loss
from primitives.formula import Formula
from spaces.base import Sizes, Space
from spaces.memory import NOT_ENOUGH, is_out_of_memory
from spaces.own.space import source_digest
from spaces.taps import Tap, ends_of

_ALONE = "it ranks models among each other and has no score for one alone; give several models"


class GivenModel:
    """A network with its sizes, which are counted when they are first needed."""

    def __init__(self, network: Network) -> None:
        self.network = network

    @cached_property
    def sizes(self) -> ModelSizes:
        network = self.network
        return model_sizes(network.model, network.blocks, network.tokens, network.layout)

    @cached_property
    def flops(self) -> int:
        return model_flops(self.network.model, self.network.tokens, self.network.layout)


class GivenModels(Space[str]):
    """The given models by name; nothing can be drawn or varied."""

    name = "given"
    version = 1
    vocabulary = 0
    reads_text = False

    def __init__(self, networks: Mapping[str, Network]) -> None:
        self.models = {name: GivenModel(network) for name, network in networks.items()}

    @property
    def batch_shape(self) -> tuple[int, int]:
        first = next(iter(self.models.values()))
        return len(first.network.tokens), first.sizes.n_tokens

    def validate(self, arch: str) -> None:
        if arch not in self.models:
            raise InputError(f"there is no model {arch!r}")

    def cardinality(self) -> int:
        return len(self.models)

    def sample(self, rng: random.Random) -> str:
        return rng.choice(list(self.models))

    def mutate(self, arch: str, probability: float, rng: random.Random) -> str:
        self._refuse()

    def crossover(self, first: str, second: str, rng: random.Random) -> str:
        self._refuse()

    def with_block(self, arch: str, index: int, block: Any) -> str:
        self._refuse()

    def from_json(self, fields: Mapping[str, Any]) -> str:
        self._refuse()

    def build(self, arch: str, seed: int) -> nn.Module:
        return self.models[arch].network.model

    def blocks(self, arch: str) -> tuple[Any, ...]:
        return tuple(self.models[arch].network.blocks)

    def block_sizes(self, arch: str) -> list[Sizes]:
        return self.models[arch].sizes.blocks

    def end_sizes(self, arch: str) -> dict[str, Sizes]:
        return self.models[arch].sizes.ends

    def decoder_parameters(self, arch: str) -> int:
        return self.models[arch].sizes.decoder_parameters

    def attention_parameters(self, arch: str) -> int:
        return self.models[arch].sizes.attention_parameters

    def flops(self, arch: str, tokens: int | None = None) -> int:
        return self.models[arch].flops

    def depth(self, arch: str) -> int:
        return len(self.models[arch].network.blocks)

    def width(self, arch: str) -> int:
        return self.models[arch].sizes.widths[-1]

    def block_widths(self, arch: str) -> tuple[int, ...]:
        return self.models[arch].sizes.widths

    def projections(self, arch: str) -> int:
        return self.models[arch].sizes.projections

    def _refuse(self) -> NoReturn:
        raise InputError("a given model cannot be varied; write a space to search in")


class GivenMeasurements(Measurements):
    """Measures of the given models, kept in memory; `seconds` adds up what they cost."""

    def __init__(self, given: GivenModels) -> None:
        super().__init__()
        self.given = given
        self.found: dict[tuple[str, str], Record] = {}
        self.seconds = 0.0

    def records(
        self, space: Space[Any], archs: Sequence[Any], measures: Sequence[Measure]
    ) -> dict[str, list[Record]]:
        return {m.name: [self._record(arch, m) for arch in archs] for m in measures}

    def _record(self, arch: str, measure: Measure) -> Record:
        key = arch, measure.name
        if key not in self.found:
            with single_thread():
                self.found[key] = evaluate(measure, self.given.models[arch].network)
        self.seconds += self.found[key].seconds
        return self.found[key]


def refusal(proxy: Proxy, given: GivenModels) -> str | None:
    """The reason, None if the proxy can be tried."""
    if proxy.is_of_ranks and len(given.models) < 2:
        return _ALONE
    if proxy.only_spaces:
        return proxy.only_spaces
    for model in given.models.values():
        for name in sorted(proxy.reads & model.sizes.absent):
            return str(model.network.missing(name))
        for end in sorted(proxy.ends):
            if not _has_end(model, end):
                return (
                    f"the formula reads the {end}, and {type(model.network.model).__name__} has"
                    f" none with weights; name its modules in Layout.{end}"
                )
    reasons = ((part, refusal(part, given)) for part in proxy.parts)
    return next((f"{part.name}: {reason}" for part, reason in reasons if reason), None)


def _has_end(model: GivenModel, end: str) -> bool:
    network = model.network
    ends = network.layout.ends(network.model) or ends_of(network.model)
    return bool(ends.get(end))


# A name, a formula, a file or a run's directory; or a function of a `Network`.
AnyProxy = str | Path | Proxy | Formula | Callable[[Network], Any]
_UNDEFINED = "the score is not a finite number on this model"


@dataclass(frozen=True, slots=True)
class Scored:
    """One proxy of one model: its score and processor seconds, or the reason why it has none."""

    proxy: str
    model: str
    score: float
    seconds: float
    needs: str
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The row as plain JSON values; a missing score is null."""
        score = self.score if math.isfinite(self.score) else None
        return {
            "model": self.model,
            "proxy": self.proxy,
            "score": score,
            "seconds": round(self.seconds, 4),
            "needs": self.needs,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Scores:
    """The scored proxies in the order in which they were given; larger scores are better."""

    rows: tuple[Scored, ...]

    def __getitem__(self, proxy: str) -> float:
        """The score of that proxy, of the only or the first model; NaN if it was refused."""
        for row in self.rows:
            if row.proxy == proxy:
                return row.score
        raise InputError(f"proxy {proxy!r} was not scored; there are {', '.join(self.proxies)}")

    def __iter__(self) -> Iterator[Scored]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def proxies(self) -> list[str]:
        """The names of the proxies."""
        return list(dict.fromkeys(row.proxy for row in self.rows))

    @property
    def refused(self) -> dict[str, str]:
        """The reasons of the proxies that have no score."""
        return {row.proxy: row.reason for row in self.rows if row.reason is not None}

    def to_json(self) -> list[dict[str, Any]]:
        """The rows as plain JSON values."""
        return [row.to_json() for row in self.rows]

    def frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise InputError("frame() needs pandas, which is not installed") from None
        return pandas.DataFrame(self.to_json())

    def __str__(self) -> str:
        header = ("proxy", "score", "seconds", "needs")
        several = len({row.model for row in self.rows}) > 1
        lines = [(*(("model",) if several else ()), *header)]
        for row in self.rows:
            cells = (
                row.proxy,
                "-" if row.reason else f"{row.score:.6g}",
                f"{row.seconds:.3f}",
                row.needs if row.reason is None else row.reason,
            )
            lines.append((*((row.model,) if several else ()), *cells))
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]) - 1)]
        return "\n".join(
            "  ".join([*(cell.ljust(w) for cell, w in zip(line, widths, strict=False)), line[-1]])
            for line in lines
        )

    def _repr_html_(self) -> str:
        keys = ("model", "proxy", "score", "seconds", "needs", "reason")
        rows = [[row[key] for key in keys] for row in self.to_json()]
        head = "".join(f"<th>{key}</th>" for key in keys)
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def given_network(
    model: nn.Module,
    batch: Any,
    loss: str | Loss = "auto",
    layout: Layout | None = None,
    seed: int = 0,
    chunk: int | None = None,
) -> Network:
    """The network of a given model, its layout and its loss found where they are not given."""
    if not isinstance(model, nn.Module):
        raise InputError(f"the model is {type(model).__name__}, expected a torch nn.Module")
    inputs = read_inputs(batch, model)
    given = layout or Layout()
    blocks = given.find_blocks(model)
    if layout is not None:
        given.check(model, blocks)
    found = find_layout(model, inputs, given)
    has_taps = any(isinstance(m, Tap) for block in blocks for m in block.modules())
    known = named_loss(model, loss, inputs)
    # A model with taps needs no layout; its blocks have the usual names.
    used = None if has_taps and layout is None else found
    return Network(model, batch, known, layout=used, seed=seed, chunk=chunk)


def score_networks(
    networks: Mapping[str, Network],
    proxies: Sequence[AnyProxy],
    definitions: str = OURS,
    label: str | None = None,
) -> Scores:
    """A row for each proxy and network; `definitions` of H, W and G are for formulas.

    There is a bar if there is a label.
    """
    if not networks:
        raise InputError("there is no model to score")
    given = GivenModels(networks)
    asked = [as_proxy(one) for one in proxies]
    for model in given.models.values():
        model.network.sizes = {"blocks": model.sizes.blocks, "ends": model.sizes.ends}
        # One pass for all that read the loss's gradient; a formula alone holds less of it.
        model.network.is_shared = sum(Needs.LABELS in proxy.needs for proxy in asked) > 1
    measurements = GivenMeasurements(given)
    rows: dict[int, list[Scored]] = {}
    # First those that may read this pass, then those that differentiate something else, without it.
    with progress(label, len(asked)) as advance:
        for is_last in (False, True):
            for place, proxy in enumerate(asked):
                if _differentiates_else(proxy) == is_last:
                    rows[place] = _rows(proxy, given, measurements, definitions)
                    advance()
            for model in given.models.values():
                model.network.kept.pop("passed", None)
    return Scores(tuple(row for place in sorted(rows) for row in rows[place]))


def _differentiates_else(proxy: Proxy) -> bool:
    """Whether it reads gradients, and none of the loss."""
    return Needs.GRADIENT in proxy.needs and Needs.LABELS not in proxy.needs


def default_proxies(with_released: bool = False) -> list[AnyProxy]:
    """Every registered proxy, the released recipes only if asked for."""
    return [name for name in names() if with_released or not is_released(get(name))]


def as_proxy(given: AnyProxy) -> Proxy:
    """The proxy that was given by name, as a formula, a file, a function or an object."""
    if isinstance(given, (str, Path)):
        return find(str(given))
    if isinstance(given, Formula):
        return FormulaProxy(str(given), given)
    if isinstance(given, Proxy):
        return given
    if not callable(given):
        raise InputError(f"{type(given).__name__} is not a proxy; give a name or a function")
    name = str(getattr(given, "__name__", type(given).__name__)).replace("_", "-")
    definition = " ".join((getattr(given, "__doc__", None) or "").split("\n\n")[0].split())
    # What is stored belongs to the function's source: another text is another version.
    version = int(source_digest(given)[:8], 16)
    return NetworkProxy(name, Measure(name, given, version), definition=definition)


def _rows(
    proxy: Proxy, given: GivenModels, measurements: GivenMeasurements, definitions: str
) -> list[Scored]:
    needs = str(proxy.needs)
    archs = list(given.models)
    reason = refusal(proxy, given)
    before = measurements.seconds
    values = np.full(len(archs), np.nan)
    if reason is None:
        try:
            on_models = proxy.map_leaves(lambda leaf: leaf.on_models(definitions))
            values = on_models.score(given, archs, measurements)
        except LossError:
            raise
        except Exception as error:  # of one proxy, which must not end the others
            known = isinstance(error, (InputError, ValueError))
            told = str(error) if known else f"{type(error).__name__}: {error}"
            told = NOT_ENOUGH if is_out_of_memory(error) else told
            reason = " ".join(told.split())[:400]
    seconds = (measurements.seconds - before) / len(archs)
    return [
        Scored(
            proxy.name,
            arch,
            float(value),
            seconds,
            needs,
            reason or (None if math.isfinite(value) else _UNDEFINED),
        )
        for arch, value in zip(archs, values, strict=True)
    ]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return html.escape(f"{value:.6g}" if isinstance(value, float) else str(value))

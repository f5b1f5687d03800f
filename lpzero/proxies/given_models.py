"""Models that the user gives, as a space of which they are the architectures.

So every proxy scores them as it scores a table: with its own sign, normalised as its name says.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

from torch import nn

from lpzero.errors import InputError
from lpzero.proxies.base import Measure, Proxy
from lpzero.proxies.measurements import Measurements, Record, evaluate
from lpzero.proxies.network import Network
from lpzero.statistics.isolation import single_thread
from lpzero.statistics.model_sizes import ModelSizes, model_flops, model_sizes
from spaces.base import Sizes, Space
from spaces.taps import ends_of

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

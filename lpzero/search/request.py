"""The request of a search, everything that determines its result, and what it has by default.

The default proxies are those that rank best on the tables of each family (docs/engine-proxies.md,
experiments/rankings, experiments/recurrent); a space of another family gets the first that applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import spaces
from lpzero.errors import InputError
from lpzero.proxies import Proxy, find
from lpzero.search import AS_RANKED, NETWORKS, QUICK, evaluators, loops
from lpzero.search.constraints import Constraints
from lpzero.search.loops import Loop
from lpzero.search.scorer import NO_PROXY, NoProxy
from spaces import tables
from spaces.base import Space
from spaces.errors import UnknownNameError
from spaces.flexibert import FlexiBertSpace
from spaces.gpt2 import Gpt2Space
from spaces.images import ImageSpace
from spaces.minibatch import Minibatch
from spaces.nlp_rnn import RnnSpace
from spaces.tables.registry import source

DEFAULT_LOOP, BUDGET = "etas", "budget"
_OF_FAMILY: tuple[tuple[type[Any], str], ...] = (
    (Gpt2Space, "engine-decoder"),
    (FlexiBertSpace, "engine-encoder"),
    (ImageSpace, "dss"),
    (RnnSpace, "hidden-covariance"),
)
_ANY = ("snip", "parameters")  # which need neither taps nor ends
_BY_BLOCK = ("dss++", "snip")


@dataclass(frozen=True)
class Request:
    """A space, a loop with the constants that differ from its paper's, a proxy, an evaluator.

    The request is validated when it is created: unknown names, constants out of range and a proxy
    that the loop cannot use raise errors before any work. `inside_table` keeps the search where the
    surrogate knows its table: no feature of an architecture is outside the range of its rows.
    `networks` are `quick`, or as `lpzero rank` has them; those of a table always are. The best and
    the second best are trained again from `confirm` seeds.
    """

    space: str
    loop: str = DEFAULT_LOOP
    proxy: str = NO_PROXY
    seed: int = 0
    evaluator: str = evaluators.PROXY
    table: str | None = None
    training_steps: int | None = None
    constraints: Constraints = field(default_factory=Constraints)
    constants: Mapping[str, Any] = field(default_factory=dict)
    weights_seed: int = 0
    batch: Minibatch | None = None
    inside_table: bool = False
    networks: str = QUICK
    confirm: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "evaluator", evaluators.check(self.evaluator))
        if self.networks not in NETWORKS:
            raise UnknownNameError("kind of networks", self.networks, NETWORKS)
        if self.evaluator == "table":
            # The scores are then those of `lpzero rank`, which the cache may have.
            object.__setattr__(self, "networks", AS_RANKED)
        made = self.made_loop
        # A loop whose usual proxy depends on its constants says so.
        usual = getattr(made, "default_proxy", made.usual_proxy)
        if self.proxy == NO_PROXY and usual is not None:
            object.__setattr__(self, "proxy", usual)
        proxy = self.made_proxy
        if not proxy.applies_to(self.made_space):
            raise InputError(f"proxy {self.proxy} cannot score space {self.space}; use another")
        if self.inside_table and self.evaluator != evaluators.SURROGATE:
            raise InputError(f"inside_table is for surrogates; the evaluator is {self.evaluator}")
        if self.confirm and not evaluators.is_training(self.evaluator):
            raise InputError(f"confirm is for trainings; the evaluator is {self.evaluator}")
        if made.needs_blocks and not proxy.has_blocks:
            raise InputError(
                f"loop {self.loop} works block by block and proxy {proxy.name} has no values of"
                " single blocks; use one that has, such as dss++, snip or a formula"
            )
        if self.proxy == NO_PROXY and (made.by_proxy or self.evaluator == evaluators.PROXY):
            raise InputError(
                f"loop {self.loop} with evaluator {self.evaluator} depends on the proxy alone:"
                " name one with --proxy"
            )

    @cached_property
    def made_space(self) -> Space[Any]:
        return spaces.get(self.space)

    @cached_property
    def made_loop(self) -> Loop:
        return loops.make(self.loop, self.made_space, self.constants)

    @cached_property
    def made_proxy(self) -> Proxy:
        """The proxy that the text describes; for `none`, random scores."""
        return NoProxy(self.seed) if self.proxy == NO_PROXY else find(self.proxy)

    def to_json(self) -> dict[str, Any]:
        """The request as JSON values, with every constant of the loop."""
        proxy = self.made_proxy
        return {
            "space": self.space,
            "loop": self.loop,
            "constants": loops.constants(self.made_loop),
            "proxy": self.proxy,
            "definition": proxy.definition,
            "seed": self.seed,
            "weights_seed": self.weights_seed,
            "evaluator": self.evaluator,
            "table": self.table,
            "training_steps": self.training_steps,
            "constraints": self.constraints.to_json(),
            **({} if self.batch is None else {"batch": self.batch.to_json()}),
            **({"inside_table": True} if self.inside_table else {}),
            **({"networks": QUICK} if self.networks == QUICK else {}),
            **({"confirm": self.confirm} if self.confirm else {}),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Request:
        """The request from the values of `to_json`."""
        # Before networks were quick, searches did not say how theirs are.
        fields = {"networks": AS_RANKED, **value}
        definition = fields.pop("definition", None)
        if isinstance(fields.get("batch"), Mapping):
            fields["batch"] = Minibatch.from_json(fields["batch"])
        bounds = {cost: (low, high) for cost, (low, high) in fields.pop("constraints").items()}
        request = Request(**fields, constraints=Constraints(bounds))
        if request.made_proxy.definition != definition:
            raise InputError(
                f"proxy {request.proxy} is now {request.made_proxy.definition} and was {definition}"
                " when the search started: restore it, or choose another --out"
            )
        return request


def default_proxy(space: Space[Any], loop: type[Loop]) -> str | None:
    """The name of the proxy for a space; None if the loop brings its own."""
    if loop.usual_proxy is not None:
        return None
    family = [name for kind, name in _OF_FAMILY if isinstance(space, kind)]
    names = _BY_BLOCK if loop.needs_blocks else (*family, *_ANY)
    return next((name for name in names if find(name).applies_to(space)), None)


def space_of_rows(space: str, table: str | None) -> str:
    """The part of the space that the table's rows were drawn from; the space if that is all."""
    if table not in tables.names():
        return space
    rows = source(table)
    return rows.drawn_from or space if rows.space == space else space

"""Scores of a model of your own, by any proxy.

    score(model, batch, proxies=["snip", "sum(mul(abs(G), abs(W)))"])  ->  Scores

Larger is always better, and a name that ends in -normalised is a mean. A proxy that cannot score
the model has a reason instead of a score.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from lpzero.errors import InputError
from lpzero.proxies.base import Measure, NetworkProxy, Proxy
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.given_models import GivenMeasurements, GivenModels, refusal
from lpzero.proxies.lookup import find
from lpzero.proxies.network import Network
from lpzero.proxies.ranking import is_released
from lpzero.proxies.registry import get, names
from lpzero.statistics import OURS
from lpzero.statistics.inputs import read_inputs
from lpzero.statistics.layout import Layout
from lpzero.statistics.layout_finder import find_layout
from lpzero.statistics.objective import Loss, LossError, named_loss
from primitives.formula import Formula
from spaces.taps import Tap

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


def score(
    model: nn.Module | Mapping[str, nn.Module],
    batch: Tensor | Mapping[str, Tensor],
    proxies: Sequence[AnyProxy] | AnyProxy | None = None,
    *,
    loss: str | Loss = "auto",
    layout: Layout | None = None,
    seed: int = 0,
    chunk: int | None = None,
    definitions: str = OURS,
) -> Scores:
    """The scores of a torch transformer on a batch: a row for each proxy.

    `model` may be several models by name; then proxies that rank models can be used too. `batch` is
    token ids (B, T), images (B, channels, H, W), or tensors by the names of the model's arguments.
    `proxies` are names, formulas, exported files or functions of a `Network`; by default every
    proxy but the released recipes. `loss(output, batch)` gives one number or one per sample; by
    default it is the model's own if it returns one, next-token for a causal model with word logits,
    else a random cotangent. `layout` names what cannot be found by running the model. `seed` draws
    cotangents, labels, probes and noise. `chunk` samples go through at a time. `definitions`
    "released" takes H, W and G of formulas as the authors' code does. The models are left as they
    were.
    """
    models = {"model": model} if isinstance(model, nn.Module) else dict(model)
    networks = {
        name: given_network(one, batch, loss, layout, seed, chunk) for name, one in models.items()
    }
    return score_networks(networks, _asked(proxies), definitions)


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
    networks: Mapping[str, Network], proxies: Sequence[AnyProxy], definitions: str = OURS
) -> Scores:
    """A row for each proxy and network; `definitions` of H, W and G are for formulas."""
    if not networks:
        raise InputError("there is no model to score")
    given = GivenModels(networks)
    for model in given.models.values():
        model.network.sizes = {"blocks": model.sizes.blocks, "ends": model.sizes.ends}
    measurements = GivenMeasurements(given)
    rows = [
        row for one in proxies for row in _rows(as_proxy(one), given, measurements, definitions)
    ]
    return Scores(tuple(rows))


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
    return NetworkProxy(name, Measure(name, given), definition=definition)


def _asked(proxies: Sequence[AnyProxy] | AnyProxy | None) -> Sequence[AnyProxy]:
    if proxies is None:
        return default_proxies()
    return list(proxies) if isinstance(proxies, (list, tuple)) else [proxies]  # type: ignore[list-item]


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

"""Why a proxy cannot score a given model, before it is tried."""

from __future__ import annotations

from collections.abc import Iterable

from lpzero.proxies.combined import Combined, RankShare
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.given_models import GivenModel, GivenModels
from lpzero.proxies.registry import NetworkProxy, Proxy, SizeProxy, applies
from spaces.ends import ends_of

_ALONE = "it ranks models among each other and has no score for one alone; give several models"
_NO_SPACE = "it compares a size with those of a search space, and a model has none"
_NO_SUPERNET = "it reads a supernet, and a model has none"


def refusal(proxy: Proxy, given: GivenModels) -> str | None:
    """The reason, None if the proxy can be tried."""
    is_of_ranks = isinstance(proxy, RankShare) or (
        isinstance(proxy, Combined) and proxy.is_of_ranks
    )
    if is_of_ranks and len(given.models) < 2:
        return _ALONE
    if isinstance(proxy, RankShare):
        return refusal(proxy.part, given)
    if isinstance(proxy, Combined):
        return _first(proxy.parts, given)
    if isinstance(proxy, FormulaProxy):
        return _of_formula(proxy, given) or _first(proxy.columns().values(), given)
    if isinstance(proxy, NetworkProxy):
        return _missing(proxy.reads, given)
    if isinstance(proxy, SizeProxy) and proxy.of_space:
        return _NO_SPACE
    return None if applies(proxy, given) else _NO_SUPERNET


def _first(proxies: Iterable[Proxy], given: GivenModels) -> str | None:
    reasons = ((proxy, refusal(proxy, given)) for proxy in proxies)
    return next((f"{proxy.name}: {reason}" for proxy, reason in reasons if reason), None)


def _missing(statistics: Iterable[str], given: GivenModels) -> str | None:
    for model in given.models.values():
        for name in sorted(set(statistics) & model.sizes.absent):
            return str(model.network.missing(name))
    return None


def _of_formula(proxy: FormulaProxy, given: GivenModels) -> str | None:
    missing = _missing(proxy.formula.statistics, given)
    if missing is not None:
        return missing
    for term in proxy.formula.terms:
        end = term.positions.end
        if end is None:
            continue
        for model in given.models.values():
            if not _has_end(model, end) and term.statistics:
                return (
                    f"the formula reads the {end}, and {type(model.network.model).__name__} has"
                    f" none with weights; name its modules in Layout.{end}"
                )
    return None


def _has_end(model: GivenModel, end: str) -> bool:
    network = model.network
    found = network.layout.ends(network.model) or ends_of(network.model)
    return bool(found.get(end))

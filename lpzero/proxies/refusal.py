"""Why a proxy cannot score a given model, before it is tried."""

from __future__ import annotations

from lpzero.proxies.base import Proxy
from lpzero.proxies.given_models import GivenModel, GivenModels
from spaces.taps import ends_of

_ALONE = "it ranks models among each other and has no score for one alone; give several models"


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

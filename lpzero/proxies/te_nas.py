"""TE-NAS: the condition of the tangent kernel and the number of linear regions, by ranks."""

from __future__ import annotations

from lpzero.proxies.combined import Combined
from lpzero.proxies.registry import get, register

_PARTS = get("ntk-condition"), get("linear-regions")
register(Combined("te-score", _PARTS, "rank-sum", paper="Chen et al. 2021 (TE-NAS)"))

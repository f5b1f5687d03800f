"""Ensembles: the mean of the ranks of several formulas, as one proxy.

Formulas that rank about equally well err on different architectures, so the mean of their ranks is
steadier than any of them. Like every rank combination it scores architectures in their company.
"""

from __future__ import annotations

from collections.abc import Sequence

from lpzero.errors import InputError
from lpzero.proxies.combined import Combined
from lpzero.proxies.formula import FormulaProxy


def ensemble(name: str, members: Sequence[FormulaProxy], paper: str = "") -> Combined:
    """The rank mean of the formulas, each counting equally."""
    if not members:
        raise InputError(f"the ensemble {name} has no members; give at least one formula")
    return Combined(name, tuple(members), "rank-mean", paper=paper)


def members_of(proxy: object) -> tuple[FormulaProxy, ...] | None:
    """The formulas whose plain rank mean the proxy is; None if it is anything else."""
    if not isinstance(proxy, Combined) or proxy.how != "rank-mean":
        return None
    members = tuple(part for part in proxy.parts if isinstance(part, FormulaProxy))
    is_plain = len(set(proxy.weights)) <= 1 and len(members) == len(proxy.parts)
    return members if is_plain else None

"""Published correlations of each proxy on the tables we have, for comparison with ours.

Printed numbers only: (source, rho, tau), None where the source does not state one.
"""

from __future__ import annotations

from typing import NamedTuple

from lpzero.errors import InputError

_Printed = dict[str, tuple[float | None, float | None]]  # by proxy rho and tau


class Figure(NamedTuple):
    """A published result: its source, Spearman's rho and Kendall's tau."""

    source: str
    rho: float | None
    tau: float | None


_TABLE_3 = {
    "synaptic-diversity": (0.175, 0.021),
    "head-importance": (0.171, 0.050),
    "activation-distance": (0.123, 0.081),
    "jacobian-cosine": (0.149, 0.116),
    "snip": (0.173, 0.119),
    "grasp": (0.179, 0.122),
    "grad-norm": (0.197, 0.133),
    "fisher": (0.209, 0.139),
    "synaptic-saliency": (0.266, 0.157),
    "synflow": (0.471, 0.322),
    "logsynflow": (0.491, 0.334),
    "parameters": (0.590, 0.454),
    "attention-confidence": (0.666, 0.475),
    "eznas": (0.698, 0.483),
    "lpzero-flexibert": (0.748, 0.511),
}
_TABLE_4 = {
    "jacobian-cosine": (0.362, 0.227),
    "eznas": (0.704, 0.489),
    "parameters": (0.737, 0.582),
    "synflow": (0.730, 0.632),
    "activation-distance": (0.818, 0.644),
    "attention-confidence": (0.850, 0.676),
    "fisher": (0.872, 0.691),
    "grasp": (0.922, 0.765),
    "grad-norm": (0.958, 0.834),
    "logsynflow": (0.962, 0.836),
    "synaptic-diversity": (0.957, 0.841),
    "decoder-parameters": (0.967, 0.847),
    "synaptic-saliency": (0.970, 0.855),
    "snip": (0.970, 0.858),
    "head-importance": (0.971, 0.861),
    "lpzero-gpt2": (0.980, 0.886),
}
_ETAS_4 = {
    "parameters": (0.94, 0.79),
    "flops": (0.80, 0.65),
    "snip": (0.57, 0.40),
    "grad-norm": (0.23, 0.15),
    "activation-distance": (0.37, 0.24),
    "zico": (0.36, 0.18),
    "meco": (0.65, 0.49),
    "dss": (0.35, 0.26),
    "length-distortion": (0.64, 0.48),
    "sept": (0.94, 0.78),
    "ntkt": (0.96, 0.80),
    "ntsr": (0.98, 0.81),
}
# (rho, tau) on CIFAR-100, Flowers and Chaoyang, distilled; NASWOT is our activation-distance.
_ETAS_3 = {
    "parameters": ((0.53, 0.41), (0.63, 0.46), (0.02, -0.16)),
    "flops": ((0.47, 0.39), (0.56, 0.43), (-0.04, -0.20)),
    "snip": ((0.34, 0.26), (0.45, 0.32), (0.12, -0.03)),
    "grad-norm": ((0.55, 0.42), (0.59, 0.47), (0.36, 0.14)),
    "activation-distance": ((0.73, 0.59), (0.78, 0.66), (0.45, 0.21)),
    "zico": ((0.70, 0.51), (0.78, 0.59), (0.34, 0.16)),
    "meco": ((0.74, 0.60), (0.78, 0.62), (0.41, 0.20)),
    "dss": ((0.63, 0.49), (0.71, 0.54), (0.32, 0.17)),
    "length-distortion": ((0.52, 0.37), (0.54, 0.40), (0.03, -0.12)),
    "sept": ((0.81, 0.67), (0.85, 0.71), (0.42, 0.21)),
    "ntkt": ((0.84, 0.69), (0.89, 0.74), (0.49, 0.27)),
    "ntsr": ((0.86, 0.71), (0.90, 0.78), (0.51, 0.30)),
}
_TRAINING_FREE: dict[str, tuple[float | None, float]] = {
    "parameters": (None, 0.44),
    "attention-confidence": (None, 0.49),
    "attention-confidence-normalised": (None, 0.30),
}
_W_PCA = {"v-pca": (0.677, 0.466), "w-pca": (0.698, 0.526)}
_SWAP: _Printed = {"swap": (0.71, None)}
_PUBLISHED: dict[str, dict[str, _Printed]] = {
    "flexibert": {
        "LPZero Table 3": {**_TABLE_3},
        "Training-free, section 5.2": {**_TRAINING_FREE},
        "W-PCA Table 1": {**_W_PCA},
        "SWAP, abstract": _SWAP,
    },
    "gpt2-wt103": {"LPZero Table 4": {**_TABLE_4}, "ETAS Table 4": {**_ETAS_4}},
}
for _place, _table in enumerate(("c100", "flowers", "chaoyang")):
    _PUBLISHED[f"autoformer-{_table}-kd"] = {
        "ETAS Table 3": {proxy: found[_place] for proxy, found in _ETAS_3.items()}
    }
# Formulas that were chosen on these tables: their numbers are in sample.
_IMAGES = tuple(
    f"{space}-{images}{distilled}"
    for space in ("autoformer", "pit")
    for images in ("c100", "flowers", "chaoyang")
    for distilled in ("", "-kd")
)
CHOSEN_ON = {
    "lpzero-flexibert": ("flexibert",),
    "lpzero-flexibert-typeset": ("flexibert",),
    "lpzero-gpt2": ("gpt2-wt103",),
    "auto-prox": _IMAGES,
    "auto-prox-normalised": _IMAGES,
}


def figures(table: str, proxy: str) -> list[Figure]:
    """The published numbers of the proxy on the table."""
    return [
        Figure(source, *found[proxy])
        for source, found in _PUBLISHED.get(table, {}).items()
        if proxy in found
    ]


def printed_in(table: str, source: str) -> dict[str, Figure]:
    """The numbers that one source prints for the table, by proxy."""
    found = _PUBLISHED.get(table, {})
    if source not in found:
        known = ", ".join(found) or "nothing"
        raise InputError(f"{source!r} prints nothing for table {table}; known: {known}")
    return {proxy: Figure(source, *pair) for proxy, pair in found[source].items()}

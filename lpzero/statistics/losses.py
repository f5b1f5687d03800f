"""The names of the losses, which `statistics.objective` computes; needs no torch."""

from __future__ import annotations

# "auto" is next-token if the model predicts tokens, else cotangent.
LOSSES = ("auto", "next-token", "labels", "cotangent", "ones")

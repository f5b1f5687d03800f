"""How a search draws and runs its networks: see docs/search.md, "Networks of a search"."""

from __future__ import annotations

# quick: weights drawn by name and shape, passes of absolute weights in float32; as-ranked: as
# `lpzero rank` has them.
QUICK, AS_RANKED = NETWORKS = ("quick", "as-ranked")

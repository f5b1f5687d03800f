"""The statistics of an untrained network, block by block: the only code that traces a network.

What is declared here needs neither torch nor primitives at import.
"""

from __future__ import annotations

from lpzero.errors import LPZeroError

# The losses that `statistics.objective` computes; "auto" is next-token if the model predicts
# tokens, else cotangent.
LOSSES = ("auto", "next-token", "labels", "cotangent", "ones")
# The two readings of what H, W and G are. `ours` are the paper's words: H every projection that
# feeds the heads, W and G every weight matrix of a block. `released` is what the authors' code
# takes of its encoders: of H the first projection alone (the query's output, or the input of a
# linear transform), of W and G the Linears of the mixing operation alone, without its output layer
# and the FFN. On other models the same rule is applied.
OURS, RELEASED = DEFINITIONS = ("ours", "released")


class StatisticsError(LPZeroError, ValueError):
    """A model, loss or device with which statistics cannot be computed."""

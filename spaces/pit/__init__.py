"""The PiT family: vision transformers in stages, pooled by depth-wise convolutions between them."""

from spaces.pit.space import PitArch, PitBlock, PitSpace

PIT = PitSpace()
SPACES = (PIT,)

__all__ = [
    "PIT",
    "SPACES",
    "PitArch",
    "PitBlock",
    "PitSpace",
]

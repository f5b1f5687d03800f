"""The PiT family: vision transformers in stages, pooled by depth-wise convolutions between them."""

from spaces.pit.space import PitArch, PitBlock, PitSpace

__all__ = ["PitArch", "PitBlock", "PitSpace"]

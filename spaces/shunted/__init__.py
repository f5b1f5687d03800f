"""The Shunted ViT family: four stages whose heads attend to tokens merged at two scales."""

from spaces.shunted.space import ShuntedArch, ShuntedBlock, ShuntedSpace

SHUNTED = ShuntedSpace()
SPACES = (SHUNTED,)

__all__ = ["SHUNTED", "SPACES", "ShuntedArch", "ShuntedBlock", "ShuntedSpace"]

"""The BigNAS family: inverted bottlenecks in seven stages, a convolutional space (PreNAS)."""

from spaces.bignas.space import BigNasArch, BigNasBlock, BigNasSpace

BIGNAS = BigNasSpace()
SPACES = (BIGNAS,)

__all__ = ["BIGNAS", "SPACES", "BigNasArch", "BigNasBlock", "BigNasSpace"]

"""The OpenLM decoders: one width, depth and number of heads for the whole network."""

from spaces.openlm.space import OpenLmArch, OpenLmLayer, OpenLmSpace

OPENLM = OpenLmSpace()
SPACES = (OPENLM,)

__all__ = ["OPENLM", "SPACES", "OpenLmArch", "OpenLmLayer", "OpenLmSpace"]

"""A user's own space: choices, and a function that builds a torch module from a configuration."""

from lpzero.own.configuration import Configuration, Layer
from lpzero.own.space import OwnSpace, space

__all__ = ["Configuration", "Layer", "OwnSpace", "space"]

"""A user's own space: choices, and a function that builds a torch module from a configuration."""

from spaces.own.configuration import Configuration, Layer
from spaces.own.space import OwnSpace

__all__ = ["Configuration", "Layer", "OwnSpace"]

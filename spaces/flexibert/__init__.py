"""The FlexiBERT family: encoders whose layers differ in how tokens mix."""

from spaces.flexibert.space import FlexiBertArch, FlexiBertSpace, Layer

__all__ = ["FlexiBertArch", "FlexiBertSpace", "Layer"]

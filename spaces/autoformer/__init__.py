"""The AutoFormer family: vision transformers whose layers differ in heads and MLP ratio."""

from spaces.autoformer.space import AutoFormerArch, AutoFormerLayer, AutoFormerSpace

__all__ = ["AutoFormerArch", "AutoFormerLayer", "AutoFormerSpace"]

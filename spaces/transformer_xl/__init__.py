"""The Transformer-XL family: GPT-2's choices with relative positions and a memory."""

from spaces.transformer_xl.space import TransformerXlSpace

TRANSFORMER_XL = TransformerXlSpace()
SPACES = (TRANSFORMER_XL,)

__all__ = ["SPACES", "TRANSFORMER_XL", "TransformerXlSpace"]

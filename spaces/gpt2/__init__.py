"""The flexible GPT-2 family: decoders with a width and heads and inner widths per layer."""

from spaces.gpt2.space import Gpt2Arch, Gpt2Layer, Gpt2Space

__all__ = ["Gpt2Arch", "Gpt2Layer", "Gpt2Space"]

"""Models of Hugging Face's transformers: their layout, and models from configurations and folders.

transformers is imported when a model is built, not before. Nothing is downloaded, and code that a
configuration brings along is never run.
"""

from lpzero.hf.models import build, lay_out, layout, load, loss
from lpzero.hf.models import random_batch as batch
from lpzero.hf.spaces import read_space
from lpzero.hf.spaces import space_of as space

__all__ = ["batch", "build", "lay_out", "layout", "load", "loss", "read_space", "space"]

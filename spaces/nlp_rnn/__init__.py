"""NAS-Bench-NLP: language models of one recurrent cell, a graph of a few operations."""

from spaces.nlp_rnn.cell import Cell, Node
from spaces.nlp_rnn.space import RnnSpace

NLP_RNN = RnnSpace()
NLP_RNN_WIKITEXT2 = RnnSpace(name="nlp-rnn-wikitext2", vocabulary=33_278)
# Narrow layers and bytes instead of words, as in the other nano spaces.
NANO_RNN = RnnSpace(
    name="nano-rnn",
    embedding=48,
    hidden=64,
    vocabulary=256,
    batch_shape=(8, 32),
    wide_shape=(50, 32),
    reads_text=True,
)
SPACES = (NLP_RNN, NLP_RNN_WIKITEXT2, NANO_RNN)

__all__ = ["NANO_RNN", "NLP_RNN", "NLP_RNN_WIKITEXT2", "SPACES", "Cell", "Node", "RnnSpace"]

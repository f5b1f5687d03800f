"""Sketches: the statistics of an architecture, subsampled to a fixed size and stored once."""

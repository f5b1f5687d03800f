"""Sketches: the statistics of an architecture cut to a stated size, stored once, shared by all."""

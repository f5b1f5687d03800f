"""Scores of any formula, from branch tables where they answer and from sketches elsewhere."""

from lpzero.evaluate.evaluator import MEMORY, Evaluator

__all__ = ["MEMORY", "Evaluator"]

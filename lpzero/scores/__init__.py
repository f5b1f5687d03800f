"""Scores of formulas: chains, branch tables, the evaluator, whole families at once."""

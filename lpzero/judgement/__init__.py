"""Scores against targets: ranks, correlations, bootstrap intervals, measures, counters."""

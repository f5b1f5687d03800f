"""Scores against targets: ranks, correlations, intervals, measures, counters, a judged table."""

"""Scores compared with targets: ranks, correlations, intervals, measures, counters, judgements."""

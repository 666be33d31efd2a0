"""Collect outputs of runs in tidy tables, compute means, compare means with published values, and fit scaling laws."""

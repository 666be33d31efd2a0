"""Collect the outputs of runs in tidy tables, and compute means, comparisons with published values, and fitted laws."""

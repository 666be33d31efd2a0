"""Collects the outputs of runs in tidy tables, and computes means, comparisons with published values, and
fitted laws.
"""

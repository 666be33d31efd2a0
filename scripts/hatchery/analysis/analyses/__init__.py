"""Analyses that studies compute from the results of their experiments, one file each."""

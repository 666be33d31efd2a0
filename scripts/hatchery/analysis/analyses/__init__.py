"""The analyses that studies compute from the results of their experiments, one file per analysis."""

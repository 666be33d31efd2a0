"""The arithmetic of scaling studies: frontiers, power laws, break points, cost-effectiveness, correlations.

Numbers in, dataclasses out: nothing here knows tables, files or models. Sources: the reduced-vocabulary study, Sections
4.4 and 5, and docs/papers/reduced-vocabulary.md, "Compute-optimal frontier" to "Correlation"; SciPy does the fitting.
"""

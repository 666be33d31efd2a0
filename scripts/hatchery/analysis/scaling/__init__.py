"""The arithmetic of scaling studies: frontiers, power laws, break points, cost-effectiveness, correlations.

Numbers in, dataclasses out: nothing here knows tables, files or models. Sources: the reduced-vocabulary study (sections
4.4 and 5 of the paper, section 8 of its reference); SciPy does the fitting.
"""

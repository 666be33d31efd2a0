"""Functions that collect the outputs of runs in tidy tables, average scores over runs, compare the means with published
values, and fit scaling laws.
"""

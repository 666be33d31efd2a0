"""A few sentences of the corpus, and what a model writes: in a gap, behind a beginning, or as a translation."""

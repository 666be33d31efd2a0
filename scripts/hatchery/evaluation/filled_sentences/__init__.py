"""A few sentences of the corpus with a word left out, and what a model would write there."""

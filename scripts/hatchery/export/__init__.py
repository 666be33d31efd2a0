"""Models for the `transformers` library: one self-contained modelling file per family, and a folder that it loads."""

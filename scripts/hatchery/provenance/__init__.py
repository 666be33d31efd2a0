"""The way from a number back to the raw data: the chain of manifests that a cell of a table was computed from."""

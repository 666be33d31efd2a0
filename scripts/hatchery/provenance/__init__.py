"""A number's way back to the raw data: the chain of manifests behind a cell of a table."""

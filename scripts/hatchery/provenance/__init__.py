"""The provenance of a number: the manifests from which a cell of a table was computed, back to the raw data."""

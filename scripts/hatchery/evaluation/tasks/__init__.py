"""Labelled tasks: read rows, arrange their texts as inputs, and select the rows that are scored."""

"""Labelled tasks: how rows are read, laid out as inputs, and which of them are scored."""

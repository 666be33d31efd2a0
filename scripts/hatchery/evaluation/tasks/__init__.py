"""Labelled tasks: read rows, arrange them as inputs, and select the scored ones."""

"""Labelled tasks for fine-tuning and probing: read rows, convert the texts of rows to model inputs, and select the rows
that are scored.
"""

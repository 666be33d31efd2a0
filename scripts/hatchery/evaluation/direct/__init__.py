"""Evaluations of any model, from Python and from the shell, without an experiment."""

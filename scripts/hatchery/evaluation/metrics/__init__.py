"""Metrics of labelled tasks, one registry for all of them."""

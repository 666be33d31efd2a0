"""Translations of test sets and their scores."""

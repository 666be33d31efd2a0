"""Corpus cards: what a corpus holds, how it compares with the published sizes, and what was left out of it."""

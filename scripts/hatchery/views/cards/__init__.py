"""Corpus cards: the content of a corpus, a comparison with published sizes, and the excluded text."""

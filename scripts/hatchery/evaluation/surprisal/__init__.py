"""Surprisal of words: of any text, of texts that people read, and of words that children learn."""

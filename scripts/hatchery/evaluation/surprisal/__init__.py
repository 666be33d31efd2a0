"""Surprisal of words: of any text, of texts with reading times, and of words that children learn."""

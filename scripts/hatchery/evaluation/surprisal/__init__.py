"""Surprisal of words: in the user's texts, in texts with reading times, and of words that children learn."""

"""Readers of raw corpora, cleaning and sentence splitting, and the conversion to document shards."""

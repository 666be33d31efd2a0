"""Training tokenizers, encoding documents into token shards, and reading those shards."""

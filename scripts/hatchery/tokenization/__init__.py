"""Training of tokenizers, encoding of documents into token shards, and reading of token shards."""

"""Files between stages: atomic writes, checksums, manifests, Parquet shards, and links."""

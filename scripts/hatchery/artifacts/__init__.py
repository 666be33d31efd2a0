"""Files that stages exchange: atomic writes, checksums, manifests, Parquet shards, and links."""

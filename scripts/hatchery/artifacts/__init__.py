"""Files at the seams: atomic writes, checksums, manifests, Parquet shards, and the chain behind a result."""

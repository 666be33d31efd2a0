"""Files at the seams: atomic writes, checksums, manifests, Parquet shards and raw sources."""

"""The ten corpora of BabyLM 2023: one normaliser per file, and the reader that uses them."""

"""Hatchery's library: raw corpora in, result tables out. The folder `scripts/` is the import root."""

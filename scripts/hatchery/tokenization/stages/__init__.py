"""The stages of this package, one per file."""

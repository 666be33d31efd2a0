"""The stages of the package `evaluation`, one per file."""

"""The stages of the package `export`, one per file."""

"""The stages of the package `training`, one per file."""

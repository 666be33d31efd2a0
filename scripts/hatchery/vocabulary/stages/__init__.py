"""Stages of the package `vocabulary`, one per file."""

"""Minimal pairs: reading them, scoring sentences, and deciding."""

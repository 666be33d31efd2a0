"""Minimal pairs: read them, score their sentences, and count correct decisions."""

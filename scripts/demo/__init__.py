"""Embedded sources: a seeded miniature English, written in the raw formats of the real corpora and tasks."""

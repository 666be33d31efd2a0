"""Rendering for people: one table in every format, pages and cards from templates, and the common parts of drawings."""

"""Rendering of output for readers: tables in every format, pages and cards from templates, common parts of drawings."""

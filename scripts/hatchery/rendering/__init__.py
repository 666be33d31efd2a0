"""Rendering of results for readers: tables in every format, pages and cards from templates, and shared functions for
drawings.
"""

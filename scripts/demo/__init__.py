"""Generated demo data: sentences of a small random English, written in the raw formats of the real corpora and
tasks.
"""

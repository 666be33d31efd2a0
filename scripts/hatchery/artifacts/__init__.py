"""Functions for the files with which stages exchange results: atomic writes, checksums, manifests, Parquet files, and
links.
"""

"""Typed classes of settings: allowed values of fields, error messages, and the schema files that editors read."""

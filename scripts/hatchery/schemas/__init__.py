"""JSON Schemas for editors and docs/settings.md for people, both written from the classes of settings."""

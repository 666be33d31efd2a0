"""Settings as typed classes: what a field may be, the words of an error, and the schema files that editors read."""

"""Base of the settings classes: types and allowed values of fields, and error messages."""

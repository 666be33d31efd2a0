"""What people see of a sweep of tokenizers: its table and its figure."""

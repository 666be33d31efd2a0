"""External models: models of the library `transformers`, evaluated like Hatchery's models."""

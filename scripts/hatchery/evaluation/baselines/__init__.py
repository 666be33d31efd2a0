"""Models of the library `transformers`, evaluated like ours."""

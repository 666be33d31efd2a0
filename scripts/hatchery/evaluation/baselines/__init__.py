"""Models that others pretrained, in the layout of the library `transformers`, evaluated as ours are."""

"""Perplexity of a pretrained model on held-out text, with the same masks for every model."""

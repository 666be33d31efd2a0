"""Perplexity of a pretrained model on held-out text."""

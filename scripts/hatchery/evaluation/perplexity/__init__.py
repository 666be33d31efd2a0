"""Perplexity of a pretrained model on held-out text, with masks that never change."""

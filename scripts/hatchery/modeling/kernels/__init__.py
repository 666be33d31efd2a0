"""Triton kernels for a GPU, and the PyTorch operations built from them."""

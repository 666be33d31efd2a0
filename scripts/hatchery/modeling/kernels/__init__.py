"""Triton kernels of a GPU, and the operations of PyTorch that are made of them."""

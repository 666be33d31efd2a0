"""Training examples of the objectives: segments of text, their labels, and batches."""

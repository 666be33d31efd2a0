"""Training objectives: segments of text, the positions to predict, and batches of these examples."""

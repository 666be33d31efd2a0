"""What a model is trained to do: segments of text, which positions it must predict, and batches of such examples."""

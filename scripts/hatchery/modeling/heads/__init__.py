"""Heads for labelled tasks, composed of pooling, transform, output layer and target; they work with every encoder."""

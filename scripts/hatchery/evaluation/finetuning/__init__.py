"""Fine-tuning and probing: one training loop for all tasks, heads and protocols."""

"""Fine-tuning and probing: one engine for every task, head and protocol."""

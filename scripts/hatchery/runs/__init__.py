"""What a pretraining keeps while it runs: folder, lease, checkpoints, metrics, speed, and a polite end."""

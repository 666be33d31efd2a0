"""Pretraining: settings, data order, optimisers, the DeepSpeed engine, the loop, checkpoints and telemetry."""

"""Evaluations of pretrained models: minimal pairs without training, and fine-tuning on labelled tasks."""

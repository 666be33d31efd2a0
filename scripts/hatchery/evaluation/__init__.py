"""Evaluations of pretrained models: perplexity, minimal pairs, surprisals, reading times, translation, fine-tuning."""

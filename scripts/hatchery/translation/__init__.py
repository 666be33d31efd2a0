"""Translating with a model: beam search, from text to text, and the scores that BLEU and chrF give."""

"""Translation with a model: beam search, translation of texts, and BLEU and chrF scores."""

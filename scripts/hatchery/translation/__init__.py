"""Translation with a model: beam search, from text to text, and scores by BLEU and chrF."""

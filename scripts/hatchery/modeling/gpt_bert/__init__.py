"""GPT-BERT."""

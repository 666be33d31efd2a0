"""LTG-BERT and ELC-BERT."""

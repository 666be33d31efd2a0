"""The models: LTG-BERT's encoder, ELC-BERT's layer weighting as a value handed to it, heads, and the weights file."""

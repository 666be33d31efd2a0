"""The Transformer for translation: an encoder of the source, and a decoder that reads its output."""

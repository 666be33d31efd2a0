"""The Transformer that translates: an encoder of the source, and a decoder that reads it."""

"""The AO-CHILDES vocabulary, and the selection of text that contains only words of this vocabulary."""

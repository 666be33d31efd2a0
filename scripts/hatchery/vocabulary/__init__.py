"""The AO-CHILDES vocabulary, and the selection of text that consists of its words."""

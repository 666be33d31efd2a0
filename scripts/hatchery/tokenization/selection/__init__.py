"""Choice of a tokenizer by measurements: sizes per type, word-split ratio, ESMS, and the 95 % rule."""

"""Choice of a tokenizer by measures: word-split ratio, ESMS, and the 95 % rule for the vocabulary size."""

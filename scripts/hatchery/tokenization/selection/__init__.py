"""Choice of a tokenizer by measures: word-split ratio, ESMS (exact sub-token matching score), and the 95 % rule for the
vocabulary size.
"""

"""Choice of a tokenizer by three measures: word-split ratio, ESMS (exact sub-token matching score), and the frequency
of vocabulary entries in the training text (95 % of the entries should occur often enough).
"""

"""Choosing a tokenizer by measurement: a sweep of sizes per type, word-split ratio, ESMS, and the 95 % rule."""

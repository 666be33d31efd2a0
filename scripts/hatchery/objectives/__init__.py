"""Training examples of the objectives: sequences made from segments of text, labels of the tokens to predict, and
batches.
"""

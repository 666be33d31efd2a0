"""The RoBERTa-like models of the reduced-vocabulary study, "Honey, I Shrunk the Language"
(docs/papers/reduced-vocabulary.md, "Families of models").
"""

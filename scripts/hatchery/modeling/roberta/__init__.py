"""The RoBERTa-like models of the reduced-vocabulary study."""

"""Which numbers may be ranked, and what a difference between models is about."""

BETWEEN_TWO = "between two trained models each"
"""The end of a heading above differences of which each is between two models with one pretraining seed."""
ONE_SEED = (
    "A model with one pretraining seed is one trained model: a difference is between these two trained models and not "
    "bold, and what another seed would give is not known. A claim about models needs several pretraining seeds."
)

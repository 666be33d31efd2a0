"""Divergences of every model's predictions from the unigram, uniform and empirical distributions during training.

Source: "A Natural Bias for Language Generation Models", Figure 1.
"""

from functools import partial

from hatchery.views.figures.marks import Panel, draw_steps
from hatchery.views.figures.registry import Declaration

FIGURE = Declaration(
    title="Divergences of the output",
    needs=("divergences",),
    version=1,
    caption="Divergence of the models' predictions from the unigram distribution of their targets, from the uniform "
    "one, and from the labels themselves (their loss), on fixed development sequences, against optimiser steps. The "
    "dot is the step at which a model is nearest to the unigram distribution.",
    explanation="""
KL(unigram, model), KL(uniform, model) and KL(label, model) in nats, averaged over all labelled positions of the same
development sequences at steps 0, 1, 2, 4, 8 and so on, and at every evaluation. A line is the mean over the seeds of a
model, its band the standard error. A model that starts with a bias of 0 comes near the unigram distribution before it
learns to use the context; one whose bias is the logarithm of the unigram distribution starts there.

Source: `curves.parquet`.
""",
)

draw = partial(
    draw_steps,
    panels=(
        Panel("kl_unigram", "From unigram (nats)", marks_minimum=True),
        Panel("kl_uniform", "From uniform (nats)"),
        Panel("kl_empirical", "From the labels (nats)"),
    ),
)

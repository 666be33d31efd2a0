"""Divergences, during training, of each model's predictions from the unigram, uniform and empirical distributions.

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
    "distribution, and from the labels (the loss), on fixed development sequences, against optimiser steps. The dot is "
    "the step at which a model is closest to the unigram distribution.",
    explanation="""
The panels show KL(unigram, model), KL(uniform, model) and KL(label, model) in nats, averaged over all labelled
positions of the same development sequences. The values are measured at steps 0, 1, 2, 4, 8 and so on, and at every
evaluation. A line is the mean over the seeds of a model, and its band is the standard error. A model whose output bias
starts at 0 approaches the unigram distribution before it learns to use the context. A model whose bias starts as the
logarithm of the unigram distribution begins at this distribution.

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

"""The output layer's bias: its divergence from the unigram distribution, its norm, and its change since step 0.

Source: "A Natural Bias for Language Generation Models", Figures 11 and 12.
"""

from functools import partial

from hatchery.views.figures.marks import Panel, draw_steps
from hatchery.views.figures.registry import Declaration

FIGURE = Declaration(
    title="Drift of the output bias",
    needs=("bias_drift",),
    version=1,
    caption="The bias of the output layer against optimiser steps: divergence of its softmax from the unigram "
    "distribution, L2 norm of the bias, and L2 norm of the change of the bias since the start of training.",
    explanation="""
The panels show KL(unigram, softmax of the bias) in nats, the L2 norm of the bias, and the L2 norm of its change since
step 0. The values are measured at steps 0, 1, 2, 4, 8 and so on, and at every evaluation. A line is the mean over the
seeds of a model, and its band is the standard error.

A constant added to all values of the bias changes no prediction, but changes the norm. `curves.parquet` therefore also
contains the norm of the bias minus its mean.

Source: `curves.parquet`.
""",
)

draw = partial(
    draw_steps,
    panels=(
        Panel("bias_kl_unigram", "From unigram (nats)"),
        Panel("bias_norm", "L2 norm"),
        Panel("bias_change", "L2 norm of the change"),
    ),
)

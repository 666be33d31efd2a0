"""Translation scores of development text during training: BLEU and chrF against optimiser steps.

Source: "A Natural Bias for Language Generation Models", whose Figures 3, 6 and 8 are areas under these curves.
"""

from functools import partial

from hatchery.views.figures.marks import Panel, draw_steps
from hatchery.views.figures.registry import Declaration

FIGURE = Declaration(
    title="Translation of development text",
    needs=("translations",),
    version=1,
    caption="BLEU and chrF of translated development text, in points, against optimiser steps.",
    explanation="""
The same development sentences are translated by beam search at every evaluation, the first one before the first step. A
line is the mean over the seeds of a model, its band the standard error. The metrics `alc_bleu` and `alc_chrf` of
`summary.csv` are the areas under these curves over the first steps (`translation.alc_steps`), divided by their
number.

Source: `curves.parquet`.
""",
)

draw = partial(draw_steps, panels=(Panel("development_bleu", "BLEU"), Panel("development_chrf", "chrF")))

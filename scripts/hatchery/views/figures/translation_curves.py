"""Translation scores on development text during training: BLEU and chrF against optimiser steps.

Source: "A Natural Bias for Language Generation Models"; Figures 3, 6 and 8 of the paper show areas under these curves.
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
The same development sentences are translated by beam search at each evaluation; the first evaluation is before the
first step. A line is the mean over the seeds of a model, and its band is the standard error. The metrics `alc_bleu` and
`alc_chrf` of `summary.csv` are the areas under these curves over the first `translation.alc_steps` steps, divided by
the number of steps.

Source: `curves.parquet`.
""",
)

draw = partial(draw_steps, panels=(Panel("development_bleu", "BLEU"), Panel("development_chrf", "chrF")))

"""Development loss of every model against training FLOPs, with the compute-optimal points and the power laws fitted to
them.
"""

from functools import partial

from hatchery.views.figures.registry import Declaration
from hatchery.views.figures.scaling_panels import draw_laws

FIGURE = Declaration(
    title="Loss by FLOPs",
    needs=("power_laws",),
    all_models=True,
    version=1,
    caption="Development loss of models against training FLOPs. Dots: compute-optimal models; lines: power laws "
    "fitted to these dots.",
    explanation="""
There is one grey line per model, the mean over its seeds. A dot is the evaluation with the lowest development loss in a
bin of FLOPs, and the black lines are power laws fitted to these dots. Published learning curves, if a study names them,
have a separate panel: their losses include padding, so only the slopes of the power laws can be compared between
published curves and our curves. The shaded band is the range of the break point between two laws, if the Bayesian
information criterion prefers two laws.

Source: `numbers.csv` of the analysis `power_laws`.
""",
)

draw = partial(draw_laws, axis="flops")

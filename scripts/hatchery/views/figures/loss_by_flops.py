"""The loss of every model against FLOPs, with the compute-optimal points and the power law through them."""

from functools import partial

from hatchery.views.figures.registry import Declaration
from hatchery.views.figures.scaling_panels import draw_laws

FIGURE = Declaration(
    title="Loss by FLOPs",
    needs=("power_laws",),
    all_models=True,
    version=1,
    caption="Development loss of models against FLOPs, with the compute-optimal evaluations and their power laws.",
    explanation="""
There is one grey line per model, the mean over its seeds. The dots are the evaluations with the lowest development loss
in each bin of FLOPs, and the black lines are power laws fitted to these dots. Published learning curves, if a study
names them, have a separate panel: their losses include padding, so only slopes can be compared with ours. The shaded
band is the range of the break point between two laws, if the Bayesian information criterion prefers two laws.

Source: `numbers.csv` of the analysis `power_laws`.
""",
)

draw = partial(draw_laws, axis="flops")

"""Development loss of every model against the number of training tokens, with the compute-optimal points and the power
laws fitted to them.
"""

from functools import partial

from hatchery.views.figures.registry import Declaration
from hatchery.views.figures.scaling_panels import draw_laws

FIGURE = Declaration(
    title="Loss by tokens",
    needs=("power_laws",),
    all_models=True,
    version=1,
    caption="Development loss of models against the number of training tokens. Dots: compute-optimal models; lines: "
    "power laws fitted to these dots.",
    explanation="""
There is one grey line per model, the mean over its seeds. A dot is the evaluation with the lowest development loss in a
bin of FLOPs, and the black lines are power laws fitted to these dots. Grey boxes are around the points of a model that
has the lowest loss in at least three consecutive bins. Published learning curves, if a study names them, have a
separate panel: their losses include padding, so only the slopes of the power laws can be compared between published
curves and our curves.

Source: `numbers.csv` of the analysis `power_laws`.
""",
)

draw = partial(draw_laws, axis="tokens")

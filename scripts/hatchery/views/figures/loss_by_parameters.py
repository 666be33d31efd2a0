"""The loss of every model against parameters, with the compute-optimal points and the power law through them."""

from functools import partial

from hatchery.views.figures.registry import Declaration
from hatchery.views.figures.scaling_panels import draw_laws

FIGURE = Declaration(
    title="Loss by parameters",
    needs=("power_laws",),
    all_models=True,
    version=1,
    caption="Development loss of models against parameters, with the compute-optimal evaluations and their power laws.",
    explanation="""
One grey line per model, the mean of its seeds; the dots are the evaluations with the lowest development loss in each
bin of FLOPs, the black lines the power laws fitted to them. Grey boxes are around the points of a model that has the
lowest loss in three bins in a row or more. Published learning curves, where a study
names them, have a panel of their own: their losses count padding, so only the slopes of the two can be compared.

Source: `numbers.csv` of the analysis `power_laws`.
""",
)

draw = partial(draw_laws, axis="parameters")

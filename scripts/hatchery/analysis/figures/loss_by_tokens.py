"""The loss of every run against tokens, with the compute-optimal points and the power law through them."""

from matplotlib.figure import Figure

from hatchery.analysis.figures.registry import Tables, numbers_of
from hatchery.analysis.figures.scaling_panels import draw_laws, of_laws
from hatchery.analysis.settings import FigureSettings

FIGURE = of_laws("Loss by tokens", "Development loss of every run against tokens")


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """The figure. Raises ManifestError for an altered table."""
    return draw_laws(settings, numbers_of(tables, "power_laws"), "tokens")

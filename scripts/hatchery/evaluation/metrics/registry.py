"""The metrics by name."""

from importlib import import_module

from hatchery.evaluation.metrics import FILES
from hatchery.evaluation.metrics.scored import Metric


def metric_called(name: str) -> Metric:
    """The metric of a name in METRICS."""
    found: Metric = getattr(import_module(f"hatchery.evaluation.metrics.{FILES[name]}"), name)
    return found

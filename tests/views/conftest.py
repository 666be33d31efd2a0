"""An experiment with measurements, as stages write them."""

from measured_experiment import experiment, two_models, two_models_once  # noqa: F401

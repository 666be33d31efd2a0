"""Models for the `transformers` library: one self-contained modelling file per family, and a folder that it loads.

Called as `hatchery.export(model, folder)`, the package is the function of that name in `hatchery.public`.
"""

from hatchery.callable_package import make_callable

make_callable(__name__)

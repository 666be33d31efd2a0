"""Export of models for the `transformers` library: a folder that contains one self-contained modelling file for the
model's family.

The package can be called: `hatchery.export(model, folder)` is the function `export` in `hatchery.public`.
"""

from hatchery.callable_package import make_callable

make_callable(__name__)

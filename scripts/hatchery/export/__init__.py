"""Export of models for the `transformers` library: a folder with one self-contained modelling file per family.

The package can be called: `hatchery.export(model, folder)` is the function `export` in `hatchery.public`.
"""

from hatchery.callable_package import make_callable

make_callable(__name__)

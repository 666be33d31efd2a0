"""The configuration language of Hatchery: YAML files and their validation, with messages that name the allowed values.

The package is callable: `hatchery.experiment(path)` calls the function of the same name in `hatchery.public`.
"""

from hatchery.callable_package import make_callable

make_callable(__name__)

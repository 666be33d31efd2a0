"""The interface of Hatchery: YAML files, validated, with messages that say what to write instead.

Called as `hatchery.experiment(path)`, the package is the function of that name in `hatchery.public`.
"""

from hatchery.callable_package import make_callable

make_callable(__name__)

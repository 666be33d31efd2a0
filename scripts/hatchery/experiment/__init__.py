"""The interface of Hatchery: YAML files, validated, with messages that say what to write instead.

Called as `hatchery.experiment(path)`, the package is the function of that name (`hatchery.public`): what people call
and what the library imports have one name.
"""

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, path: Any) -> Any:
        from pkgutil import resolve_name

        return resolve_name("hatchery.public:experiment")(path)


sys.modules[__name__].__class__ = _CallablePackage

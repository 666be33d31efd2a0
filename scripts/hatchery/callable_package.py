"""Makes packages callable, so that a package of the library and a user's function such as `hatchery.export` can share a
name.
"""

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Any:
        from pkgutil import resolve_name

        return resolve_name(f"hatchery.public:{self.__name__.rpartition('.')[2]}")(*arguments, **named)


def make_callable(package: str) -> None:
    """Make a package callable, such as `hatchery.export`: calling it calls the function with its name in
    `hatchery.public`.
    """
    sys.modules[package].__class__ = _CallablePackage

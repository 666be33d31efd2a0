"""Makes packages callable, so that a package of the library and a function for users can have the same name, such as
`hatchery.export`.
"""

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Any:
        from pkgutil import resolve_name

        return resolve_name(f"hatchery.public:{self.__name__.rpartition('.')[2]}")(*arguments, **named)


def make_callable(package: str) -> None:
    """Make a package such as `hatchery.export` callable: a call of the package calls the function with the same name in
    `hatchery.public`.
    """
    sys.modules[package].__class__ = _CallablePackage

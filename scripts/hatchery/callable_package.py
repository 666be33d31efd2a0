"""Packages that are also functions: what people call and what the library imports have one name."""

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Any:
        from pkgutil import resolve_name

        return resolve_name(f"hatchery.public:{self.__name__.rpartition('.')[2]}")(*arguments, **named)


def make_callable(package: str) -> None:
    """Have a call of the package, such as `hatchery.export`, call the function of its name in `hatchery.public`."""
    sys.modules[package].__class__ = _CallablePackage

"""Finding what a command imports by reading the sources."""

from pathlib import Path

import pytest

from hatchery.environments.imports import third_party_imports


def closure(root: Path, modules: dict[str, str]) -> dict[str, str]:
    """The imports of `run.py` in a folder of scripts with these files."""
    for name, text in modules.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return third_party_imports(root / "run.py")


def test_imports_are_followed_through_the_library(tmp_path: Path) -> None:
    found = closure(
        tmp_path,
        {
            "run.py": "import json\nfrom hatchery.corpora import reader\n",
            "hatchery/__init__.py": "",
            "hatchery/corpora/__init__.py": "import yaml\n",
            "hatchery/corpora/reader.py": "from .text import clean\nimport lxml.etree\n",
            "hatchery/corpora/text.py": "from ..words import split\n",
            "hatchery/words.py": "def split():\n    import numpy as np\n",
            "hatchery/unused.py": "import torch\n",
        },
    )
    assert found == {
        "lxml": "hatchery/corpora/reader.py",
        "numpy": "hatchery/words.py",
        "yaml": "hatchery/corpora/__init__.py",
    }


def test_a_name_imported_from_a_package_may_be_a_module(tmp_path: Path) -> None:
    modules = {"hatchery/__init__.py": "", "hatchery/a.py": "import polars\n", "run.py": "from hatchery import a\n"}
    assert set(closure(tmp_path, modules)) == {"polars"}


def test_imports_for_type_checkers_do_not_count(tmp_path: Path) -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\nelse:\n    import numpy\n"
    assert set(closure(tmp_path, {"run.py": text})) == {"numpy"}


@pytest.mark.parametrize("call", ["importlib.import_module(name)", "pkgutil.iter_modules(__path__)"])
def test_a_module_that_loads_its_neighbours_by_name_imports_all_of_them(tmp_path: Path, call: str) -> None:
    found = closure(
        tmp_path,
        {
            "run.py": "import hatchery.readers\n",
            "hatchery/__init__.py": "",
            "hatchery/readers/__init__.py": f"import importlib, pkgutil\n{call}\n",
            "hatchery/readers/bnc.py": "import lxml\n",
            "hatchery/other.py": "import torch\n",
        },
    )
    assert set(found) == {"lxml"}

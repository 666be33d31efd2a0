"""The modelling file of an exported model: complete, standalone, identical to the library's code; and merge errors."""

import ast
import py_compile
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hatchery.errors import ModelError
from hatchery.export.bundle import bundle
from hatchery.export.model_folder import modelling_file
from hatchery.modeling.families import FAMILIES


def definitions(text: str) -> dict[str, str]:
    """Return the syntax trees of the top-level classes and functions of a source by name."""
    blocks = (ast.ClassDef, ast.FunctionDef)
    return {node.name: ast.dump(node) for node in ast.parse(text).body if isinstance(node, blocks)}


@pytest.fixture
def library(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes the modules `hatchery/<name>.py` of a test library and returns their
    root folder."""

    def write(**modules: str) -> Path:
        for name, text in modules.items():
            path = tmp_path / "hatchery" / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize("family", FAMILIES)
def test_a_modelling_file_needs_torch_and_transformers_alone(family: str) -> None:
    imported = set()
    for node in ast.walk(ast.parse(modelling_file(FAMILIES[family]))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).partition(".")[0])
    assert imported - set(sys.stdlib_module_names) == {"torch", "transformers"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_modelling_file_is_whole_and_tidy(family: str, repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "modeling.py"
    path.write_text(modelling_file(FAMILIES[family]))
    py_compile.compile(str(path), cfile=str(tmp_path / "compiled"), doraise=True)
    # F821 would mean a missing definition, and F811 a definition that hides another.
    for command in (["check", "--select", "E,F,I"], ["format", "--check"]):
        config = ["--no-cache", "--config", str(repository / "pyproject.toml")]
        done = subprocess.run(
            [sys.executable, "-m", "ruff", command[0], *config, *command[1:], str(path)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def defined(repository: Path) -> dict[str, set[str]]:
    """Return the syntax trees of the top-level classes and functions of our library by name."""
    found: dict[str, set[str]] = {}
    for path in (repository / "scripts" / "hatchery").rglob("*.py"):
        for name, tree in definitions(path.read_text()).items():
            found.setdefault(name, set()).add(tree)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_every_definition_is_that_of_the_library(family: str, repository: Path, defined: dict[str, set[str]]) -> None:
    found = definitions(modelling_file(FAMILIES[family]))
    assert {"LayeredEncoder", "EncoderLayer", "LayerMixture"} <= found.keys()
    # If no module of the library defines the exported classes of a family, only the file contains these classes.
    exported = FAMILIES[family].exported
    written = not (repository / "scripts" / "hatchery" / "export" / f"{exported.module}.py").exists()
    ends = ("Config", "Model", "ForMaskedLM", "ForCausalLM", *exported.further)
    foreign = {name for name, tree in found.items() if tree not in defined.get(name, set())}
    assert foreign == ({exported.classes + end for end in ends} if written else set())


def test_families_do_not_carry_each_other() -> None:
    ltg, roberta, translation = (
        definitions(modelling_file(FAMILIES[name])) for name in ("ltg", "roberta", "encoder_decoder")
    )
    assert "DisentangledSelfAttention" in ltg and "DisentangledSelfAttention" not in roberta
    assert {"MultiHeadAttention", "RobertaEmbedding"} <= roberta.keys() - ltg.keys()
    assert "ScoreHead" in ltg and "ScoreHead" in roberta
    assert "DecoderLayer" in translation and "DecoderLayer" not in ltg.keys() | roberta.keys()
    assert not {"DisentangledSelfAttention", "RobertaEmbedding", "ScoreHead"} & translation.keys()
    # Neither family needs these definitions, although both need the module that contains them.
    assert not {"layer_weight_table", "CheckpointError"} & (ltg.keys() | roberta.keys())


def test_the_same_sources_give_the_same_text() -> None:
    code = (
        "from hatchery.export.model_folder import modelling_file; from hatchery.modeling.families import FAMILIES; "
        "print(*map(modelling_file, FAMILIES.values()), sep='', end='')"
    )
    scripts = Path(bundle.__code__.co_filename).parents[2]
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": str(scripts), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert texts == {"".join(map(modelling_file, FAMILIES.values()))}


def test_order_comments_and_constants_are_kept_and_the_unneeded_is_left_out(library: Callable[..., Path]) -> None:
    folder = library(
        base='"""The base.\n\nMore."""\nimport math\nimport os\n\n# Why it is two.\nTWO = 2\n"""A number."""\nTHREE'
        " = 3\n\n\ndef twice(x):\n    return math.floor(TWO * x)\n\n\ndef unneeded():\n    return os.sep\n",
        middle="from hatchery.base import twice, unneeded\n\n\nclass Middle:\n    value = twice(1)\n",
        root='"""The root."""\nfrom hatchery.middle import Middle\n\n\nclass Root(Middle):\n    pass\n',
    )
    text = bundle("hatchery.root", folder)
    assert '# Why it is two.\nTWO = 2\n"""A number."""\n' in text
    assert "# The base.\n#\n# More.\n" in text and text.startswith('"""The root.')
    assert "import math" in text and "import os" not in text
    assert "THREE" not in text and "unneeded" not in text
    assert text.index("def twice") < text.index("class Middle") < text.index("class Root")
    names: dict[str, object] = {}
    exec(compile(text, "root", "exec"), names)
    assert names["Root"].value == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("modules", "complaint"),
    [
        (
            {"a": "def same():\n    return 1\n", "root": "from hatchery.a import same as other\nx = other()\n"},
            "the import of `same` from hatchery.a cannot be merged into the exported file; omit `as`",
        ),
        ({"a": "x = 1\n", "root": "import hatchery.a\ny = 1\n"}, "cannot be merged"),
        ({"root": "from .a import x\ny = x\n"}, "cannot be merged"),
        ({"root": "def f():\n    from hatchery import a\n    return a\n"}, "inside a block"),
        ({"a": "y = 1\n", "root": "from hatchery.a import x\nz = x\n"}, "which does not define this name"),
        ({"root": "for x in []:\n    pass\n"}, "a For outside functions"),
        (
            {
                "a": "def _help():\n    return 1\n\n\ndef a():\n    return _help()\n",
                "b": "def _help():\n    return 2\n\n\ndef b():\n    return _help()\n",
                "root": "from hatchery.a import a\nfrom hatchery.b import b\nx = a() + b()\n",
            },
            "_help: the name means both hatchery.a._help and hatchery.b._help",
        ),
        (
            {
                "a": "from math import floor as f\n\n\ndef a():\n    return f(1)\n",
                "root": "from hatchery.a import a\nfrom math import ceil as f\nx = a() + f(2)\n",
            },
            "f: the name means both math.floor and math.ceil",
        ),
        (
            {"a": "from hatchery.root import y\nx = y\n", "root": "from hatchery.a import x\ny = x\n"},
            "imports itself",
        ),
    ],
)
def test_what_would_change_its_meaning_is_refused(
    library: Callable[..., Path], modules: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ModelError, match=complaint):
        bundle("hatchery.root", library(**modules))

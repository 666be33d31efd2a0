"""SECURITY.md names files that exist, and says what the code says."""

import re
from pathlib import Path

import pytest
from yaml.constructor import SafeConstructor

from hatchery.artifacts.yaml_files import _Explainer, _Loader, read_yaml
from hatchery.errors import ConfigError


def test_every_file_that_the_security_notes_name_exists(repository: Path) -> None:
    text = (repository / "SECURITY.md").read_text(encoding="utf-8")
    modules = re.findall(r"`([a-z_/]+\.py)`", text)
    assert len(modules) >= 4
    library = repository / "scripts" / "hatchery"
    assert [name for name in modules if not (library / name).is_file() and not (repository / name).is_file()] == []


def test_models_of_others_run_no_code_as_the_security_notes_say(repository: Path) -> None:
    library = repository / "scripts" / "hatchery"
    sources = {path.relative_to(library).as_posix(): path.read_text("utf-8") for path in library.rglob("*.py")}
    assert '"trust_remote_code": False' in sources["evaluation/baselines/loading.py"]
    for name, text in sources.items():
        assert not re.search(r"allow_pickle=True|weights_only=False|unsafe_load|full_load", text), name
        assert "yaml.load(" not in text or name == "artifacts/yaml_files.py", name
        for call in re.findall(r"torch\.load\([^)]*\)", text):
            assert "weights_only=True" in call, name


def test_yaml_makes_no_objects_as_the_security_notes_say(tmp_path: Path) -> None:
    for loader in (_Loader, _Explainer):
        assert issubclass(loader, SafeConstructor)
        assert set(loader.yaml_constructors) == set(SafeConstructor.yaml_constructors)
    path = tmp_path / "evil.yaml"
    for tag in ("object/apply:os.getcwd []", "name:os.getcwd ''", "object:os.PathLike {}", "module:os ''"):
        path.write_text(f"a: !!python/{tag}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"evil\.yaml:1: could not determine a constructor for the tag"):
            read_yaml(path)


def test_pages_forbid_scripts_as_the_security_notes_say(repository: Path) -> None:
    page = (repository / "scripts" / "hatchery" / "rendering" / "templates" / "document.html.j2").read_text(
        encoding="utf-8"
    )
    assert "Content-Security-Policy" in page and "default-src 'none'" in page

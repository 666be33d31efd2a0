"""SECURITY.md names files that exist, and says what the code says."""

import re
from pathlib import Path


def test_every_file_that_the_security_notes_name_exists(repository: Path) -> None:
    text = (repository / "SECURITY.md").read_text(encoding="utf-8")
    modules = re.findall(r"`([a-z_/]+\.py)`", text)
    assert len(modules) >= 5
    library = repository / "scripts" / "hatchery"
    assert [name for name in modules if not (library / name).is_file() and not (repository / name).is_file()] == []


def test_models_of_others_run_no_code_as_the_security_notes_say(repository: Path) -> None:
    library = repository / "scripts" / "hatchery"
    sources = {path.name: path.read_text(encoding="utf-8") for path in library.rglob("*.py")}
    assert '"trust_remote_code": False' in sources["transformers_model.py"]
    for name, text in sources.items():
        assert not re.search(r"allow_pickle=True|weights_only=False|unsafe_load|full_load", text), name
        assert "yaml.load(" not in text or ("Loader=_Loader" in text and "class _Loader(yaml.SafeLoader)" in text), name
        for call in re.findall(r"torch\.load\([^)]*\)", text):
            assert "weights_only=True" in call, name


def test_pages_forbid_scripts_as_the_security_notes_say(repository: Path) -> None:
    page = (repository / "scripts" / "hatchery" / "rendering" / "templates" / "document.html.j2").read_text(
        encoding="utf-8"
    )
    assert "Content-Security-Policy" in page and "default-src 'none'" in page

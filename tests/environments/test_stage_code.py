"""Changed code is either a new version of its stage or was recorded as neutral."""

import shutil
from pathlib import Path

from hatchery.environments.imports import import_closure
from hatchery.environments.stage_code import code_digest, current_ledger, read_ledger


def test_changed_code_of_a_stage_was_looked_at(repository: Path) -> None:
    recorded, current = read_ledger(repository), current_ledger(repository)
    assert recorded.keys() == current.keys()
    changed = [stage for stage in current if recorded[stage] != current[stage]]
    assert not changed, (
        f"the code or version of {', '.join(changed)} changed: if the stage now makes something else, raise its "
        "version in its record in scripts/hatchery/stages, or in the figure's file; then run `make stage-ledger`"
    )


def test_a_changed_figure_is_told_by_its_name(repository: Path, tmp_path: Path) -> None:
    copy = tmp_path / "scripts"
    shutil.copytree(repository / "scripts", copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = current_ledger(tmp_path)
    path = copy / "hatchery/analysis/figures/phenomena.py"
    path.write_text(path.read_text(encoding="utf-8").replace("CHANCE = 50.0", "CHANCE = 51.0"), encoding="utf-8")
    after = current_ledger(tmp_path)
    assert [name for name in after if after[name] != before[name]] == ["draw_figure phenomena"]


def digest_of_command(folder: Path, body: str) -> str:
    (folder / "hatchery").mkdir(parents=True, exist_ok=True)
    (folder / "hatchery/__init__.py").touch()
    (folder / "hatchery/work.py").write_text(body, encoding="utf-8")
    command = folder / "work.py"
    command.write_text("from hatchery.work import work\nwork()\n", encoding="utf-8")
    return code_digest(import_closure(command), folder)


def test_comments_and_docstrings_do_not_change_the_digest(tmp_path: Path) -> None:
    plain = digest_of_command(tmp_path, "def work():\n    return 1\n")
    commented = '"""Module."""\n\n# why\ndef work():\n    """Docstring."""\n    return (1)\n'
    assert digest_of_command(tmp_path, commented) == plain


def test_a_change_in_an_imported_module_changes_the_digest(tmp_path: Path) -> None:
    before = digest_of_command(tmp_path, "def work():\n    return 1\n")
    assert digest_of_command(tmp_path, "def work():\n    return 2\n") != before

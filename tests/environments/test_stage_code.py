"""Changed code is either a new version of its stage or was recorded as neutral."""

from pathlib import Path

from hatchery.environments.stage_code import code_digest, current_ledger, read_ledger


def test_changed_code_of_a_stage_was_looked_at(repository: Path) -> None:
    recorded, current = read_ledger(repository), current_ledger(repository)
    assert recorded.keys() == current.keys()
    changed = [stage for stage in current if recorded[stage] != current[stage]]
    assert not changed, (
        f"the code or version of {', '.join(changed)} changed: if the stage now makes something else, raise its "
        "version in its record in scripts/hatchery/stages; then run `make stage-ledger`"
    )


def make_command(folder: Path, body: str) -> Path:
    (folder / "hatchery").mkdir(parents=True, exist_ok=True)
    (folder / "hatchery/__init__.py").touch()
    (folder / "hatchery/work.py").write_text(body, encoding="utf-8")
    command = folder / "work.py"
    command.write_text("from hatchery.work import work\nwork()\n", encoding="utf-8")
    return command


def test_comments_and_docstrings_do_not_change_the_digest(tmp_path: Path) -> None:
    plain = code_digest(make_command(tmp_path, "def work():\n    return 1\n"))
    commented = make_command(tmp_path, '"""Module."""\n\n# why\ndef work():\n    """Docstring."""\n    return (1)\n')
    assert code_digest(commented) == plain


def test_a_change_in_an_imported_module_changes_the_digest(tmp_path: Path) -> None:
    before = code_digest(make_command(tmp_path, "def work():\n    return 1\n"))
    assert code_digest(make_command(tmp_path, "def work():\n    return 2\n")) != before

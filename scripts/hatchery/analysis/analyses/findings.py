"""What an analysis found, as files: `numbers.csv` for programs and figures, `findings.json` for the study's page.

Its tables are files, too: `tables.md` to read, and one of LaTeX each, which `tables.tex` shows.
"""

import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path

from hatchery.analysis.analyses.analysis import Findings
from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import EvaluationError
from hatchery.rendering.escaping import markdown_text
from hatchery.rendering.table import Table, as_json, from_json, latex_of_files
from hatchery.sanitize import csv_text

NUMBERS_FILE, FINDINGS_FILE, TABLE = "numbers.csv", "findings.json", "table_"


@dataclass(frozen=True)
class ShownFindings:
    """An analysis on the page: its tables and notes, the file with its numbers, and those with its tables."""

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    numbers: Path
    files: tuple[Path, ...] = ()


def numbers_csv(found: Findings, analysis: str) -> str:
    """The rows as CSV: numbers in full, nothing for None. Raises EvaluationError where rows differ in their keys."""
    header = list(found.rows[0]) if found.rows else []
    for row in found.rows:
        if list(row) != header:
            raise EvaluationError(f"{analysis}: a row has the keys {', '.join(row)}, the first has {', '.join(header)}")
    return csv_text(header, (list(row.values()) for row in found.rows))


def tables_as_files(found: Findings, title: str, entry: str, study: str) -> dict[str, str]:
    """The tables with their notes as Markdown and as LaTeX, by the name of the file; nothing where there are none."""
    if not found.tables:
        return {}
    names = [f"{TABLE}{number:02}" for number in range(1, len(found.tables) + 1)]
    # LaTeX's notes have no code.
    notes = [note.replace("`", "") for note in found.notes]
    source = f"study {study}, {entry}"
    texts = {
        f"{name}.tex": replace(table, notes=notes).latex(source, f"{study}-{entry}-{name}".replace("_", "-"), wrap=True)
        for name, table in zip(names, found.tables, strict=True)
    }
    remarks = "\n".join(f"- {note}" for note in found.notes)
    blocks = [f"# {markdown_text(title)}", *(table.captioned_markdown() for table in found.tables), remarks]
    texts["tables.md"] = "\n\n".join(filter(None, blocks)) + "\n"
    return texts | {"tables.tex": latex_of_files((name, number) for number, name in enumerate(names, start=1))}


def findings_json(title: str, found: Findings) -> str:
    """The text of findings.json."""
    value = {"title": title, "tables": [as_json(table) for table in found.tables], "notes": list(found.notes)}
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def read_findings(manifest: Path) -> ShownFindings:
    """What an analysis found, for people.

    Raises ManifestError for an altered file, EvaluationError for one that holds something else.
    """
    made = read_manifest(manifest)
    path = made.file(FINDINGS_FILE)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        tables = tuple(from_json(table) for table in value["tables"])
        files = (*made.files(suffix=".md"), *made.files(suffix=".tex"))
        return ShownFindings(value["title"], tables, tuple(value["notes"]), made.file(NUMBERS_FILE), files)
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path}: not the findings of an analysis: {error}") from error


def read_numbers(manifest: Path) -> list[dict[str, str]]:
    """The rows of numbers.csv as texts, an empty one for no value. Raises ManifestError for an altered file."""
    with read_manifest(manifest).file(NUMBERS_FILE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))

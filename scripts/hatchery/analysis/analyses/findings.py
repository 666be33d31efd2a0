"""What an analysis found, as files: `numbers.csv` for programs and figures, `findings.json` for the study's page."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path

from hatchery.analysis.analyses.analysis import Findings
from hatchery.errors import EvaluationError
from hatchery.harmless_text import csv_text
from hatchery.rendering.table import Table, as_json, from_json
from hatchery.storage.manifests import read_manifest

NUMBERS_FILE, FINDINGS_FILE = "numbers.csv", "findings.json"


@dataclass(frozen=True)
class ShownFindings:
    """An analysis on the page: its tables and notes, and the file with its numbers."""

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    numbers: Path


def numbers_csv(found: Findings, analysis: str) -> str:
    """The rows as CSV: numbers in full, nothing for None. Raises EvaluationError where rows differ in their keys."""
    header = list(found.rows[0]) if found.rows else []
    for row in found.rows:
        if list(row) != header:
            raise EvaluationError(f"{analysis}: a row has the keys {', '.join(row)}, the first has {', '.join(header)}")
    return csv_text(header, (list(row.values()) for row in found.rows))


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
        return ShownFindings(value["title"], tables, tuple(value["notes"]), made.file(NUMBERS_FILE))
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path}: not the findings of an analysis: {error}") from error


def read_numbers(manifest: Path) -> list[dict[str, str]]:
    """The rows of numbers.csv as texts, an empty one for no value. Raises ManifestError for an altered file."""
    with read_manifest(manifest).file(NUMBERS_FILE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))

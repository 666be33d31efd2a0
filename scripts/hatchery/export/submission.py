"""Write the file for BabyLM's leaderboard: all predictions of one model, and the scores of its checkpoints.

Source: docs/papers/babylm-2026.md, "Submission". Missing measurements are null. Missing tasks of GLUE are omitted.
"""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hatchery.analysis.babylm_scores import LABELS, RULES, SUITES, RowCount, parts_of
from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import write_checksums
from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.artifacts.records import read_records
from hatchery.export.settings import SubmissionSettings
from hatchery.export.submission_check import (
    FAST,
    differing_counts,
    missing_checkpoints,
    structure_problems,
    undefined_surprisals,
)
from hatchery.rendering.escaping import markdown_text

Found = Mapping[str, Path]
"""Type of a mapping from the name of an evaluation to its manifest. Names are the keys of SUITES, `reading`,
`acquisition`, and tasks such as `glue/rte`.
"""
UNDEFINED = (
    "The first word of a sentence has no previous word, so the previous word's surprisal is `NaN`. The "
    "organisers' pipeline also writes `NaN`, and the server's Python code reads it, but strict JSON parsers "
    "(jq, JavaScript) refuse the file"
)


def write_submission(
    settings: SubmissionSettings,
    predictions: Found,
    fast: Found,
    measurements: Path,
    row_counts: Path,
    output: Path,
    report: Path,
) -> None:
    """Write the file for BabyLM's leaderboard and a report on this file; the stage `write_submission` calls this
    function."""
    value = submission(settings, predictions, fast)
    # NaN is not valid JSON, but the server's code expects missing surprisals under `reading` as NaN.
    write_text(output, json.dumps(value) + "\n")
    frame = read_frame(measurements, MEASUREMENTS, run=(settings.run,))
    parts = parts_of(frame, settings.suites, settings.tasks, settings.edition)
    counts = read_records(row_counts, RowCount, ("set", "block", "uid"))
    write_text(report, report_of(settings, value, parts, counts))
    write_checksums([output, report])


def submission(settings: SubmissionSettings, predictions: Found, fast: Found) -> dict[str, Any]:
    """Return the content of the file for BabyLM's leaderboard. Raises ManifestError for a missing or damaged
    manifest.
    """
    manifests = {name: read_manifest(path) for name, path in predictions.items()}
    value: dict[str, Any] = {block: _predictions(manifests.get(block)) for block in SUITES}
    value["reading"] = _predictions(manifests.get("reading"))
    value |= _acquisition(settings, manifests.get("acquisition"))
    tuned = [_predictions(one) for name, one in manifests.items() if name.startswith("glue/")]
    value["glue"] = {task: found for one in tuned if one is not None for task, found in one.items()}
    of_checkpoints = {name: read_manifest(path) for name, path in fast.items()}
    value["fast_eval_results"] = {
        block: [_fractions(block, of_checkpoints.get(f"{name}/{block}")) for name in settings.checkpoints]
        for block in FAST
    }
    return value


def _predictions(manifest: Manifest | None) -> Any:
    """Return the content of an evaluation's `predictions.json`. Return None if `manifest` is None, or if the evaluation
    has not written this file, for example because only a sample of the rows was evaluated.
    """
    if manifest is None or not manifest.listed("predictions.json"):
        return None
    return json.loads(manifest.file("predictions.json").read_text(encoding="utf-8"))


def _acquisition(settings: SubmissionSettings, manifest: Manifest | None) -> dict[str, Any]:
    """Return the surprisals of all checkpoints and the age-of-acquisition score; with `age_of_acquisition: zero`, the
    score is 0.

    Surprisals and score are null if there is no evaluation, or if the evaluated checkpoints differ from the checkpoints
    in the settings.
    """
    if manifest is None:
        return {"aoa_surprisals": None, "aoa": None}
    surprisals = json.loads(manifest.file("surprisal.json").read_text(encoding="utf-8"))
    if {row["step"] for row in surprisals["results"]} != set(settings.checkpoints):
        return {"aoa_surprisals": None, "aoa": None}
    surprisals["metadata"]["model_name"] = settings.run
    score = json.loads(manifest.file("aoa_score.json").read_text(encoding="utf-8"))
    zero = settings.age_of_acquisition == "zero"
    return {"aoa_surprisals": surprisals, "aoa": {"aoa": 0.0} if zero else score}


def _fractions(block: str, manifest: Manifest | None) -> dict[str, float] | None:
    """Return the scores of a checkpoint on the part `block` of the benchmark; None if `manifest` is None. Checkpoints
    are evaluated on fewer rows than finished models. The scores are the accuracy on each paradigm as a fraction. For
    `reading`, they are the gains in explained variance when surprisal predicts reading times: `spr` for self-paced
    reading, and `rt` for eye tracking.
    """
    if manifest is None:
        return None
    reads = block == "reading"
    path = manifest.file("scores.csv" if reads else "accuracy.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if reads:
        return {row["outcome"]: float(row["gain"]) for row in rows if row["outcome"] in ("spr", "rt")}
    return {row["name"]: float(row["accuracy"]) for row in rows if row["level"] == "paradigm"}


def report_of(
    settings: SubmissionSettings,
    value: Mapping[str, Any],
    parts: Mapping[str, float | None],
    counts: Sequence[RowCount],
) -> str:
    """Return a Markdown report on the file for BabyLM's leaderboard; the user reads the report before submitting the
    file.
    """
    rules = RULES[settings.edition]
    written = (value["aoa"] or {}).get("aoa")
    measured = parts.get("acquisition")
    points_in_file = "no AoA score" if written is None else f"AoA {100 * written:.2f}"
    unmeasured = [LABELS[part] for part, points in parts.items() if points is None]
    rows = [f"| {LABELS[part]} | {'-' if points is None else f'{points:.2f}'} |" for part, points in parts.items()]
    lines = [
        f"# Submission: {markdown_text(settings.run)}",
        "",
        f"Track {settings.track.replace('_', '-')}: "
        + (
            "the experiment was checked against the track's rules."
            if settings.track_checked
            else f"the track's rules were not checked, because the experiment has no `track: {settings.track}`."
        ),
        "",
        f"{rules.name[0].upper()}{rules.name[1:]}:",
        "",
        f"- with the measured AoA ({'none' if measured is None else f'{measured:.2f}'}): **{rules.mean(parts):.2f}**",
        f"- with AoA 0: **{rules.mean(parts, acquisition=False):.2f}**",
        f"- the file contains {points_in_file}",
        *([f"- parts that were not measured and count as 0: {', '.join(unmeasured)}"] if unmeasured else []),
        "",
        "| part | points |",
        "|:--|--:|",
        *rows,
        "",
        "Scores are computed by this workflow, in which a tie of k texts counts 1/k; the server compares the texts in "
        "the file with the correct texts.",
        "",
        "## Structure",
        "",
        *_listed(structure_problems(value, settings.track), "The file has the structure that the server requires."),
        "",
        *([f"{UNDEFINED}: {undefined} rows of `reading`.", ""] if (undefined := undefined_surprisals(value)) else []),
        "## Checkpoints",
        "",
        *_listed(missing_checkpoints(value, settings.track), "All blocks have all checkpoints of the track."),
        "",
        "## Numbers of rows",
        "",
        *_listed(differing_counts(value, counts), "All blocks have the rows that the server expects."),
    ]
    return "\n".join(lines) + "\n"


def _listed(found: Iterable[str], when_none: str) -> list[str]:
    lines = [f"- {markdown_text(one)}" for one in found]
    return lines or [when_none]

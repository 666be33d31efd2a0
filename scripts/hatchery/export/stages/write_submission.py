"""The stage `write_submission`: write the file for BabyLM's leaderboard, and a report on this file."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.babylm_scores import SUITES, TASKS
from hatchery.errors import ConfigError
from hatchery.evaluation.evaluation import Result
from hatchery.experiment.experiment_file import Submission
from hatchery.export.settings import SubmissionSettings
from hatchery.export.submissions import submitted_run
from hatchery.job_spec import Paths
from hatchery.runner import OutputPath
from hatchery.stage import Stage
from hatchery.training.milestones import BABYLM_MARKS, mark_name
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.experiment.seeded_run import SeededRun
    from hatchery.workflow.result_paths import ResultPaths

MARKS = {"strict_small": BABYLM_MARKS[:19], "strict": BABYLM_MARKS}


def chosen(project: "Project", experiment: str) -> tuple[Submission, "SeededRun"]:
    """Return the experiment's settings of the submission (key `submission`) and the submitted run. Raises ConfigError
    if the key is missing, if the submission's edition is not 2026, or if the run is unknown.
    """
    block, where = project.experiment(experiment), project.place("experiment", experiment)
    if block.submission is None:
        raise ConfigError(f"{where}: the key `submission` is missing; write `submission: {{track: strict_small}}`")
    wanted = block.submission
    if wanted.edition != 2026:
        raise ConfigError(
            f"{where}: submission.edition: got {wanted.edition}, whose leaderboard is closed, expected 2026; the "
            f"average by the rules of {wanted.edition} is in "
            f"results/{experiment}/analyses/babylm_leaderboard/numbers.csv"
        )
    return wanted, submitted_run(project, experiment)


def submission_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the settings of the submission: the submitted run, the names of its submitted checkpoints, and the keys of
    the experiment's submission settings.

    The checkpoints are those that the track requires. A run that has milestones, but none of these checkpoints, submits
    its first milestones instead, at most as many as the track requires.
    """
    wanted, run = chosen(project, experiment)
    kept = [milestone.milestone for _, milestone in project.checkpoints(experiment, run.name)]
    official = [mark_name(words) for words in MARKS[wanted.track]]
    names = official if not kept or set(kept) & set(official) else kept[: len(official)]
    held = project.experiment(experiment).track is not None
    return {**keys_of(wanted, only=SubmissionSettings), "run": run.name, "checkpoints": names, "track_checked": held}


def submission_inputs(results: "ResultPaths", experiment: str) -> dict[str, Paths]:
    """Return the existing evaluations of the submitted run and of its checkpoints, the experiment's
    measurements.parquet, and row_counts.csv, which contains the official number of rows of each part of the benchmark.
    """
    project = results.project
    wanted, run = chosen(project, experiment)
    known = {experiment: results.evaluations(experiment)}
    whole = {block: Result("minimal_pairs", run.name, f"{wanted.suites}_{name}") for block, name in SUITES.items()}
    whole |= {f"glue/{task}": Result("finetuning", run.name, f"{wanted.tasks}_{task}") for task in TASKS}
    whole |= {kind: Result(kind, run.name, "") for kind in ("reading", "acquisition")}
    fast: dict[str, str] = {}
    for of, milestone in project.checkpoints(experiment, run.name):
        if of not in known:
            known[of] = results.evaluations(of)
        name = milestone.milestone
        asked = {"reading": [Result("reading", milestone.name, "")]}
        for block, suite in SUITES.items():
            prefixes = (f"{wanted.suites}_fast", wanted.suites)
            asked[block] = [Result("minimal_pairs", milestone.name, f"{prefix}_{suite}") for prefix in prefixes]
        for block, candidates in asked.items():
            path = next((known[of][one] for one in candidates if one in known[of]), None)
            if path is not None:
                fast[f"{name}/{block}"] = path
    return {
        "predictions": {name: known[experiment][one] for name, one in whole.items() if one in known[experiment]},
        "fast": fast,
        "measurements": results.of("collect_measurements", "measurements", experiment=experiment),
        "row_counts": "config/published/babylm/row_counts.csv",
    }


@Stage(
    version=1,
    settings=submission_settings,
    inputs=submission_inputs,
    outputs={
        "json": "results/{experiment}/submission.json",
        "report": "results/{experiment}/submission.md",
        "checksums": "results/{experiment}/submission.sha256",
    },
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=10,
)
def write_submission(
    settings: SubmissionSettings,
    predictions: Mapping[str, Path],
    fast: Mapping[str, Path],
    measurements: Path,
    row_counts: Path,
    output: Path,
    report: OutputPath,
) -> None:
    """Write the submission of one model to `output`, and a report on the submission, in Markdown, to `report`.

    Raises ManifestError if a file was changed after the evaluation.
    """
    from hatchery.export.submission import write_submission as write

    write(settings, predictions, fast, measurements, row_counts, output, Path(report))

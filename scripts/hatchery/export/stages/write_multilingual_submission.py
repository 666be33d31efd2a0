"""The stage `write_multilingual_submission`: write the files for BabyLM's multilingual track, and a report on these
files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.multilingual_scores import READING, finetuned_names, zero_shot_tasks
from hatchery.artifacts.manifests import StageRun
from hatchery.evaluation.evaluation import Result
from hatchery.export.settings import MultilingualSubmissionSettings
from hatchery.export.submissions import multilingual_choice
from hatchery.job_spec import Paths
from hatchery.stage import Stage
from hatchery.training.milestones import BABYLM_MARKS, mark_name

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.result_paths import ResultPaths


def multilingual_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the settings of the submission: the submitted run, the names of its submitted checkpoints, and the keys of
    the experiment's submission settings.

    The checkpoints are the track's 28 checkpoints. A run that has milestones, but none of these checkpoints, submits
    its first 28 milestones instead.
    """
    wanted, run = multilingual_choice(project, experiment)
    kept = [milestone.milestone for _, milestone in project.checkpoints(experiment, run.name)]
    official = [mark_name(words) for words in BABYLM_MARKS]
    return {
        "run": run.name,
        "model": wanted.model or run.name,
        "suites": wanted.suites,
        "tasks": wanted.tasks,
        "reading": wanted.reading,
        "checkpoints": official if not kept or set(kept) & set(official) else kept[: len(official)],
        "track_checked": project.experiment(experiment).track is not None,
    }


def multilingual_inputs(results: "ResultPaths", experiment: str) -> dict[str, Paths]:
    """Return the existing evaluations of the submitted run and of its checkpoints, and the experiment's
    measurements.parquet.
    """
    project = results.project
    wanted, run = multilingual_choice(project, experiment)
    known = {experiment: results.evaluations(experiment)}
    texts = [f"{name}_{language}" for name, languages in READING.items() for language in languages]

    def of_model(model: str) -> dict[str, Result]:
        found = {task: Result("minimal_pairs", model, f"{wanted.suites}_{task}") for task in zero_shot_tasks()}
        return found | {
            text: Result("reading_times", model, wanted.reading + text.removeprefix("meco")) for text in texts
        }

    whole = {name: known[experiment][one] for name, one in of_model(run.name).items() if one in known[experiment]}
    tuned = {name: Result("finetuning", run.name, f"{wanted.tasks}_{name}") for name in finetuned_names()}
    fast: dict[str, str] = {}
    for of, milestone in project.checkpoints(experiment, run.name):
        if of not in known:
            known[of] = results.evaluations(of)
        for name, one in of_model(milestone.name).items():
            if one in known[of]:
                fast[f"{milestone.milestone}/{name}"] = known[of][one]
    return {
        "zero_shot": {name: path for name, path in whole.items() if name not in texts},
        "finetuned": {name: known[experiment][one] for name, one in tuned.items() if one in known[experiment]},
        "reading": {name: path for name, path in whole.items() if name in texts},
        "fast": fast,
        "measurements": results.of("collect_measurements", "measurements", experiment=experiment),
    }


@Stage(
    version=1,
    settings=multilingual_settings,
    inputs=multilingual_inputs,
    outputs={"output": "results/{experiment}/multilingual_submission/manifest.json"},
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=10,
)
def write_multilingual_submission(
    settings: MultilingualSubmissionSettings,
    zero_shot: Mapping[str, Path],
    finetuned: Mapping[str, Path],
    reading: Mapping[str, Path],
    fast: Mapping[str, Path],
    measurements: Path,
    run: StageRun,
) -> None:
    """Write `<model>_submission.json`, `<model>_predictions.json` and `submission.md` into the folder of `run`.

    Raises ManifestError if a file was changed after the evaluation.
    """
    from hatchery.export.multilingual_submission import Evaluated, write_files

    write_files(settings, Evaluated(zero_shot, finetuned, reading, fast), measurements, run)

"""The run that an experiment submits to BabyLM's leaderboard, and a check of the experiment. The check refuses an
experiment that evaluates none of the suites in the leaderboard's score, or that fine-tunes only on tasks outside of
this score.
"""

from typing import TYPE_CHECKING, Literal

from hatchery.analysis.babylm_scores import RULES, TASKS, suites_of
from hatchery.analysis.multilingual_scores import finetuned_names, zero_shot_tasks
from hatchery.errors import ConfigError
from hatchery.settings.problems import Problems, alternatives

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import MultilingualSubmission, Submission
    from hatchery.experiment.project import Project
    from hatchery.experiment.seeded_run import SeededRun


SubmissionKey = Literal["submission", "multilingual_submission"]


def submitted_run(project: "Project", name: str, key: SubmissionKey = "submission") -> "SeededRun":
    """Return the run that an experiment submits; `key` is the experiment's key that names this run. Raises ConfigError
    for an unknown run or seed.
    """
    block, where = project.experiment(name), f"{project.place('experiment', name)}: {key}"
    wanted: Submission | MultilingualSubmission | None = getattr(block, key)
    assert wanted is not None
    budgeted = (run for run, entry in block.runs.items() if entry.pretraining.marks)
    run = wanted.run or next(budgeted, next(iter(block.runs)))
    if run not in block.runs:
        raise ConfigError(f"{where}.run: got {run!r}, expected a run of the experiment{alternatives(run, block.runs)}")
    seeds = block.runs[run].seeds
    if wanted.seed not in (None, *seeds):
        raise ConfigError(f"{where}.seed: got {wanted.seed}, expected a seed of {run!r}: {', '.join(map(str, seeds))}")
    return next(one for one in project.seeded_runs(name) if one.model == run and wanted.seed in (None, one.seed))


def suite_names(wanted: "Submission") -> list[str]:
    """Return the names of the suites that a submission requires by the rules of its edition (the year of BabyLM)."""
    return [f"{wanted.suites}_{suite}" for part in RULES[wanted.edition].suites for suite in suites_of(part)]


def check_submission(project: "Project", name: str) -> None:
    """Raise ConfigError if an experiment submits an unknown run, evaluates none of the suites that the submission
    contains, or fine-tunes only on tasks that the submission does not contain.
    """
    experiment, problems = project.experiment(name), Problems()
    one, other = experiment.submission, experiment.multilingual_submission
    if one is not None:
        tasks = [f"{one.tasks}_{task}" for task in TASKS]
        _check(project, name, "submission", suite_names(one), tasks, problems)
    if other is not None:
        suites = [f"{other.suites}_{task}" for task in zero_shot_tasks()]
        tasks = [f"{other.tasks}_{task}" for task in finetuned_names()]
        _check(project, name, "multilingual_submission", suites, tasks, problems)
    problems.raise_any()


def multilingual_choice(project: "Project", name: str) -> tuple["MultilingualSubmission", "SeededRun"]:
    """Return the settings of the submission to the multilingual track, and the submitted run. Raises ConfigError if the
    experiment has no such submission.
    """
    wanted = project.experiment(name).multilingual_submission
    if wanted is None:
        where = project.place("experiment", name)
        raise ConfigError(f"{where}: the key is missing; write `multilingual_submission: {{}}`")
    return wanted, submitted_run(project, name, "multilingual_submission")


def _check(
    project: "Project", name: str, kind: SubmissionKey, suites: list[str], tasks: list[str], problems: Problems
) -> None:
    experiment, where = project.experiment(name), project.place("experiment", name)
    wanted: Submission | MultilingualSubmission = getattr(experiment, kind)
    with problems.collecting():
        submitted_run(project, name, kind)
    for key, prefix, names, there in (
        ("suites", wanted.suites, suites, experiment.minimal_pairs),
        ("tasks", wanted.tasks, tasks, tuple(experiment.finetuning.tasks)),
    ):
        # Without any fine-tuning task, the fine-tuning part of the score counts as 0. This is allowed.
        if not set(names) & set(there) and (there or key == "suites"):
            ends = tuple(one.removeprefix(prefix) for one in names)
            known = sorted({one.removesuffix(end) for one in there for end in ends if one.endswith(end)})
            known = [one for one in known if not one.endswith("_fast")]
            expected = f"expected {' or '.join(map(repr, known))}" if known else "the submission would be empty"
            listed = f"{', '.join(names[:3])}, ..."
            problems.add(f"{where}: {kind}.{key}: got {prefix!r}, but the experiment has none of {listed}: {expected}")

"""The run that an experiment submits to BabyLM's leaderboard, and the checks of its suites and tasks."""

from typing import TYPE_CHECKING

from hatchery.analysis.babylm_scores import RULES, TASKS, suites_of
from hatchery.errors import ConfigError
from hatchery.settings.problems import Problems, alternatives

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Submission
    from hatchery.experiment.project import Project
    from hatchery.experiment.seeded_run import SeededRun


def submitted_run(project: "Project", name: str) -> "SeededRun":
    """The run that an experiment with `submission` hands in. Raises ConfigError for an unknown run or seed."""
    block, where = project.experiment(name), f"{project.place('experiment', name)}: submission"
    wanted = block.submission
    assert wanted is not None
    budgeted = (run for run, entry in block.runs.items() if entry.pretraining.marks)
    run = wanted.run or next(budgeted, next(iter(block.runs)))
    if run not in block.runs:
        raise ConfigError(f"{where}.run: got {run!r}, no such run{alternatives(run, block.runs)}")
    seeds = block.runs[run].seeds
    if wanted.seed not in (None, *seeds):
        raise ConfigError(f"{where}.seed: got {wanted.seed}, expected a seed of {run!r}: {', '.join(map(str, seeds))}")
    return next(one for one in project.seeded_runs(name) if one.model == run and wanted.seed in (None, one.seed))


def suite_names(wanted: "Submission") -> list[str]:
    """The suites of a submission by the rules of its edition."""
    return [f"{wanted.suites}_{suite}" for part in RULES[wanted.edition].suites for suite in suites_of(part)]


def check_submission(project: "Project", name: str) -> None:
    """Raise ConfigError for a submission of an unknown run, or without any of the suites or tasks that it names."""
    experiment, where = project.experiment(name), project.place("experiment", name)
    wanted, problems = experiment.submission, Problems()
    if wanted is None:
        return
    with problems.collecting():
        submitted_run(project, name)
    for key, prefix, names, there in (
        ("suites", wanted.suites, suite_names(wanted), experiment.minimal_pairs),
        ("tasks", wanted.tasks, [f"{wanted.tasks}_{task}" for task in TASKS], tuple(experiment.finetuning.tasks)),
    ):
        # Fine-tuning may be omitted as a whole: its part then counts 0.
        if not set(names) & set(there) and (there or key == "suites"):
            ends = tuple(one.removeprefix(prefix) for one in names)
            known = sorted({one.removesuffix(end) for one in there for end in ends if one.endswith(end)})
            known = [one for one in known if not one.endswith("_fast")]
            expected = f"expected {' or '.join(map(repr, known))}" if known else "the submission would be empty"
            listed = f"{', '.join(names[:3])}, ..."
            problems.add(
                f"{where}: submission.{key}: got {prefix!r}, but the experiment has none of {listed}: {expected}"
            )
    problems.raise_any()

"""The stage `summarise`: write a summary of the tidy table of measurements, in up to five formats."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.settings import OTHER, SummarySettings, asked_tasks, baseline_runs, published_of
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import write_checksums
from hatchery.experiment.paper_tables import published_files
from hatchery.rendering.escaping import readable
from hatchery.runner import OutputPath
from hatchery.stage import Stage
from hatchery.training.objectives import DEFAULT_TASK

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project


def summary_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the summary settings of an experiment or a study."""
    blocks = [project.experiment(part) for part in project.members(experiment)]
    objectives = project.for_members(experiment, lambda part: _other_objectives(project, project.experiment(part)))
    return {
        "experiment": experiment,
        "runs": project.shown_runs(experiment),
        "suites": _each_once(block.minimal_pairs for block in blocks),
        "tasks": _each_once(block.finetuning.tasks for block in blocks),
        "baselines": list(
            project.for_members(experiment, lambda part: dict.fromkeys(project.experiment(part).baselines))
        ),
        "published": published_of(project, experiment),
        "objectives": objectives,
    }


def _other_objectives(project: "Project", experiment: "Experiment") -> dict[str, str]:
    """Return, by model, the prediction task of each model whose perplexity is not that of the default task (prediction
    of masked tokens).

    External models are included only if the experiment evaluates held-out text. Their prediction task is a text that
    begins with OTHER and names the architecture.
    """
    others = {run: task for run, task in asked_tasks(experiment).items() if task != DEFAULT_TASK}
    measured = experiment.baselines if experiment.perplexity.splits else ()
    return others | {name: f"{OTHER} {readable(project.baseline(name).architecture)}" for name in measured}


def _each_once(lists: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))


@Stage(
    version=1,
    settings=summary_settings,
    inputs=lambda of, project, experiment: {
        "measurements": of("collect_measurements", "measurements"),
        "published": published_files(project, experiment),
    },
    outputs={
        "csv": "results/{experiment}/summary.csv",
        "parquet": "results/{experiment}/summary.parquet",
        "markdown": "results/{experiment}/summary.md",
        "text": "results/{experiment}/summary.txt",
        "latex": "results/{experiment}/summary.tex",
        "notes": "results/{experiment}/summary_notes.json",
        "checksums": "results/{experiment}/summary.sha256",
        "notes_checksums": "results/{experiment}/summary_notes.sha256",
    },
    reported={"text": ("{experiment}", "Scores"), "csv": ("{experiment}", "Scores")},
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=10,
)
def summarise(
    settings: SummarySettings,
    measurements: Path,
    published: Sequence[Path],
    output: Path,
    parquet: OutputPath | None = None,
    markdown: OutputPath | None = None,
    text: OutputPath | None = None,
    latex: OutputPath | None = None,
    notes: OutputPath | None = None,
) -> None:
    """Write the summary of an experiment or a study to `output` (CSV) and in the other requested formats.

    Checksums of the written files are in files with the suffix `.sha256` in the same folder; readers verify these
    checksums. Nothing is written if the table `measurements` is damaged. Raises ConfigError, ManifestError or
    EvaluationError, which names the faulty file.
    """
    from hatchery.analysis.published_values import chosen_values
    from hatchery.analysis.summary import SUMMARISED_LEVELS, summarised
    from hatchery.analysis.summary_rows import write_csv, write_parquet
    from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame
    from hatchery.views.summary_latex import latex_summary
    from hatchery.views.summary_notes import notes_json, notes_of
    from hatchery.views.summary_text import markdown_summary, text_summary

    values = chosen_values(settings.published, published, "published")
    runs = (*settings.runs, *baseline_runs(settings.baselines, settings.runs))
    measured = read_frame(measurements, MEASUREMENTS, run=[run.name for run in runs], level=SUMMARISED_LEVELS)
    summary = summarised(settings, measured, values)
    if parquet is not None:
        write_parquet(parquet, summary.rows)
    if markdown is not None:
        write_text(markdown, markdown_summary(summary))
    if text is not None:
        write_text(text, text_summary(summary))
    if latex is not None:
        write_text(latex, latex_summary(summary))
    if notes is not None:
        write_text(notes, notes_json(notes_of(summary)))
        write_checksums([notes])
    write_csv(output, summary.rows)
    write_checksums([output, *(path for path in (parquet, markdown, text, latex) if path is not None)])

"""The stage `collect_measurements`: everything that the runs of an experiment wrote, as four tidy tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.settings import CollectSettings, runs_of
from hatchery.evaluation.settings import ALC_STEPS, translated_runs
from hatchery.stage import Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def collect_settings(project: "Project", experiment: str) -> dict[str, object]:
    """The tidy tables of an experiment."""
    block = project.experiment(experiment)
    chosen, translated = block.translation, translated_runs(block.translation, block.runs)
    untranslated = [run for run in block.runs if run not in translated]
    return {
        "experiment": experiment,
        "runs": runs_of(project, experiment),
        "suites": block.minimal_pairs,
        "tasks": list(block.finetuning.tasks),
        "perplexity": bool(block.perplexity.splits),
        "baselines": block.baselines,
        # Only where there are such, so that other experiments stay as they are.
        **({"translation": True} if chosen.tests else {}),
        **({"untranslated": untranslated} if chosen.tests and untranslated else {}),
        **({"alc_steps": chosen.alc_steps} if chosen.alc_steps != ALC_STEPS else {}),
    }


@Stage(
    version=6,
    settings=collect_settings,
    inputs=lambda results, experiment: {
        "pretraining": results.pretrained(experiment),
        "minimal_pairs": results.minimal_pairs(experiment),
        "finetuning": results.finetuned(experiment),
        "perplexity": results.perplexities(experiment),
        "translation": results.translated(experiment),
        "baseline": results.baselines(experiment),
        "tokens": results.tokens(experiment),
    },
    environment="analysis",
    sort="local",
    memory_mb=2000,
    minutes=30,
)
def collect_measurements(
    settings: CollectSettings,
    pretraining: Mapping[str, Path],
    minimal_pairs: Mapping[str, Path],
    baseline: Mapping[str, Path],
    finetuning: Mapping[str, Path],
    perplexity: Mapping[str, Path],
    translation: Mapping[str, Path],
    tokens: Path | None,
    output: Path,
) -> None:
    """Write the tidy tables of the experiment of `settings`: measurements to `output`, the others beside it.

    Manifests of minimal pairs are called `RUN:SUITE`, those of fine-tuning `RUN:TASK`, all others like their run or
    baseline. `tokens` is that of the shards that the runs were trained on.

    Raises ConfigError when the inputs are not those that the settings ask for, ManifestError when a file is not what
    its manifest says or an evaluation belongs to another model, EvaluationError when a table is invalid. Until
    everything but the curves was read, nothing is written.
    """
    from hatchery.analysis.collect_measurements import collect

    inputs = {"pretraining": pretraining, "minimal_pairs": minimal_pairs, "finetuning": finetuning}
    inputs |= {"perplexity": perplexity, "translation": translation, "baseline": baseline}
    collect(settings, inputs, tokens, output)

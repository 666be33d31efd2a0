"""All measurements of an experiment, from the manifests that the settings ask for: no more and no fewer."""

from collections.abc import Mapping
from pathlib import Path

from hatchery.analysis.finetuning_measurements import finetuning_measurements, with_distinct_tasks
from hatchery.analysis.measurements import (
    Measurement,
    development_measurements,
    minimal_pair_measurements,
    perplexity_measurements,
    read_verified,
    ties_correct_measurements,
)
from hatchery.analysis.settings import (
    SeededRun,
    SummarySettings,
    baseline_runs,
    match_evaluations,
    match_runs,
    runs_by_name,
)
from hatchery.errors import ConfigError, ManifestError
from hatchery.storage.manifests import Manifest


def read_measurements(
    settings: SummarySettings,
    pretraining: Mapping[str, Path],
    minimal_pairs: Mapping[str, Path],
    finetuning: Mapping[str, Path],
    perplexity: Mapping[str, Path] | None = None,
) -> list[Measurement]:
    """The measurements behind manifests named `CELL`, `CELL:SUITE` (or `BASELINE:SUITE`), `CELL:TASK` and `CELL`.

    Raises ConfigError when the inputs are not those that the settings ask for, ManifestError when a file is not what
    its manifest says or an evaluation belongs to another model, EvaluationError when a table is invalid.
    """
    runs = runs_by_name(settings.runs)
    models = {
        name: read_verified(path) for name, path in match_runs(pretraining, settings.runs, "--pretraining").items()
    }
    measurements = [m for name, model in models.items() for m in development_measurements(runs[name], model)]
    for name, path in _perplexity_inputs(settings, perplexity or {}).items():
        measurements += perplexity_measurements(runs[name], _evaluation_of(path, models[name]))
    measurements += _minimal_pairs(settings, models, minimal_pairs)
    tuned: list[Measurement] = []
    for (name, task), path in match_evaluations(finetuning, settings.runs, settings.tasks, "--finetuning").items():
        tuned += finetuning_measurements(runs[name], task, _evaluation_of(path, models[name]))
    return measurements + with_distinct_tasks(tuned)


def _perplexity_inputs(settings: SummarySettings, paths: Mapping[str, Path]) -> dict[str, Path]:
    if settings.perplexity:
        return match_runs(paths, settings.runs, "--perplexity")
    if paths:
        raise ConfigError(f"--perplexity: got {', '.join(sorted(paths))}, but the settings ask for no perplexity")
    return {}


def _minimal_pairs(
    settings: SummarySettings, models: Mapping[str, Manifest], paths: Mapping[str, Path]
) -> list[Measurement]:
    """Of the experiment's models and of the baselines, which no model of the experiment vouches for."""
    scored = (*settings.runs, *baseline_runs(settings.baselines, settings.runs))
    runs = runs_by_name(scored)
    by_suite: dict[str, dict[SeededRun, Manifest]] = {suite: {} for suite in settings.suites}
    for (name, suite), path in match_evaluations(paths, scored, settings.suites, "--minimal-pairs").items():
        model = models.get(name)
        by_suite[suite][runs[name]] = read_verified(path) if model is None else _evaluation_of(path, model)
    measurements = []
    for suite, manifests in by_suite.items():
        for run, manifest in manifests.items():
            measurements += minimal_pair_measurements(run, suite, manifest)
        measurements += ties_correct_measurements(manifests, suite)
    return measurements


def _evaluation_of(path: Path, model: Manifest) -> Manifest:
    manifest = read_verified(path)
    if model.digest not in manifest.inputs.values():
        raise ManifestError(f"{path}: this evaluation was not made from the model of {model.path}; run it again")
    return manifest

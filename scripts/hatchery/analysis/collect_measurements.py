"""The `collect_measurements` stage: everything that the runs of an experiment wrote, as four tidy tables.

The only stage that opens the outputs of single pretrainings and evaluations; what comes after it reads the tables
(`read_tables`). It takes the manifests that the settings ask for, no more and no fewer. Curves are written run by run,
so memory grows with the evaluations alone.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from hatchery.analysis.finetuning_measurements import finetuning_measurements, with_distinct_tasks
from hatchery.analysis.measurements import (
    development_measurements,
    learning_measurements,
    minimal_pair_measurements,
    perplexity_measurements,
    translation_measurements,
)
from hatchery.analysis.pretrained_run import imported_run, pretrained_run
from hatchery.analysis.read_tables import WEIGHTS_FILE, probe_weights
from hatchery.analysis.settings import CollectSettings, baseline_runs, match_evaluations, match_runs, runs_by_name
from hatchery.analysis.tidy_tables import CURVES, LAYERS, MEASUREMENTS, RUNS, Row, growing, write_rows
from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.errors import ConfigError, ManifestError
from hatchery.evaluation.trained_objective import objective_of_model
from hatchery.experiment.seeded_run import SeededRun
from hatchery.modeling.count_distributions import smoothed_distribution
from hatchery.tokenization.documents import DEVELOPMENT_SPLIT, TRAINING_SPLIT
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.objective import ObjectiveKeys
from hatchery.training.objectives import objective_of

Inputs = Mapping[str, Mapping[str, Path]]
"""Manifests of `pretraining`, `perplexity` and `translation` by `RUN`, of `minimal_pairs` by `RUN:SUITE`, of
`finetuning` by `RUN:TASK`, and of `baseline` by the names of the imported models, which are runs, too."""


class UnigramLosses:
    """The losses of the unigram distribution of a corpus, each computed once: a blind guess on held-out text.

    Every token has the share of its type among the targets of the training text, one added to each count: what a model
    learns long before any grammar ("A Natural Bias for Language Generation Models", Section 1).
    """

    def __init__(self, tokens: Manifest | None) -> None:
        """`tokens` is that of the token shards of the corpus; without it nothing is known."""
        self._tokens = tokens
        self._counts: dict[tuple[str, str, str], np.ndarray] = {}

    def loss(self, made: Manifest, objective: ObjectiveKeys, split: str) -> float | None:
        """Nats per token of a split that a model of an objective can be asked for.

        None where `made`, a training or an evaluation, read other shards. Raises what `Objective.target_counts`
        raises.
        """
        if self._tokens is None or made.inputs.get("tokens") != self._tokens.digest:
            return None
        training, held_out = (self._counted(one, objective) for one in (TRAINING_SPLIT, split))
        return float(-(held_out @ np.log(smoothed_distribution(training))) / held_out.sum())

    def _counted(self, split: str, objective: ObjectiveKeys) -> np.ndarray:
        assert self._tokens is not None
        # Models that hide other shares of the tokens are asked for the same ones in the mean.
        key = (split, objective.task, getattr(objective, "direction", ""))
        if key not in self._counts:
            self._counts[key] = objective_of(objective).target_counts(TokenShards.open(self._tokens.path, split))
        return self._counts[key]


def collect(settings: CollectSettings, inputs: Inputs, shards: Path | None, output: Path) -> None:
    """Write the tidy tables of an experiment; see the stage `collect_measurements`.

    `shards` is the manifest of the tokens that the runs were trained on.
    """
    baselines = baseline_runs(settings.baselines, settings.runs)
    named = runs_by_name((*settings.runs, *baselines))
    tokens = None if shards is None else read_manifest(shards)
    unigram = UnigramLosses(tokens)
    words_per_token = None if tokens is None else _words_per_token(tokens)
    trained: dict[str, Manifest] = {}
    places = {name: _place(settings.experiment, run) for name, run in named.items()}
    runs: list[Row] = []
    layers: list[Row] = []
    measurements: list[Row] = []
    milestones: dict[tuple[str, int], Row] = {}
    taken: dict[int, tuple[str, int]] = {}
    with growing(CURVES.beside(output), CURVES) as curves:
        for name, path in match_runs(inputs["pretraining"], settings.runs, "--pretraining").items():
            trained[name] = manifest = read_manifest(path)
            run, place = pretrained_run(manifest, words_per_token), places[name]
            curves.add([place | row for row in run.curve])
            layers += [place | row for row in run.layers]
            blind = None
            if run.facts["development_loss"] is not None:
                blind = unigram.loss(manifest, objective_of_model(manifest), DEVELOPMENT_SPLIT)
            label = named[name].label or named[name].model
            milestones |= {(manifest.digest, step): facts for step, facts in run.milestones.items()}
            if run.taken is not None:
                taken[len(runs)] = run.taken
            runs.append(place | {"label": label, "unigram_loss": blind} | run.facts)
            measurements += development_measurements(place, manifest, run.curve, blind)
            measurements += learning_measurements(place, manifest, run.curve, settings.alc_steps)
        for name, path in _of_every_run(bool(baselines), inputs, "baseline", baselines).items():
            trained[name] = manifest = read_manifest(path)
            runs.append(places[name] | {"label": name} | imported_run(manifest))
        evaluated, probes = _evaluations(settings, inputs, named, places, trained, unigram)
        measurements += evaluated
        layers += probes
    for index, milestone in taken.items():
        # How long the run of a milestone took is not known of it.
        known = milestones.get(milestone, {})
        runs[index] |= {name: value for name, value in known.items() if name not in ("manifest", "seconds", "day")}
    # Together only once all inputs are sound.
    write_rows(RUNS.beside(output), RUNS, runs)
    write_rows(LAYERS.beside(output), LAYERS, layers)
    write_rows(output, MEASUREMENTS, measurements)


def _words_per_token(tokens: Manifest) -> float | None:
    """Of the training split; None where it has no tokens."""
    split = tokens.measures.get("splits", {}).get("train", {})
    return split["words"] / split["tokens"] if split.get("tokens") else None


def _place(experiment: str, run: SeededRun) -> Row:
    """The columns that say which run a row is of."""
    seed = None if run.is_baseline else run.seed
    return {"experiment": experiment, "model": run.model, "run": run.name, "seed": seed}


def _evaluations(
    settings: CollectSettings,
    inputs: Inputs,
    named: Mapping[str, SeededRun],
    places: Mapping[str, Row],
    trained: Mapping[str, Manifest],
    unigram: UnigramLosses,
) -> tuple[list[Row], list[Row]]:
    """The measurements of all evaluations, and the layer weights of probes, those of a run together."""
    scored = list(named.values())
    measurements: list[Row] = []
    translating = [run for run in settings.runs if run.model not in settings.untranslated]
    for name, path in _of_every_run(settings.perplexity, inputs, "perplexity", scored).items():
        made = _evaluation_of(path, trained[name])
        if named[name].is_baseline:
            # Its own tokenizer's tokens, whose frequencies nobody counted.
            measurements += perplexity_measurements(places[name], made)
        else:
            objective = objective_of_model(trained[name])
            measurements += perplexity_measurements(places[name], made, partial(unigram.loss, made, objective))
    for name, path in _of_every_run(settings.translation, inputs, "translation", translating).items():
        measurements += translation_measurements(places[name], _evaluation_of(path, trained[name]))
    pairs = match_evaluations(inputs["minimal_pairs"], scored, settings.suites, "--minimal-pairs")
    for (name, suite), path in pairs.items():
        measurements += minimal_pair_measurements(places[name], suite, _evaluation_of(path, trained[name]))
    tuned: list[Row] = []
    probes: dict[str, list[Row]] = {}
    jobs = match_evaluations(inputs["finetuning"], scored, settings.tasks, "--finetuning")
    for (name, task), path in jobs.items():
        manifest = _evaluation_of(path, trained[name])
        tuned += finetuning_measurements(places[name], task, manifest)
        if manifest.listed(WEIGHTS_FILE):
            probes.setdefault(name, []).extend(places[name] | row for row in probe_weights(task, manifest))
    return measurements + with_distinct_tasks(tuned), [row for rows in probes.values() for row in rows]


def _of_every_run(wanted: bool, inputs: Inputs, what: str, runs: Sequence[SeededRun]) -> dict[str, Path]:
    """The manifests of what all runs have, or none has."""
    if wanted:
        return match_runs(inputs[what], runs, f"--{what}")
    if paths := inputs[what]:
        raise ConfigError(f"--{what}: got {', '.join(sorted(paths))}, but the settings ask for no {what}")
    return {}


def _evaluation_of(path: Path, model: Manifest) -> Manifest:
    manifest = read_manifest(path)
    if model.digest not in manifest.inputs.values():
        raise ManifestError(f"{path}: this evaluation was not made from the model of {model.path}; run it again")
    return manifest

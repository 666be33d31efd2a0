"""The `collect_measurements` stage: everything that the runs of an experiment wrote, as four tidy tables.

The only stage that opens the outputs of single pretrainings and evaluations; what comes after it reads the tables
(`read_tables`). Which rows an evaluation has, the record of its kind says. Curves are written run by run, so memory
grows with the evaluations alone.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from hatchery.analysis.measurements import development_measurements, learning_measurements
from hatchery.analysis.pretrained_run import imported_run, pretrained_run
from hatchery.analysis.settings import CollectSettings, runs_by_name
from hatchery.analysis.tidy_tables import CURVES, LAYERS, MEASUREMENTS, RUNS, growing, write_rows
from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.errors import ManifestError
from hatchery.evaluation.evaluation import Evaluated, Result, TidyRow, evaluations
from hatchery.evaluation.trained_objective import objective_of_model
from hatchery.experiment.seeded_run import SeededRun
from hatchery.modeling.count_distributions import smoothed_distribution
from hatchery.tokenization.documents import DEVELOPMENT_SPLIT, TRAINING_SPLIT
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.objective import ObjectiveKeys
from hatchery.training.objectives import objective_of


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


def collect(
    settings: CollectSettings,
    models: Mapping[str, Path],
    evaluated: Mapping[str, Path],
    shards: Path | None,
    output: Path,
) -> None:
    """Write the tidy tables of an experiment; see the stage `collect_measurements`.

    `models` and `evaluated` are its inputs `model` and `evaluation`, `shards` is the manifest of the tokens.
    """
    named = runs_by_name(settings.runs)
    tokens = None if shards is None else read_manifest(shards)
    unigram = UnigramLosses(tokens)
    trained = {name: read_manifest(models[name]) for name in named}
    places = {name: _place(settings.experiment, run) for name, run in named.items()}
    runs: list[TidyRow] = []
    layers: list[TidyRow] = []
    measurements: list[TidyRow] = []
    milestones: dict[tuple[str, str], TidyRow] = {}
    taken: dict[int, tuple[str, str]] = {}
    with growing(CURVES.beside(output), CURVES) as curves:
        for name, manifest in trained.items():
            place, label = places[name], named[name].label or named[name].model
            if named[name].is_baseline:
                runs.append(place | {"label": label} | imported_run(manifest))
                continue
            if training := named[name].milestone_of:
                # Behind the runs, so theirs is known. How long it took to come there is not.
                known = milestones.get((trained[training].digest, named[name].milestone), {})
                told = {"label": label, "manifest": manifest.digest, "seconds": None, "day": None}
                own = {fact: value for fact, value in manifest.measures.items() if fact in RUNS.names}
                runs.append(place | {"initial": ""} | own | known | told)
                continue
            run = pretrained_run(manifest)
            curves.add([place | row for row in run.curve])
            layers += [place | row for row in run.layers]
            blind = None
            if run.facts["development_loss"] is not None:
                blind = unigram.loss(manifest, objective_of_model(manifest), DEVELOPMENT_SPLIT)
            milestones |= {(manifest.digest, milestone): facts for milestone, facts in run.milestones.items()}
            if run.taken is not None:
                taken[len(runs)] = run.taken
            runs.append(place | {"label": label, "unigram_loss": blind} | run.facts)
            found = development_measurements(run.curve, blind) + learning_measurements(run.curve, settings.alc_steps)
            measurements += [_whole(place, "pretraining", row, manifest) for row in found]
        for kind, evaluation in evaluations().items():
            rows: list[TidyRow] = []
            for result, path in _of_kind(kind, evaluated):
                model, place = trained[result.run], places[result.run]
                one = Evaluated(_evaluation_of(path, model), model, result.name)
                if not named[result.run].is_baseline:
                    # Of others, nobody counted how frequent their tokenizers' tokens are.
                    loss = partial(unigram.loss, one.manifest, objective_of_model(model))
                    one = replace(one, unigram_loss=loss)
                rows += [_whole(place, kind, row, one.manifest) for row in evaluation.rows(one)]
                layers += [place | row for row in evaluation.layers(one)]
            measurements += evaluation.together(rows)
    for index, milestone in taken.items():
        # How long the run of a milestone took is not known of it.
        known = milestones.get(milestone, {})
        runs[index] |= {name: value for name, value in known.items() if name not in ("manifest", "seconds", "day")}
    # Together only once all inputs are sound.
    write_rows(RUNS.beside(output), RUNS, runs)
    write_rows(LAYERS.beside(output), LAYERS, layers)
    write_rows(output, MEASUREMENTS, measurements)


def _of_kind(kind: str, evaluated: Mapping[str, Path]) -> list[tuple[Result, Path]]:
    found = [(Result.of_key(key), path) for key, path in evaluated.items()]
    return [(result, path) for result, path in found if result.kind == kind]


def _whole(place: TidyRow, kind: str, row: TidyRow, manifest: Manifest) -> TidyRow:
    """A row of measurements with the columns that a kind leaves to us."""
    return {**place, "kind": kind, **row, "manifest": manifest.digest}


def _place(experiment: str, run: SeededRun) -> TidyRow:
    """The columns that say which run a row is of."""
    seed = None if run.is_baseline else run.seed
    return {"experiment": experiment, "model": run.model, "run": run.name, "seed": seed}


def _evaluation_of(path: Path, model: Manifest) -> Manifest:
    manifest = read_manifest(path)
    if model.digest not in manifest.inputs.values():
        raise ManifestError(f"{path}: this evaluation was not made from the model of {model.path}; run it again")
    return manifest

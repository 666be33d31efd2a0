"""Write the four tidy tables with all results of an experiment's runs, for the stage `collect_measurements`.

Summaries, and most tables, figures and analyses, read only these tables (`read_tables`). Outputs of single runs are
read by analyses of single items, such as minimal pairs, and by some parts of the page. Each kind of evaluation defines
its own rows. Learning curves are written one run at a time, so only one curve is in memory. The rows of all evaluations
are in memory.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from hatchery.analysis.measurements import (
    DEVELOPMENT_BITS,
    development_basis,
    development_measurements,
    learning_measurements,
)
from hatchery.analysis.pretrained_run import PretrainedRun, imported_run, pretrained_run
from hatchery.analysis.settings import CollectSettings, runs_by_name
from hatchery.analysis.tidy_tables import CURVES, LAYERS, MEASUREMENTS, RUNS, growing, write_rows
from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.errors import ManifestError
from hatchery.evaluation.basis import digest_of, shortened
from hatchery.evaluation.evaluation import Evaluated, Result, TidyRow
from hatchery.evaluation.kinds import evaluations
from hatchery.evaluation.trained_objective import objective_of_model
from hatchery.experiment.seeded_run import SeededRun
from hatchery.modeling.count_distributions import smoothed_distribution
from hatchery.tokenization.documents import DEVELOPMENT_SPLIT, TRAINING_SPLIT, read_batches, shards_of, split_sentences
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.objective import ObjectiveKeys
from hatchery.training.objectives import objective_of
from hatchery.units import bits_per_byte


class HeldOutText:
    """Properties of a corpus's held-out text: its size, its name, and the loss of a blind guess. Each is computed once.

    The blind guess is the unigram distribution, estimated from the targets of the training text with add-one smoothing.
    A model learns this distribution long before any grammar ("A Natural Bias for Language Generation Models", Section
    1).
    """

    def __init__(self, tokens: Manifest | None, corpus: Manifest | None = None) -> None:
        """`tokens` is the manifest of the corpus's token shards, and `corpus` the manifest of its documents. Each may
        be None if unknown.
        """
        self._tokens, self._corpus = tokens, corpus
        self._bytes: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._counts: dict[tuple[str, ...], np.ndarray] = {}

    def n_bytes(self, made: Manifest, split: str) -> int | None:
        """Return the number of UTF-8 bytes in the documents of a split. The sentences of a document are joined by
        spaces.

        `made` is the manifest of an evaluation. Return None if the documents are unknown, or if the evaluation has read
        other documents.
        """
        if self._corpus is None or self._corpus.digest not in made.inputs.values():
            return None
        if split not in self._bytes:
            shards = shards_of(self._corpus, [split])
            for shard in shards:
                self._corpus.check(shard)
            texts = (text for shard in shards for batch in read_batches(shard.path) for text in batch.texts)
            self._bytes[split] = sum(len(" ".join(split_sentences(text)[0]).encode()) for text in texts)
        return self._bytes[split]

    def tokens_per_byte(self, made: Manifest, objective: ObjectiveKeys, split: str) -> float | None:
        """Return the number of predicted tokens of a split, divided by the number of bytes of its text.

        `made` is the manifest of a training or evaluation. Return None if bits per byte are undefined, if the token
        shards of the corpus are unknown, or if they are not an input of `made`.
        """
        if self._tokens is None or made.inputs.get("tokens") != self._tokens.digest:
            return None
        # Bits per byte are defined only if all predicted tokens are tokens of the text. An evaluation with `masking:
        # common` masks only tokens of the text. A training's manifest has no key `masking`: its development loss uses
        # the masks of the training objective.
        common = made.settings.get("masking") == "common" and objective.kinds[0] == "masked"
        if not (common or objective.predicts_text_alone):
            return None
        return TokenShards.open(self._tokens.path, split).tokens_per_byte(self._counted(split, objective))

    def name(self, made: Manifest, split: str) -> str:
        """Return a name for the documents of a split that a training or evaluation has read. `made` is the manifest of
        the training or evaluation.

        Equal names mean equal documents. If the documents are known, their name depends neither on the tokenizer nor on
        the training text. The name is empty if `made` has neither a corpus nor token shards as input.
        """
        if self._corpus is not None and self._texts & set(made.inputs.values()):
            if split not in self._names:
                self._names[split] = digest_of(shard.sha256 for shard in shards_of(self._corpus, [split]))
            return self._names[split]
        return shortened(next((made.inputs[name] for name in ("corpus", "tokens") if name in made.inputs), None))

    @cached_property
    def _texts(self) -> set[str]:
        """Return the digests of the manifests of the corpus and of its token shards."""
        found = set() if self._corpus is None else {self._corpus.digest}
        is_of_them = self._tokens is not None and bool(found & set(self._tokens.inputs.values()))
        return found | ({self._tokens.digest} if self._tokens is not None and is_of_them else set())

    def loss(self, made: Manifest, objective: ObjectiveKeys, split: str) -> float | None:
        """Return the loss on a split, in nats per token that the objective predicts, if every prediction is the unigram
        distribution of the training text (the blind guess).

        `made` is the manifest of a training or evaluation. Return None if the token shards of the corpus are unknown,
        or if they are not an input of `made`. Raises the errors of `Objective.target_counts`.
        """
        if self._tokens is None or made.inputs.get("tokens") != self._tokens.digest:
            return None
        training, held_out = (self._counted(one, objective) for one in (TRAINING_SPLIT, split))
        return float(-(held_out @ np.log(smoothed_distribution(training))) / held_out.sum())

    def _counted(self, split: str, objective: ObjectiveKeys) -> np.ndarray:
        assert self._tokens is not None
        # The key does not contain the proportion of masked tokens. Masks are random, so this proportion does not change
        # the expected distribution of predicted tokens.
        ends = "ends" if objective.appends_end_token else ""
        key = (split, objective.asked_as, ends, getattr(objective, "direction", ""))
        if key not in self._counts:
            self._counts[key] = objective_of(objective).target_counts(TokenShards.open(self._tokens.path, split))
        return self._counts[key]


def collect(
    settings: CollectSettings,
    models: Mapping[str, Path],
    evaluated: Mapping[str, Path],
    shards: Path | None,
    documents: Path | None,
    output: Path,
) -> None:
    """Write the tidy tables of an experiment.

    `models` and `evaluated` are the inputs `model` and `evaluation` of the stage `collect_measurements`. `shards` is
    the manifest of the token shards, and `documents` is the manifest of the corpus.
    """
    named = runs_by_name(settings.runs)
    text = HeldOutText(*(None if path is None else read_manifest(path) for path in (shards, documents)))
    trained = {name: read_manifest(models[name]) for name in named}
    places = {name: _place(settings.experiment, run) for name, run in named.items()}
    runs: list[TidyRow] = []
    layers: list[TidyRow] = []
    measurements: list[TidyRow] = []
    milestones: dict[tuple[str, str], TidyRow] = {}
    taken: dict[int, tuple[str, str]] = {}
    with growing(CURVES.in_folder_of(output), CURVES) as curves:
        for name, manifest in trained.items():
            place, label = places[name], named[name].label or named[name].model
            if named[name].is_baseline:
                runs.append(place | {"label": label} | imported_run(manifest))
                continue
            if training := named[name].milestone_of:
                # The list contains a training run before its milestones, so the run has already stored the columns of
                # each milestone in `milestones`. The training time until a milestone is unknown.
                known = milestones.get((trained[training].digest, named[name].milestone), {})
                unshared = {"label": label, "manifest": manifest.digest, "seconds": None, "day": None}
                own = {fact: value for fact, value in manifest.measures.items() if fact in RUNS.names}
                runs.append(place | {"initial": ""} | own | known | unshared)
                continue
            run = pretrained_run(manifest)
            blind = per_byte = None
            if run.facts["development_loss"] is not None:
                objective = objective_of_model(manifest)
                blind = text.loss(manifest, objective, DEVELOPMENT_SPLIT)
                per_byte = text.tokens_per_byte(manifest, objective, DEVELOPMENT_SPLIT)
                run = _with_bits_per_byte(run, per_byte)
            curves.add([place | row for row in run.curve])
            layers += [place | row for row in run.layers]
            milestones |= {(manifest.digest, milestone): facts for milestone, facts in run.milestones.items()}
            if run.taken is not None:
                taken[len(runs)] = run.taken
            runs.append(place | {"label": label, "unigram_loss": blind} | run.facts)
            bases = partial(development_basis, manifest, text.name(manifest, DEVELOPMENT_SPLIT))
            runs[-1]["development_basis"] = bases("loss_nats") if run.facts["development_loss"] is not None else ""
            found = development_measurements(run.curve, blind, per_byte)
            found += learning_measurements(run.curve, settings.alc_steps)
            found = [row | {"basis": bases(row["metric"])} for row in found]
            measurements += [_whole(place, "pretraining", row, manifest) for row in found]
        for kind, evaluation in evaluations().items():
            rows: list[TidyRow] = []
            for result, path in _of_kind(kind, evaluated):
                model, place = trained[result.run], places[result.run]
                one = Evaluated(evaluation_of(path, model), model, result.name)
                one = replace(one, text=partial(text.name, one.manifest))
                if named[result.run].is_baseline:
                    # External models have other tokenizers, so only the bytes of the text are counted for them.
                    one = replace(one, n_bytes=partial(text.n_bytes, one.manifest))
                else:
                    its = one.manifest, objective_of_model(model)
                    per_byte_of = partial(text.tokens_per_byte, *its)
                    one = replace(one, unigram_loss=partial(text.loss, *its), tokens_per_byte=per_byte_of)
                rows += [_whole(place, kind, row, one.manifest) for row in evaluation.rows(one)]
                layers += [place | row for row in evaluation.layers(one)]
            measurements += evaluation.together(rows)
    for index, milestone in taken.items():
        # Do not copy the training time of the whole run, because the time until the milestone is unknown.
        known = milestones.get(milestone, {})
        runs[index] |= {name: value for name, value in known.items() if name not in ("manifest", "seconds", "day")}
    # Write the tables only now, after all inputs were checked. The table of curves is written elsewhere.
    write_rows(RUNS.in_folder_of(output), RUNS, runs)
    write_rows(LAYERS.in_folder_of(output), LAYERS, layers)
    write_rows(output, MEASUREMENTS, measurements)


def _with_bits_per_byte(run: PretrainedRun, per_byte: float | None) -> PretrainedRun:
    """Return the run with development losses in bits per byte, given the number of tokens per byte. If this number is
    None, return the run unchanged.
    """
    if per_byte is None:
        return run

    def with_bits(row: TidyRow) -> TidyRow:
        loss = row.get("development_loss")
        return row | {DEVELOPMENT_BITS: None if loss is None else bits_per_byte(loss, per_byte)}

    milestones = {name: with_bits(facts) for name, facts in run.milestones.items()}
    return replace(run, facts=with_bits(run.facts), curve=[with_bits(row) for row in run.curve], milestones=milestones)


def _of_kind(kind: str, evaluated: Mapping[str, Path]) -> list[tuple[Result, Path]]:
    found = [(Result.of_key(key), path) for key, path in evaluated.items()]
    return [(result, path) for result, path in found if result.kind == kind]


def _whole(place: TidyRow, kind: str, row: TidyRow, manifest: Manifest) -> TidyRow:
    """Return a complete row of `measurements.parquet`: the columns `place` of the run, the kind of evaluation, the
    columns `row`, and the digest of the manifest of the evaluation.
    """
    return {**place, "kind": kind, **row, "manifest": manifest.digest}


def _place(experiment: str, run: SeededRun) -> TidyRow:
    """Return the columns with which rows of the tidy tables identify a run."""
    seed = None if run.is_baseline else run.seed
    return {"experiment": experiment, "model": run.model, "run": run.name, "seed": seed}


def evaluation_of(path: Path, model: Manifest) -> Manifest:
    """Read the manifest of an evaluation. Raises ManifestError if the evaluation was not made from `model`."""
    manifest = read_manifest(path)
    if model.digest not in manifest.inputs.values():
        raise ManifestError(
            f"{path}: this evaluation is not an evaluation of the model {model.path}; run the evaluation again"
        )
    return manifest

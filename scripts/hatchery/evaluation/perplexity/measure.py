"""One pretrained model on the held-out splits of token shards.

Writes perplexity.csv (a row per split) and the manifest; of a causal model words.csv
too, since its loss adds up to that of the text; where asked for, frequency.csv. The model is scored without dropout in
float32; the runtime values change the speed and, at most, the last bits of a loss.
"""

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest, StageRun, read_manifest
from hatchery.errors import EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.own_text import OwnText
from hatchery.evaluation.minimal_pairs.scoring import tokens_per_batch_for
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel, SentenceModel
from hatchery.evaluation.perplexity.rows import (
    FREQUENCY_FILE,
    PERPLEXITY_FILE,
    WORDS_FILE,
    FrequencyRow,
    SplitScore,
    WordScore,
)
from hatchery.evaluation.perplexity.scoring import (
    FrequencyTally,
    HeldOutText,
    batches,
    check_tokenizer,
    chosen_sequences,
    drawn_sentences,
    held_out_examples,
    pseudo_perplexity,
    score_batches,
    word_score,
)
from hatchery.evaluation.runtime import (
    compilation_in_use,
    compile_where_it_pays_,
    load_pretrained,
    load_sentence_model,
    prepare_device,
)
from hatchery.evaluation.settings import EvaluationRuntime, PerplexitySettings
from hatchery.evaluation.trained_objective import baseline_objective, measured_objective
from hatchery.progress import Progress
from hatchery.sanitize import csv_text
from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.objective import Objective

# Large enough to fill a GPU; the logits are made in smaller parts.
TOKENS_PER_BATCH = 16384


def measure(
    settings: PerplexitySettings,
    runtime: EvaluationRuntime,
    model: Path,
    tokens: Path | None,
    corpus: Manifest | None,
    run: StageRun,
) -> None:
    """Measure a model and write its perplexities; see the stage `measure_perplexity`."""
    trained = read_manifest(model)
    device = prepare_device(runtime.device, runtime.threads)
    # All splits are opened before the first is scored: an absent one should not be found out in the end.
    splits: list[HeldOutText]
    network: SentenceModel
    if tokens is not None:
        check_tokenizer(trained, read_manifest(tokens))
        splits = [TokenShards.open(tokens, split) for split in settings.splits]
        objective = measured_objective(settings, trained)
        before = objective.settings.predicted_before
        network = HatcheryModel(*load_pretrained(model, translates=True), device, predicted_before=before)
        tallies = _tallies(tokens, splits, settings, objective)
    else:
        network = load_sentence_model(model, device)
        objective = baseline_objective(settings, network.architecture)
        splits = _own_texts(network, corpus, settings, model)
        tallies = [None] * len(splits)
    started = time.monotonic()
    scores = [
        _score_split(shards, network, objective, settings, runtime, tally, model)
        for shards, tally in zip(splits, tallies, strict=True)
    ]
    seconds = max(time.monotonic() - started, 1e-9)
    write_text(run.add_output(run.folder / PERPLEXITY_FILE), _csv(SplitScore, scores))
    if objective.settings.causal:
        pairs = zip(scores, splits, strict=True)
        words = [found for score, shards in pairs if (found := word_score(score, shards)) is not None]
        write_text(run.add_output(run.folder / WORDS_FILE), _csv(WordScore, words))
    if width := settings.frequency_bin_nats:
        counted = zip(splits, tallies, strict=True)
        rows = [row for shards, tally in counted if tally is not None for row in tally.rows(shards.split, width)]
        write_text(run.add_output(run.folder / FREQUENCY_FILE), _csv(FrequencyRow, rows))
    for score in scores:
        run.measures[score.split] = {"sequences": score.sequences, "labelled_tokens": score.labelled_tokens}
    sequences = sum(score.sequences for score in scores)
    run.volatile |= {
        "sequences_per_second": round(sequences / seconds, 1),
        "device": str(device),
        "compile": compilation_in_use(network),
    }


def _score_split(
    shards: HeldOutText,
    model: SentenceModel,
    objective: Objective,
    settings: PerplexitySettings,
    options: EvaluationRuntime,
    tally: FrequencyTally | None,
    trained: Path,
) -> SplitScore:
    if shards.vocabulary_size > model.vocabulary_size:
        raise EvaluationError(
            f"{shards.manifest.path}: the shards have ids up to {shards.vocabulary_size - 1}, the model only "
            f"{model.vocabulary_size} embeddings: they do not belong together"
        )
    examples = held_out_examples(shards, settings, objective)
    chosen = chosen_sequences(examples, settings)
    budget = options.tokens_per_batch or TOKENS_PER_BATCH
    if not isinstance(model, HatcheryModel):
        # All logits of a batch are made at once.
        budget = tokens_per_batch_for(model, budget)
    compile_where_it_pays_(model, options.compile, len(chosen) * settings.sequence_length)
    where = f"{shards.manifest.path}: the split {shards.split!r}"

    def counted(progress: Progress) -> Iterator[tuple[int, dict[str, Tensor]]]:
        for rows, batch in batches(examples, chosen, settings.seed, budget):
            yield rows, batch
            progress.update(rows)

    with Progress(len(chosen), f"perplexity, {shards.split}", "sequences") as progress:
        score = score_batches(model, counted(progress), shards.split, tally)
    if score.labelled_tokens == 0:
        raise EvaluationError(f"{where}: none of the {score.sequences:,} sequences has a masked token; take more")
    if not math.isfinite(score.loss_nats):
        raise EvaluationError(f"{where}: the loss of {trained} is not finite: its weights are damaged")
    # Other models give every token its probability as it is.
    if settings.pseudo_perplexity_sentences == 0 or objective.settings.kinds[0] != "masked":
        return score
    longest = settings.sequence_length - 2
    sentences = drawn_sentences(shards, settings.pseudo_perplexity_sentences, settings.seed, longest)
    value = pseudo_perplexity(model, sentences, options.tokens_per_batch)
    return dataclasses.replace(score, pseudo_perplexity=value)


def _own_texts(
    model: SentenceModel, corpus: Manifest | None, settings: PerplexitySettings, where: Path
) -> list[HeldOutText]:
    """The splits as a model of others encodes them. Raises EvaluationError for a model of ours, or without corpus."""
    if corpus is None or not isinstance(model, BaselineModel):
        raise EvaluationError(f"{where}: a model of ours is measured on tokens, one of others on a corpus")
    if model.longest_input is not None and settings.sequence_length > model.longest_input:
        raise EvaluationError(
            f"{where}: perplexity.sequence_length: got {settings.sequence_length}, expected at most "
            f"{model.longest_input}, the longest input of this model"
        )
    return [OwnText(model, corpus, split) for split in settings.splits]


def _tallies(
    tokens: Path, splits: Sequence[HeldOutText], settings: PerplexitySettings, objective: Objective
) -> list[FrequencyTally | None]:
    """A tally for each split, by the frequencies in the training text; None where it is not asked for."""
    if settings.frequency_bin_nats is None:
        return [None] * len(splits)
    counts = objective.target_counts(TokenShards.open(tokens, TRAINING_SPLIT))
    return [FrequencyTally(counts) for _ in splits]


def _csv(schema: type, rows: Sequence[Any]) -> str:
    """The text of a table; its columns are the fields of a dataclass, and None is an empty field."""
    return csv_text([field.name for field in dataclasses.fields(schema)], map(dataclasses.astuple, rows))

"""Measure the perplexity of one pretrained model on held-out text.

`score` computes the result from a model, splits and settings. The stage opens model and splits, and writes the tables.
perplexity.csv has a row for each split. For a causal model, the sum of the token losses is the loss of the text, so
there is also words.csv with the loss per word. The model is scored without dropout in float32; the runtime settings
change the speed and, at most, the last bits of a loss.
"""

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hatchery.artifacts.manifests import Manifest, StageRun, read_manifest
from hatchery.errors import EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.own_text import own_text
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
from hatchery.evaluation.pretrained import ModelOfOthers, Pretrained
from hatchery.evaluation.runtime import (
    compilation_in_use,
    compile_where_it_pays_,
    open_trained,
    prepare_device,
)
from hatchery.evaluation.scores import Scores, Table, frame_of
from hatchery.evaluation.settings import EvaluationRuntime, PerplexitySettings
from hatchery.evaluation.trained_objective import asked_objective, baseline_objective, default_objective
from hatchery.progress import Progress
from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.objective import Objective

# Number of tokens per batch, large enough to use a whole GPU. The logits of a batch are computed in smaller parts.
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
    opened = open_trained(trained)
    device = prepare_device(runtime.device, runtime.threads)
    # Open all splits before the first split is scored, so that a missing split is reported early.
    if tokens is not None:
        check_tokenizer(trained, read_manifest(tokens))
        asked = asked_for_perplexity(opened, settings, device)
        splits: list[HeldOutText] = [TokenShards.open(tokens, split) for split in settings.splits]
        counts = None
        if settings.frequency_bin_nats is not None:
            counts = asked.objective.target_counts(TokenShards.open(tokens, TRAINING_SPLIT))
    else:
        asked, counts = asked_for_perplexity(opened, settings, device), None
        if corpus is None or not isinstance(asked.model, BaselineModel):
            raise EvaluationError(
                f"{model}: expected token shards for a model of Hatchery, or a corpus for an external model"
            )
        splits = [own_text(asked.model, corpus, split) for split in settings.splits]
    score(asked, splits, settings, runtime, counts).write(run)


@dataclass(frozen=True)
class AskedForPerplexity:
    """A language model, the objective that defines the model's prediction targets, and the name of the model in
    messages.
    """

    model: SentenceModel
    objective: Objective
    where: str


def asked_for_perplexity(opened: Pretrained, settings: PerplexitySettings, device: torch.device) -> AskedForPerplexity:
    """Return a model on `device` with the objective that defines its prediction targets on held-out text.

    Raises the ManifestError of `asked_objective`, and EvaluationError if `sequence_length` exceeds the model's longest
    input.
    """
    model: SentenceModel
    if not isinstance(opened, ModelOfOthers):
        is_common = settings.masking == "common"
        trained = opened.objective or (default_objective(opened.use) if is_common else None)
        objective = asked_objective(settings, trained, opened.where)
        before = objective.settings.predicted_before
        model = opened.asked_as(None, device, before)
    else:
        model = opened.asked(device)
        objective = baseline_objective(settings, model.architecture)
    if model.longest_input is not None and settings.sequence_length > model.longest_input:
        raise EvaluationError(
            f"{opened.where}: perplexity.sequence_length: got {settings.sequence_length}, expected at most "
            f"{model.longest_input}, the longest input of this model"
        )
    return AskedForPerplexity(model, objective, opened.where)


def score(
    asked: AskedForPerplexity,
    splits: Sequence[HeldOutText],
    settings: PerplexitySettings,
    runtime: EvaluationRuntime,
    target_counts: np.ndarray | None = None,
) -> Scores:
    """Score a model on splits of held-out text.

    The tables are perplexity.csv, words.csv if the model is causal, and frequency.csv if `frequency_bin_nats` is set.
    For frequency.csv, `target_counts` int64 [V] is the number of times that each token is a target in the training
    text; if it is None, the table has no rows. Raises EvaluationError for a split without text or without a target, for
    ids without an embedding, and for a loss that is not finite.
    """
    width, model = settings.frequency_bin_nats, asked.model
    is_counted = target_counts is not None and width is not None
    tallies = [FrequencyTally(target_counts) if is_counted else None for _ in splits]  # type: ignore[arg-type]
    started = time.monotonic()
    scores = [
        _score_split(shards, asked, settings, runtime, tally) for shards, tally in zip(splits, tallies, strict=True)
    ]
    seconds = max(time.monotonic() - started, 1e-9)
    tables: dict[str, Table] = {PERPLEXITY_FILE: frame_of(scores, SplitScore)}
    if asked.objective.settings.causal:
        pairs = zip(scores, splits, strict=True)
        words = [found for score, shards in pairs if (found := word_score(score, shards)) is not None]
        tables[WORDS_FILE] = frame_of(words, WordScore)
    if width is not None:
        counted = zip(splits, tallies, strict=True)
        rows = [row for shards, tally in counted if tally is not None for row in tally.rows(shards.split, width)]
        tables[FREQUENCY_FILE] = frame_of(rows, FrequencyRow)
    facts = {one.split: {"sequences": one.sequences, "labelled_tokens": one.labelled_tokens} for one in scores}
    speed = {
        "sequences_per_second": round(sum(one.sequences for one in scores) / seconds, 1),
        "device": str(model.device),
        "compile": compilation_in_use(model),
    }
    return Scores(tables, facts, speed=speed)


def _score_split(
    shards: HeldOutText,
    asked: AskedForPerplexity,
    settings: PerplexitySettings,
    options: EvaluationRuntime,
    tally: FrequencyTally | None,
) -> SplitScore:
    model, objective = asked.model, asked.objective
    if shards.vocabulary_size > model.vocabulary_size:
        raise EvaluationError(
            f"{shards.where}: the shards have ids up to {shards.vocabulary_size - 1}, but the model has only "
            f"{model.vocabulary_size} embeddings; expected shards encoded with the tokenizer of this model"
        )
    examples = held_out_examples(shards, settings, objective)
    chosen = chosen_sequences(examples, settings)
    budget = options.tokens_per_batch or TOKENS_PER_BATCH
    if not isinstance(model, HatcheryModel):
        # External models and modules of users compute all logits of a batch at once, so their batches are smaller.
        budget = tokens_per_batch_for(model, budget)
    compile_where_it_pays_(model, options.compile, len(chosen) * settings.sequence_length)
    where = f"{shards.where}: the split {shards.split!r}"

    def counted(progress: Progress) -> Iterator[tuple[int, dict[str, Tensor]]]:
        for rows, batch in batches(examples, chosen, settings.seed, budget):
            yield rows, batch
            progress.update(rows)

    with Progress(len(chosen), f"perplexity, {shards.split}", "sequences") as progress:
        score = score_batches(model, counted(progress), shards.split, tally)
    if score.labelled_tokens == 0:
        raise EvaluationError(
            f"{where}: none of the {score.sequences:,} sequences has a masked token; use more `sequences`"
        )
    if not math.isfinite(score.loss_nats):
        raise EvaluationError(f"{where}: the loss of {asked.where} is not finite: its weights are damaged")
    # The pseudo-perplexity masks tokens, so models without masks have none.
    if settings.pseudo_perplexity_sentences == 0 or objective.settings.kinds[0] != "masked":
        return score
    longest = settings.sequence_length - 2
    sentences = drawn_sentences(shards, settings.pseudo_perplexity_sentences, settings.seed, longest)
    value = pseudo_perplexity(model, sentences, options.tokens_per_batch)
    return dataclasses.replace(score, pseudo_perplexity=value)

"""The stage `score_minimal_pairs`: one pretrained model on one suite of minimal pairs.

Writes scores.parquet (one row per pair), accuracy.csv (paradigms, phenomena, suite) and the manifest. The runtime
values (tokens per batch, device) change the speed and, at most, the last bits of a score.
"""

import csv
import dataclasses
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch

from hatchery.errors import EvaluationError
from hatchery.evaluation.minimal_pairs.accuracy import Accuracy, Outcome, accuracy_table, decide
from hatchery.evaluation.minimal_pairs.pairs import MinimalPair, choose_pairs, read_minimal_pairs
from hatchery.evaluation.minimal_pairs.pseudo_log_likelihood import (
    SpecialIds,
    distinct_sentences,
    sentence_scores,
    token_log_probabilities,
)
from hatchery.evaluation.pretrained import load_pretrained
from hatchery.evaluation.runtime import DeviceName, prepare_device
from hatchery.modeling.masked_language_model import MaskedLanguageModel
from hatchery.progress import Progress
from hatchery.storage.atomic import write_text
from hatchery.storage.manifests import stage_run
from hatchery.storage.parquet import write_table
from hatchery.storage.sources import open_source
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.typed import build, stage_body

# The longest sentence of BLiMP has 41 tokens. Work grows with the square of the length, so a file that is no list of
# sentences would otherwise run for days or out of memory.
LONGEST_SENTENCE_TOKENS = 1024

SCORES_SCHEMA = pa.schema(
    [
        ("paradigm", pa.string()),
        ("phenomenon", pa.string()),
        ("pair_id", pa.string()),
        ("score_good", pa.float64()),
        ("score_bad", pa.float64()),
        ("outcome", pa.string()),
    ]
)


@dataclass(frozen=True)
class ScoringSettings:
    """What is scored; part of the result's identity."""

    suite: str
    format: Literal["blimp"]
    files: str
    pairs_per_paradigm: int | None
    seed: int
    scoring: Literal["pll"]


@dataclass(frozen=True)
class ScoringRuntime:
    """How it is carried out: tokens per batch (special tokens included), device, CPU threads."""

    tokens_per_batch: int = 16384
    device: DeviceName = "auto"
    threads: int | None = None


def score_minimal_pairs(
    settings: Mapping[str, Any], runtime: Mapping[str, Any], model: Path, source: Path, output: Path
) -> None:
    """Score the suite of the source manifest with the model of a pretraining manifest; write beside `output`.

    Raises EvaluationError for wrong data (file and line) and the errors of the model, tokenizer and source loaders.
    """
    typed = build(ScoringSettings, stage_body(settings), "score_minimal_pairs")
    options = build(ScoringRuntime, runtime, "runtime")
    with stage_run(output, settings, {"model": model, "source": source}) as run:
        raw = open_source(source)
        pairs = choose_pairs(read_minimal_pairs(raw, typed.files), typed.pairs_per_paradigm, typed.seed)
        device = prepare_device(options.device, options.threads)
        network, tokenizer = load_pretrained(model)
        network = network.to(device).eval()
        started = time.monotonic()
        scores, rows = pair_scores(pairs, network, tokenizer, options.tokens_per_batch, device)
        seconds = max(time.monotonic() - started, 1e-9)
        outcomes = [decide(pair, good, bad) for pair, (good, bad) in zip(pairs, scores.tolist(), strict=True)]
        table = accuracy_table(pairs, outcomes, typed.suite)
        write_table(run.add_output(run.folder / "scores.parquet"), _scores_table(pairs, scores, outcomes))
        write_text(run.add_output(run.folder / "accuracy.csv"), accuracy_csv(table))
        run.measures |= {"pairs": len(pairs), "ties": outcomes.count("tie"), "masked_rows": rows}
        run.volatile |= {"rows_per_second": round(rows / seconds, 1), "device": str(device)}


def pair_scores(
    pairs: Sequence[MinimalPair],
    model: MaskedLanguageModel,
    tokenizer: Tokenizer,
    tokens_per_batch: int,
    device: torch.device,
) -> tuple[np.ndarray, int]:
    """Float64 [pairs, 2] of scores (good, bad), and the number of masked rows that it took.

    Raises EvaluationError naming the pair whose sentence becomes no tokens, or more than LONGEST_SENTENCE_TOKENS.
    """
    texts = sorted({text for pair in pairs for text in (pair.sentence_good, pair.sentence_bad)})
    encoded = dict(zip(texts, tokenizer.encode_sentences(texts), strict=True))
    for pair in pairs:
        for text in (pair.sentence_good, pair.sentence_bad):
            if not 1 <= len(encoded[text]) <= LONGEST_SENTENCE_TOKENS:
                raise EvaluationError(
                    f"{pair.paradigm}, pair {pair.pair_id}: a sentence becomes {len(encoded[text]):,} tokens, "
                    f"expected 1 to {LONGEST_SENTENCE_TOKENS:,}"
                )
    special = SpecialIds(cls=tokenizer.cls_id, sep=tokenizer.sep_id, mask=tokenizer.mask_id)
    sentences = [encoded[text] for text in texts]
    lengths = [len(ids) for ids in distinct_sentences(sentences)]
    # Progress in tokens, [CLS] and [SEP] included: short rows come first, so rows would promise too early an end.
    with Progress(sum(length * (length + 2) for length in lengths), "scoring", "tokens") as progress:
        token_scores = token_log_probabilities(model, sentences, special, tokens_per_batch, device, progress.update)
    score = dict(zip(texts, sentence_scores(token_scores).tolist(), strict=True))
    return np.array([(score[pair.sentence_good], score[pair.sentence_bad]) for pair in pairs]).reshape(-1, 2), sum(
        lengths
    )


def accuracy_csv(table: Sequence[Accuracy]) -> str:
    """The text of accuracy.csv: level, name, pairs, correct, ties, accuracy (fraction of 1)."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in dataclasses.fields(Accuracy)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(row) for row in table)
    return text.getvalue()


def _scores_table(pairs: Sequence[MinimalPair], scores: np.ndarray, outcomes: Sequence[Outcome]) -> pa.Table:
    columns = {
        "paradigm": [pair.paradigm for pair in pairs],
        "phenomenon": [pair.phenomenon for pair in pairs],
        "pair_id": [pair.pair_id for pair in pairs],
        "score_good": scores[:, 0],
        "score_bad": scores[:, 1],
        "outcome": list(outcomes),
    }
    return pa.table(columns, schema=SCORES_SCHEMA)

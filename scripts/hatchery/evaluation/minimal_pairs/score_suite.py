"""One language model on one suite of minimal pairs.

Writes scores.parquet (one row per pair), accuracy.csv (paradigms, phenomena, suite), BabyLM's prediction files for
suites of whole files, and the manifest. The runtime values (tokens per batch, device) change the speed and, at most,
the last bits of a score.
"""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.parquet import write_table
from hatchery.errors import EvaluationError
from hatchery.evaluation.minimal_pairs.pairs import (
    MinimalPair,
    check_size,
    choose_pairs,
    positions_by,
    read_minimal_pairs,
)
from hatchery.evaluation.minimal_pairs.scoring import (
    SCORINGS,
    distinct_sentences,
    scoring_name,
    sentence_scores,
    token_scores,
)
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel, SentenceModel
from hatchery.evaluation.runtime import load_sentence_model, prepare_device
from hatchery.evaluation.settings import EvaluationRuntime, ScoringSettings
from hatchery.progress import Progress
from hatchery.raw.registration import open_source
from hatchery.sanitize import csv_text

Outcome = Literal["correct", "wrong", "tie"]
Level = Literal["paradigm", "phenomenon", "suite"]


@dataclass(frozen=True)
class Accuracy:
    """One row of accuracy.csv; both accuracies are between 0 and 1, the strict one is the one that is reported."""

    level: Level
    name: str
    pairs: int
    correct: int
    ties: int
    accuracy: float
    accuracy_ties_correct: float


def decide(pair: MinimalPair, score_good: float, score_bad: float) -> Outcome:
    """The outcome of one pair; identical sentences tie by their text, whatever rounding did to their scores."""
    if pair.identical or score_good == score_bad:
        return "tie"
    return "correct" if score_good > score_bad else "wrong"


def accuracy_table(pairs: Sequence[MinimalPair], outcomes: Sequence[Outcome], suite: str) -> list[Accuracy]:
    """Rows for every paradigm, every phenomenon and the suite, names sorted within a level.

    Paradigms and phenomena pool their pairs. The suite has two rows, because the papers average differently and the
    two differ by more than a point on the same decisions: `<suite>` is the unweighted mean over paradigms (LTG-BERT,
    67 of them), `<suite>_by_phenomenon` the unweighted mean over phenomena (BabyLM and ELC-BERT, 12 of them).
    """
    paradigms = [
        _pooled("paradigm", name, [outcomes[index] for index in positions])
        for name, positions in sorted(positions_by(pair.paradigm for pair in pairs).items())
    ]
    phenomena = [
        _pooled("phenomenon", name, [outcomes[index] for index in positions])
        for name, positions in sorted(positions_by(pair.phenomenon for pair in pairs).items())
    ]
    return [
        *paradigms,
        *phenomena,
        _mean(suite, paradigms),
        _mean(f"{suite}_by_phenomenon", phenomena),
    ]


def _pooled(level: Level, name: str, outcomes: Sequence[Outcome]) -> Accuracy:
    n_pairs, correct, ties = len(outcomes), outcomes.count("correct"), outcomes.count("tie")
    return Accuracy(level, name, n_pairs, correct, ties, correct / n_pairs, (correct + ties) / n_pairs)


def _mean(name: str, rows: Sequence[Accuracy]) -> Accuracy:
    return Accuracy(
        "suite",
        name,
        sum(row.pairs for row in rows),
        sum(row.correct for row in rows),
        sum(row.ties for row in rows),
        sum(row.accuracy for row in rows) / len(rows),
        sum(row.accuracy_ties_correct for row in rows) / len(rows),
    )


HEADER = "index\tprediction\n"


def preferred_sentences(pairs: Sequence[MinimalPair], outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """The preferred sentence of every pair by name of the paradigm (or file), in the order of the pairs."""
    return {
        name: [
            pairs[index].sentence_bad if outcomes[index] == "wrong" else pairs[index].sentence_good
            for index in positions
        ]
        for name, positions in positions_by(pair.paradigm for pair in pairs).items()
    }


def predictions_text(sentences: Sequence[str]) -> str:
    """The text of `predictions.txt`: the header, then index from 0 and sentence, with line breaks spelled `\\n`."""
    return HEADER + "".join(f"{index}\t{_one_line(sentence)}\n" for index, sentence in enumerate(sentences))


def _one_line(sentence: str) -> str:
    return sentence.replace("\r", "\\r").replace("\n", "\\n")


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
        ("tokens_good", pa.int32()),
        ("tokens_bad", pa.int32()),
        ("field", pa.string()),
    ]
)


@dataclass(frozen=True)
class PairScores:
    """What scoring gives: `scores` float64 [P, 2] and `tokens` int32 [P, 2] of the good and the bad sentences.

    `rows` is the number of model inputs that the distinct sentences stand for: one per token for masked models, one
    per sentence for causal ones.
    """

    scores: np.ndarray
    tokens: np.ndarray
    rows: int


def score_suite(
    settings: ScoringSettings, runtime: EvaluationRuntime, model: Path, source: Path, run: StageRun
) -> None:
    """Score a suite and write the scores; see the stage `score_minimal_pairs`."""
    pairs = read_minimal_pairs(open_source(source), settings)
    if settings.expected is not None:
        check_size(pairs, settings.suite, settings.expected)
    pairs = choose_pairs(pairs, settings.pairs_per_paradigm, settings.seed)
    language_model = load_sentence_model(model, prepare_device(runtime.device, runtime.threads), settings.scoring)
    scoring = scoring_name(settings.scoring, language_model.architecture)
    started = time.monotonic()
    own_blank = language_model.leading_blank
    blank = settings.leading_blank if own_blank is None else own_blank
    scored = pair_scores(pairs, language_model, scoring, runtime.tokens_per_batch, leading_blank=blank)
    seconds = max(time.monotonic() - started, 1e-9)
    outcomes = [decide(pair, *scores) for pair, scores in zip(pairs, scored.scores.tolist(), strict=True)]
    _write(run, settings, pairs, scored, outcomes)
    run.measures |= {
        "scoring": scoring,
        "model_kind": "hatchery" if isinstance(language_model, HatcheryModel) else "transformers",
        "architecture": language_model.architecture,
        "leading_blank": blank,
        "tie_rule": "strict: a tie is wrong; accuracy_ties_correct calls it right",
        "pairs": len(pairs),
        "ties": outcomes.count("tie"),
        "identical_pairs": sum(pair.identical for pair in pairs),
        "masked_rows" if language_model.architecture == "masked" else "sentences": scored.rows,
    }
    run.volatile |= {
        "rows_per_second": round(scored.rows / seconds, 1),
        "pairs_per_second": round(len(pairs) / seconds, 1),
        "device": str(language_model.device),
    }


def pair_scores(
    pairs: Sequence[MinimalPair],
    model: SentenceModel,
    scoring: str = "auto",
    tokens_per_batch: int | None = None,
    leading_blank: bool = False,
) -> PairScores:
    """Scores of both sentences of every pair under the way called `scoring` (see SCORINGS).

    Raises EvaluationError naming the pair whose sentence becomes no tokens, or more than LONGEST_SENTENCE_TOKENS or
    than the model can take, and ConfigError for a model that cannot be scored in this way.
    """
    chosen = SCORINGS[scoring_name(scoring, model.architecture)]
    texts = sorted({text for pair in pairs for text in (pair.sentence_good, pair.sentence_bad)})
    blank = " " if leading_blank else ""
    sentences = model.encode([blank + text for text in texts], words=chosen.needs_words)
    encoded = dict(zip(texts, sentences, strict=True))
    n_framing = len(model.frame.before) + len(model.frame.after)
    longest = min(LONGEST_SENTENCE_TOKENS, (model.longest_input or LONGEST_SENTENCE_TOKENS + n_framing) - n_framing)
    for pair in pairs:
        for text in (pair.sentence_good, pair.sentence_bad):
            if not 1 <= len(encoded[text].ids) <= longest:
                raise EvaluationError(
                    f"{pair.paradigm}, pair {pair.pair_id}: a sentence becomes {len(encoded[text].ids):,} tokens, "
                    f"expected 1 to {longest:,}"
                )
    lengths = [len(sentence.ids) for sentence in distinct_sentences(sentences)]
    # Progress in tokens, special ones included: short rows come first, so rows would promise too early an end.
    total = sum(chosen.rows(length) * (length + n_framing) for length in lengths)
    with Progress(total, "scoring", "tokens") as progress:
        tokens = token_scores(model, sentences, scoring, tokens_per_batch, progress.update)
    score = dict(zip(texts, sentence_scores(tokens).tolist(), strict=True))
    sides = [(pair.sentence_good, pair.sentence_bad) for pair in pairs]
    return PairScores(
        scores=np.array([[score[text] for text in side] for side in sides], dtype=np.float64).reshape(-1, 2),
        tokens=np.array([[len(encoded[text].ids) for text in side] for side in sides], dtype=np.int32).reshape(-1, 2),
        rows=sum(chosen.rows(length) for length in lengths),
    )


def accuracy_csv(table: Sequence[Accuracy]) -> str:
    """The text of accuracy.csv: level, name, pairs, correct, ties, and the two accuracies (fractions of 1)."""
    return csv_text([field.name for field in dataclasses.fields(Accuracy)], map(dataclasses.astuple, table))


def _write(
    run: StageRun,
    settings: ScoringSettings,
    pairs: Sequence[MinimalPair],
    scored: PairScores,
    outcomes: Sequence[Outcome],
) -> None:
    write_table(run.add_output(run.folder / "scores.parquet"), _scores_table(pairs, scored, outcomes))
    table = accuracy_table(pairs, outcomes, settings.suite)
    write_text(run.add_output(run.folder / "accuracy.csv"), accuracy_csv(table))
    # A sample of the pairs has no row numbers that the challenge's server would know.
    if settings.unit == "file" and settings.pairs_per_paradigm is None:
        for name, sentences in preferred_sentences(pairs, outcomes).items():
            path = run.folder / "predictions" / name / "predictions.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(run.add_output(path), predictions_text(sentences))


def _scores_table(pairs: Sequence[MinimalPair], scored: PairScores, outcomes: Sequence[Outcome]) -> pa.Table:
    columns = {
        "paradigm": [pair.paradigm for pair in pairs],
        "phenomenon": [pair.phenomenon for pair in pairs],
        "pair_id": [pair.pair_id for pair in pairs],
        "score_good": scored.scores[:, 0],
        "score_bad": scored.scores[:, 1],
        "outcome": list(outcomes),
        "tokens_good": scored.tokens[:, 0],
        "tokens_bad": scored.tokens[:, 1],
        "field": [pair.field for pair in pairs],
    }
    return pa.table(columns, schema=SCORES_SCHEMA)

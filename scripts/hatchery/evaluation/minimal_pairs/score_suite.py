"""Score one language model on one suite of minimal pairs, or of items with any number of candidates.

`score` computes the result from a model, items and settings. The stage opens model and suite, and writes the tables:
scores.parquet has a row for each item, and accuracy.csv contains the accuracies of paradigms, phenomena and the suite.
BabyLM's prediction files are part of the result as texts. The runtime settings (tokens per batch, device) change the
speed and, at most, the last bits of a score.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hatchery.artifacts.manifests import StageRun
from hatchery.errors import EvaluationError
from hatchery.evaluation.direct.pairs import pairs_of, settings_of_pairs
from hatchery.evaluation.direct.request import Answer, Request
from hatchery.evaluation.minimal_pairs.counted_texts import counted_by_text, right_texts
from hatchery.evaluation.minimal_pairs.decisions import (
    TIE_RULES,
    Decision,
    Outcome,
    accuracy_frame,
    accuracy_table,
    correlation_frame,
    decision,
    tie_rule,
)
from hatchery.evaluation.minimal_pairs.items import Candidate, Item
from hatchery.evaluation.minimal_pairs.measurements import ACCURACY_FILE, BEST_TEMPERATURE_FILE, CORRELATION_FILE
from hatchery.evaluation.minimal_pairs.opened_models import opened_model
from hatchery.evaluation.minimal_pairs.pairs import check_size, choose_pairs, read_minimal_pairs
from hatchery.evaluation.minimal_pairs.predictions import prediction_files
from hatchery.evaluation.minimal_pairs.prefix_tokens import (
    behind_prefixes,
    choice_lengths,
    frame_by_bos_,
    unknown_items,
)
from hatchery.evaluation.minimal_pairs.scoring import (
    distinct_sentences,
    scoring_name,
    sentence_scores,
    token_scores,
)
from hatchery.evaluation.minimal_pairs.screening import Screening, in_bf16, screened
from hatchery.evaluation.minimal_pairs.sentence_model import (
    AT_ONE,
    HatcheryModel,
    ModuleModel,
    SentenceModel,
    Temperatures,
)
from hatchery.evaluation.minimal_pairs.temperatures import GRID, best_temperature
from hatchery.evaluation.runtime import (
    compilation_in_use,
    compile_where_it_pays_,
    prepare_device,
)
from hatchery.evaluation.scores import Scores, Table
from hatchery.evaluation.settings import EvaluationRuntime, ScoringSettings
from hatchery.evaluation.user_modules import LibraryTokensModel
from hatchery.evaluation.ways_of_scoring import WAYS
from hatchery.progress import Progress
from hatchery.raw.registration import RawSource, open_source
from hatchery.settings.base import CompilationChoice
from hatchery.training.precision import computes_bf16_fast

RULES = {
    2025: "BabyLM 2025 (babylm-eval 45fe2c1)",
    2026: "BabyLM 2026 (babylm-eval 3d57ddc, 8 July 2026)",
}
"""Name of the rules of each BabyLM year, for manifests; scores under different rules are not comparable."""
MULTILINGUAL_RULES = "BabyLM 2026, multilingual track (babylm-eval, 8 July 2026)"

MODEL_KINDS = {HatcheryModel: "hatchery", ModuleModel: "module", LibraryTokensModel: "module"}
"""Origin of a model in manifests, by class; models of other classes are from the library `transformers`."""

# Largest accepted number of tokens in a sentence; the longest sentence of BLiMP has 41. The cost grows with the square
# of the length, so a file with running text would take days or exhaust the memory.
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


ITEM_SCHEMA = pa.schema(
    [
        *(SCORES_SCHEMA.field(name) for name in ("paradigm", "phenomenon", "pair_id", "outcome", "field")),
        ("scores", pa.list_(pa.float64())),
        ("tokens", pa.list_(pa.int32())),
    ]
)
"""Columns of scores.parquet if some items are not pairs. `scores` and `tokens` are lists with one entry per candidate,
the right candidate first.
"""


@dataclass(frozen=True)
class CandidateScores:
    """Scores of the candidates of I items, at most K each: `scores` float64 [I, K] and `tokens` int32 [I, K].

    `tokens` is the number of scored tokens. If an item has fewer than K candidates, the remaining `scores` are NaN and
    the remaining `tokens` 0. `rows` is the number of model inputs for the distinct texts (`Way.rows`). For example,
    pseudo-log-likelihoods need one input per scored token, and log-likelihoods from left to right need one input per
    text.
    """

    scores: np.ndarray
    tokens: np.ndarray
    rows: int
    at_temperatures: np.ndarray | None = None
    """Scores at each temperature, if requested: float64 [I, K, T]."""

    def of(self, items: Sequence[Item]) -> list[list[float]]:
        """Return the scores of each item's candidates as lists."""
        return [scores[: len(item.candidates)].tolist() for item, scores in zip(items, self.scores, strict=True)]


def score_suite(
    settings: ScoringSettings, runtime: EvaluationRuntime, model: Path, source: Path, run: StageRun
) -> None:
    """Score the suite of a source manifest and write the scores; see the stage `score_minimal_pairs`."""
    suite = read_suite(open_source(source), settings)
    device = prepare_device(runtime.device, runtime.threads, settings.precision)
    asked = opened_model(model, device, settings)
    score(asked, suite, settings, runtime).write(run)


def evaluate(request: Request) -> Answer:
    """Score minimal pairs from the files of a suite, or from a table or a list in memory. Raises the errors of the
    stage `score_minimal_pairs`."""
    if request.data is not None and not isinstance(request.data, str | Path):
        frame = pairs_of(request.data)
        request = request.with_frame(frame, settings_of_pairs(frame, request.settings))
    settings, source = request.built(ScoringSettings, suite=request.name), request.source()
    is_file = isinstance(request.data, str | Path) and Path(request.data).expanduser().is_file()
    if is_file and len(source.names()) == 1:
        # A single file is read under any name. In a folder, the setting `files` selects the files by name.
        settings = dataclasses.replace(settings, files="*")
    suite = read_suite(source, settings)
    asked = request.model.asked(request.device, settings.scoring, settings.has_template)
    if settings.track == "multilingual":
        frame_by_bos_(asked)
    return Answer(score(asked, suite, settings, request.runtime), settings)


@dataclass(frozen=True)
class Suite:
    """The items of a suite. If the setting `counted_by` is set, `rights` are the (paradigm, correct text) pairs with
    which BabyLM's organisers compare the preferred texts (see `counted_texts.right_texts`), else None.
    """

    items: list[Item]
    rights: list[tuple[str, str]] | None = None


def read_suite(source: RawSource, settings: ScoringSettings) -> Suite:
    """Read the items of a suite; `settings` may select a subset of these items.

    Raises EvaluationError naming file and line for a malformed record, and EvaluationError for a suite whose size
    differs from the expected size.
    """
    items = read_minimal_pairs(source, settings)
    if settings.expected is not None:
        check_size(items, settings.suite, settings.expected)
    items = choose_pairs(items, settings.pairs_per_paradigm, settings.seed)
    return Suite(items, None if settings.counted_by is None else right_texts(items, source, settings))


def score(model: SentenceModel, suite: Suite, settings: ScoringSettings, runtime: EvaluationRuntime) -> Scores:
    """Score the candidates of all items, and determine the preferred candidate of each item.

    The result contains the tables scores.parquet (a row for each item) and accuracy.csv (for WUG: correlation.csv).
    With the setting `temperatures`, it also contains temperatures.csv and accuracy_at_best_temperature.csv. Raises the
    errors of `candidate_scores`.
    """
    items, edition = suite.items, settings.edition
    scoring = scoring_name(settings.scoring, model.architecture, model.predicted_before, edition)
    blank = settings.leading_blank if model.leading_blank is None else model.leading_blank

    def compared(some: Sequence[Item]) -> CandidateScores:
        found = candidate_scores(
            some,
            model,
            scoring,
            runtime.tokens_per_batch,
            leading_blank=blank,
            official=settings.official,
            temperatures=GRID if settings.temperatures else AT_ONE,
            compilation=runtime.compile,
            by_prefix=settings.track == "multilingual",
        )
        if not settings.per_token:
            return found
        lengths, at = np.maximum(found.tokens, 1), found.at_temperatures
        if settings.track == "multilingual":
            lengths = choice_lengths(model, some, " " if blank else "")
        divided = None if at is None else at / lengths[..., None]
        return dataclasses.replace(found, scores=found.scores / lengths, at_temperatures=divided)

    started = time.monotonic()
    screens = settings.precision == "screened" and computes_bf16_fast(model.device)
    scored, screening = _screened(items, compared, model, settings.seed) if screens else (compared(items), None)
    seconds = max(time.monotonic() - started, 1e-9)
    judges = settings.unknown_tokens == "wrong"
    unknown = unknown_items(model, items) if judges else [False] * len(items)
    judged = zip(items, scored.of(items), unknown, strict=True)
    decisions = [decision(item, scores, settings, has_unknown) for item, scores, has_unknown in judged]
    if suite.rights is not None:
        decisions = counted_by_text(items, decisions, suite.rights, settings)
    facts, columns = dict[str, Any](), dict[str, Sequence[bool]]()
    if judges:
        facts["unknown_items"], columns["unknown"] = sum(unknown), unknown
    if screening is not None:
        facts["screening"], columns["in_fp32"] = screening.facts, screening.in_fp32.tolist()
    tables = _tables(settings, items, scored, decisions, columns)
    if scored.at_temperatures is not None:
        best = best_temperature(items, scored.at_temperatures, settings)
        tables |= {"temperatures.csv": best.frame, BEST_TEMPERATURE_FILE: accuracy_frame(best.table)}
        facts["best_temperature"] = best.temperature
    facts |= {
        "scoring": scoring,
        "model_kind": next((kind for cls, kind in MODEL_KINDS.items() if isinstance(model, cls)), "transformers"),
        "architecture": model.architecture,
        "leading_blank": blank,
        "tie_rule": TIE_RULES[tie_rule(settings)],
        "pairs": len(items),
        "ties": sum(one.outcome == "tie" for one in decisions),
        "identical_pairs": sum(item.identical for item in items),
        "masked_rows" if model.architecture == "masked" else "sentences": scored.rows,
    }
    if edition != 2023:
        counted = f", counted as by its {settings.counted_by}" if settings.counted_by else ""
        of_track = RULES[edition] if settings.track is None else MULTILINGUAL_RULES
        rules = of_track + (", slips included" if settings.official else "") + counted
        facts |= {"rules": rules, "precision": settings.precision}
    speed = {
        "rows_per_second": round(scored.rows / seconds, 1),
        "pairs_per_second": round(len(items) / seconds, 1),
        "device": str(model.device),
        "compile": compilation_in_use(model),
    }
    return Scores(tables, facts, dict(prediction_files(items, decisions, settings)), speed)


def _screened(
    items: Sequence[Item], compared: Callable[[Sequence[Item]], CandidateScores], model: SentenceModel, seed: int
) -> tuple[CandidateScores, Screening]:
    """Return the scores of `items` in bf16. Items whose two highest scores are close are scored again in fp32. The
    function `compared` scores items.
    """
    with in_bf16(model.device):
        half = compared(items)

    def again(numbers: np.ndarray) -> np.ndarray:
        found = compared([items[number] for number in numbers]).scores
        return np.pad(found, ((0, 0), (0, half.scores.shape[1] - found.shape[1])), constant_values=np.nan)

    found = screened(half.scores, [len(item.candidates) for item in items], again, seed)
    return dataclasses.replace(half, scores=found.scores), found


def candidate_scores(
    items: Sequence[Item],
    model: SentenceModel,
    scoring: str = "auto",
    tokens_per_batch: int | None = None,
    leading_blank: bool = False,
    official: bool = False,
    temperatures: Temperatures = AT_ONE,
    compilation: CompilationChoice = "off",
    by_prefix: bool = False,
) -> CandidateScores:
    """Return scores of the candidates of every item with the scoring method `scoring` (see WAYS).

    - `temperatures`: temperatures by which logits are divided; with GRID, the result also has the scores at each
      temperature.
    - `leading_blank`: if true, a blank precedes each text.
    - `official`: if true, scored tokens are counted as in BabyLM's code (`given_tokens`), scores that are not finite
      are allowed, and in a causal model, a text of several tokens, special tokens included, has score 0 if none of its
      tokens is scored.
    - `by_prefix`: if true, scored tokens are counted as in lm-evaluation-harness (`prefix_tokens.py`), and a text that
      has tokens but no scored tokens has score 0.

    Raises EvaluationError naming the item if a text has more than LONGEST_SENTENCE_TOKENS tokens, or more tokens than
    the model can read. Except in the two cases of score 0 above, also raises EvaluationError for a text without scored
    tokens. Raises the errors of `token_scores`.
    """
    chosen = WAYS[scoring_name(scoring, model.architecture, model.predicted_before)]
    texts = sorted({candidate for item in items for candidate in item.candidates})
    blank = " " if leading_blank else ""
    written = [blank + one.text for one in texts]
    given = [len(blank + one.prefix) if one.prefix else 0 for one in texts]
    sentences = model.encode(written, words=chosen.needs_words, given=given, official=official)
    if by_prefix:
        sentences = behind_prefixes(model, [Candidate(one.completion, blank + one.prefix) for one in texts], sentences)
    encoded = dict(zip(texts, sentences, strict=True))
    n_framing = len(model.frame.before) + len(model.frame.after)
    longest = min(LONGEST_SENTENCE_TOKENS, (model.longest_input or LONGEST_SENTENCE_TOKENS + n_framing) - n_framing)
    # For causal models, the official code gives the score 0, the highest possible score, to a text without scored
    # tokens. Refuse a text without scored tokens only if it is a single token, framing included.
    may_be_empty = official and model.architecture == "causal"
    for item in items:
        for candidate in item.candidates:
            sentence = encoded[candidate]
            is_empty = sentence.scored < 1 and not (may_be_empty and len(model.frame.before) + len(sentence.ids) > 1)
            is_empty = is_empty and not (by_prefix and sentence.ids)
            if is_empty or len(sentence.ids) > longest:
                raise EvaluationError(
                    f"{item.paradigm}, pair {item.item_id}: a sentence becomes {len(sentence.ids):,} tokens, "
                    f"expected 1 to {longest:,}" + (", at least one of them after the prefix" if sentence.given else "")
                )
    empty = [text for text in texts if encoded[text].scored < 1]
    texts = [text for text in texts if encoded[text].scored > 0]
    sentences = [encoded[text] for text in texts]
    distinct = distinct_sentences(sentences)
    # Short inputs are scored first, so the fraction of scored inputs would underestimate the remaining time. Measure
    # progress in tokens, special tokens included.
    total = sum(chosen.rows(sentence.scored) * (len(sentence.ids) + n_framing) for sentence in distinct)
    compile_where_it_pays_(model, compilation, total)
    with Progress(total, "scoring", "tokens") as progress:
        tokens = token_scores(
            model, sentences, scoring, tokens_per_batch, progress.update, temperatures, finite=not official
        )
    # `sentence_scores` returns one column per temperature. By default, the only temperature is 1.
    score = dict(zip(texts, sentence_scores(tokens).reshape(len(texts), len(temperatures)), strict=True))
    score |= dict.fromkeys(empty, np.zeros(len(temperatures)))
    most = max((len(item.candidates) for item in items), default=2)
    shape = len(items), most
    values, counts = np.full((*shape, len(temperatures)), np.nan), np.zeros(shape, dtype=np.int32)
    for row, item in enumerate(items):
        values[row, : len(item.candidates)] = [score[candidate] for candidate in item.candidates]
        counts[row, : len(item.candidates)] = [encoded[candidate].scored for candidate in item.candidates]
    rows = sum(chosen.rows(sentence.scored) for sentence in distinct)
    at = None if temperatures == AT_ONE else values
    return CandidateScores(values[..., temperatures.index(1.0)], counts, rows, at)


def _tables(
    settings: ScoringSettings,
    items: Sequence[Item],
    scored: CandidateScores,
    decisions: Sequence[Decision],
    further: Mapping[str, Sequence[bool]],
) -> dict[str, Table]:
    outcomes, credits = [one.outcome for one in decisions], [one.credit for one in decisions]
    scores = _scores_table(items, scored, outcomes)
    for name, values in further.items():
        scores = scores.append_column(name, pa.array(values))
    tables: dict[str, Table] = {"scores.parquet": scores}
    if settings.format == "wug":
        return tables | {CORRELATION_FILE: correlation_frame(items, scored.of(items))}
    by_split, by_pair = settings.format == "entity_tracking", settings.track == "multilingual"
    table = accuracy_table(items, outcomes, settings.suite, credits, by_split, by_pair)
    return tables | {ACCURACY_FILE: accuracy_frame(table)}


def _scores_table(pairs: Sequence[Item], scored: CandidateScores, outcomes: Sequence[Outcome]) -> pa.Table:
    columns: dict[str, Any] = {
        "paradigm": [pair.paradigm for pair in pairs],
        "phenomenon": [pair.phenomenon for pair in pairs],
        "pair_id": [pair.item_id for pair in pairs],
        "outcome": list(outcomes),
        "field": [pair.field for pair in pairs],
    }
    if all(pair.is_pair for pair in pairs):
        for side, name in enumerate(("good", "bad")):
            columns |= {f"score_{name}": scored.scores[:, side], f"tokens_{name}": scored.tokens[:, side]}
        return pa.table({name: columns[name] for name in SCORES_SCHEMA.names}, schema=SCORES_SCHEMA)
    columns["scores"] = scored.of(pairs)
    columns["tokens"] = [row[: len(pair.candidates)] for pair, row in zip(pairs, scored.tokens, strict=True)]
    return pa.table({name: columns[name] for name in ITEM_SCHEMA.names}, schema=ITEM_SCHEMA)

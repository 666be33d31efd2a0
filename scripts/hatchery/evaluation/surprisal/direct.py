"""Surprisals of the words of texts in memory or in files, for the Python function `hatchery.surprisals`."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from hatchery.errors import ConfigError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.direct.data import as_frame, require_texts, source_at, source_of_frame
from hatchery.evaluation.minimal_pairs.sentence_model import TokenizedModel
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.surprisal.measure_texts import ScoredTexts, rare_characters_note
from hatchery.evaluation.surprisal.measurements import own_columns
from hatchery.evaluation.surprisal.settings import SurprisalSettings
from hatchery.evaluation.surprisal.texts import all_texts, plain_texts, read_texts
from hatchery.evaluation.surprisal.words import SCHEMA
from hatchery.raw.registration import RawSource
from hatchery.typed import build

TEXTS = "text"
"""Column of the texts in the data frame that is made from a list of texts."""


@dataclass(frozen=True)
class GivenTexts:
    """Texts to score, as files of a source, with the settings for reading and scoring them.

    `frame` is the user's table in memory, whose columns are repeated in the result. If the user gave a list of texts,
    `frame` has no columns. If the user gave files, `frame` is None.
    """

    source: RawSource
    settings: SurprisalSettings
    frame: pl.DataFrame | None


def given_texts(texts: Any, column: str | None, settings: Mapping[str, Any], scratch: Path) -> GivenTexts:
    """Return the texts to score. `texts` is the `Path` of a file or folder, a table with texts in `column`, a list of
    texts, or one text.

    Raises ConfigError if `column` is missing for a table, and EvaluationError naming a row whose cell is not a text.
    """
    if isinstance(texts, Path):
        named = build(SurprisalSettings, {**settings, "column": column}, "surprisals")
        return GivenTexts(source_at(texts, scratch), named, None)
    is_list = isinstance(texts, str) or (not isinstance(texts, Mapping) and isinstance(texts, list | tuple))
    if is_list and not (texts and isinstance(texts[0], Mapping)):
        frame, column, kept = pl.DataFrame({TEXTS: plain_texts(texts, "text")}), TEXTS, pl.DataFrame()
    else:
        frame = kept = as_frame(texts)
        if column is None:
            raise ConfigError(
                f"column: got none, expected the column that contains the texts, one of: {', '.join(frame.columns)}"
            )
    # In a table in memory, "NA" is a text. Only blank cells are missing.
    named = build(SurprisalSettings, {"missing": (), **settings, "column": column}, "surprisals")
    require_texts(frame, [column])
    read = dict.fromkeys([column, *named.text_columns, *([named.order] if named.order else [])])
    return GivenTexts(source_of_frame(frame.select(list(read)), scratch), named, kept)


def scored_words(
    model: TokenizedModel | BaselineModel, given: GivenTexts, runtime: EvaluationRuntime
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return a table with a row for each word, and facts about the scoring (`ScoredTexts.facts`).

    If `given` are files, the columns are `file`, `line`, the columns of `words.SCHEMA`, and the files' own columns,
    whose values are converted to text. If `given` is a table in memory, the columns are those of `words.SCHEMA`,
    followed by the table's columns with their types. An own column with a reserved name gets the prefix `own_`. If
    `given` is a list of texts, the columns are those of `words.SCHEMA`. Raises the errors of `word_surprisals` and
    `read_texts`.
    """
    survey = read_texts(given.source, given.settings)
    for note in survey.notes(given.settings):
        print(f"note: {note}", file=sys.stderr, flush=True)
    scored = ScoredTexts(model, all_texts(given.source, given.settings), given.settings, runtime, survey)
    tables = list(scored.tables())
    words = pl.concat(tables) if tables else pl.DataFrame(schema=scored.schema)
    if scored.alphabet.rare:
        print(f"note: {rare_characters_note(scored.alphabet.rare)}", file=sys.stderr, flush=True)
    if given.frame is None:
        return words, scored.facts
    found = words.select(list(SCHEMA))
    if not given.frame.columns:
        return found, scored.facts
    rows = given.frame.rename(own_columns(given.frame.columns))[(words["line"] - 1).to_list()]
    return pl.concat([found, rows], how="horizontal"), scored.facts

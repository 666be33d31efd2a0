"""Score the words of a user's texts under one model.

`surprisal.parquet` and `surprisal.csv` have a row for each word. The columns are `file`, `line`, the columns of
`words.SCHEMA`, and the columns of the user's table, converted to text (`own_columns`). `line` is the line of the text.
In tables with one word per row, `line` is the line of the word. In Parquet files, `line` is the row. Texts are read
twice: once to check and count the texts, and once in chunks that are scored and written.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from hatchery.artifacts.atomic import atomic_path
from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.parquet import TableWriter
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.minimal_pairs.scoring import scoring_name
from hatchery.evaluation.minimal_pairs.sentence_model import TokenizedModel
from hatchery.evaluation.runtime import load_sentence_model, prepare_device
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.surprisal.measurements import CSV_FILE, PLACES, WORDS_FILE, own_columns
from hatchery.evaluation.surprisal.settings import NamedTexts, SurprisalSettings
from hatchery.evaluation.surprisal.texts import CLEANING, Survey, Text, all_texts, read_texts
from hatchery.evaluation.surprisal.words import SCHEMA, Alphabet, chunks, word_surprisals
from hatchery.progress import Progress
from hatchery.raw.registration import open_source
from hatchery.sanitize import csv_text

MOST_NAMED = 8
"""Largest number of rare characters that a note lists."""


def measure_texts(settings: NamedTexts, runtime: EvaluationRuntime, model: Path, source: Path, run: StageRun) -> None:
    """Write the surprisals of the words in a source's texts; see the stage `measure_surprisal`."""
    opened = open_source(source)
    survey = read_texts(opened, settings)
    for note in survey.notes(settings):
        print(f"note: {settings.name}: {note}", file=sys.stderr, flush=True)
    device = prepare_device(runtime.device, runtime.threads)
    asked = load_sentence_model(model, device, settings.scoring)
    scored = ScoredTexts(asked, all_texts(opened, settings), settings, runtime, survey)
    with (
        atomic_path(run.folder / WORDS_FILE) as words_path,
        atomic_path(run.folder / CSV_FILE) as csv_path,
        TableWriter(
            words_path, pl.DataFrame(schema=scored.schema).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
        ) as writer,
        csv_path.open("w", encoding="utf-8", newline="") as csv_file,
    ):
        csv_file.write(csv_text(list(scored.schema), ()))
        for table in scored.tables():
            writer.write_table(table.to_arrow(compat_level=pl.CompatLevel.oldest()))
            csv_file.write(csv_text(None, table.iter_rows()))
    for name in (WORDS_FILE, CSV_FILE):
        run.add_output(run.folder / name)
    if scored.alphabet.rare:
        print(f"note: {settings.name}: {rare_characters_note(scored.alphabet.rare)}", file=sys.stderr, flush=True)
    run.measures |= scored.facts


class ScoredTexts:
    """Surprisals of the words of texts under one model, as a sequence of tables. Only one table is in memory at a time.

    `survey`, made before scoring, contains the number of texts, and the number of missing cells in the table column
    that contains the texts. `facts` are complete only after the last table was yielded.
    """

    def __init__(
        self,
        model: TokenizedModel | BaselineModel,
        texts: Iterable[Text],
        settings: SurprisalSettings,
        runtime: EvaluationRuntime,
        survey: Survey,
    ) -> None:
        self._model, self._texts, self._settings, self._runtime = model, texts, settings, runtime
        self._survey = survey
        # If each row of the user's table is one word, and the column of these words is called `word`, omit this column:
        # the result has its own column `word`.
        is_ours = {settings.column} & {"word"} if settings.text_columns else set()
        self._own = own_columns(column for column in survey.columns if column not in is_ours)
        self.schema = pl.Schema({**PLACES, **SCHEMA, **dict.fromkeys(self._own.values(), pl.String)})
        """Columns of the tables: file and line of a text, the columns of `words.SCHEMA`, and the columns of the user's
        table."""
        self.alphabet = Alphabet(model)
        self._counted = [0, 0, 0, 0]

    def tables(self) -> Iterator[pl.DataFrame]:
        """Yield tables with a row for each word and the columns of `schema`. Raises the errors of `word_surprisals`."""
        done, settings = 0, self._settings
        with Progress(self._survey.texts, "surprisals", "texts") as progress:
            for chunk in chunks(self._texts, lambda text: len(text.words.text)):
                words = word_surprisals(
                    self._model,
                    [text.words for text in chunk],
                    scoring=settings.scoring,
                    leading_blank=settings.leading_blank,
                    tokens_per_batch=self._runtime.tokens_per_batch,
                    place=lambda index, chunk=chunk, done=done: chunk[index - done].where,  # type: ignore[misc]
                    alphabet=self.alphabet,
                    first=done,
                    on_texts=progress.update,
                )
                yield with_rows(words, chunk, self._own).select(list(self.schema)).cast(self.schema)
                done += len(chunk)
                sums = (len(words), words["tokens"].sum(), words["unknown"].sum(), words["in_bytes"].sum())
                self._counted = [before + int(number) for before, number in zip(self._counted, sums, strict=True)]

    @property
    def facts(self) -> dict[str, Any]:
        """Return the scoring method, the model's architecture, and numbers: of texts, of missing cells in the table
        column that contains the texts, of words, of tokens, of words with unknown tokens, and of words with rare
        characters but no unknown token.

        A rare character is a character that no token of the vocabulary contains. `rare_characters` is the number of
        words with each rare character.
        """
        return {
            "scoring": scoring_name(self._settings.scoring, self._model.architecture),
            "architecture": self._model.architecture,
            "texts": self._survey.texts,
            "missing": self._survey.missing,
            **dict(zip(("words", "tokens", "unknown_words", "words_in_bytes"), self._counted, strict=True)),
            "rare_characters": dict(sorted(self.alphabet.rare.items())),
        }


def with_rows(words: pl.DataFrame, texts: Sequence[Text], own: Mapping[str, str]) -> pl.DataFrame:
    """Return the table `words` with additional columns: file and line of each word's text, and the columns of the
    user's table. `own` maps the user's column names to the names in the result.
    """
    files: list[str] = []
    lines: list[int] = []
    rows: list[Mapping[str, Any]] = []
    for text in texts:
        number = len(text.words.spans)
        each = 1 if len(text.lines) == number else number
        files += [text.file] * number
        lines += text.lines * each
        rows += (text.rows or ({},)) * (each if text.rows else number)
    columns = {name: [as_text(row.get(column)) for row in rows] for column, name in own.items()}
    return words.with_columns(
        pl.Series("file", files, pl.String),
        pl.Series("line", lines, pl.UInt32),
        *(pl.Series(name, values, pl.String) for name, values in columns.items()),
    )


def as_text(value: Any) -> str | None:
    """Return a cell of a user's table as text: None for a missing value and an empty text, JSON for booleans, lists and
    objects."""
    if value is None or value != value:
        return None
    if isinstance(value, str):
        return value or None
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, bool | list | dict) else str(value)


def rare_characters_note(rare: Mapping[str, int]) -> str:
    """Return a note on the characters of the texts that no token of the vocabulary contains; the most frequent
    characters are listed first.
    """
    order = sorted(rare, key=lambda character: (-rare[character], character))
    named = ", ".join(
        f"{character if character.isprintable() else ''} U+{ord(character):04X} in {rare[character]:,}".strip()
        for character in order[:MOST_NAMED]
    )
    more = f" and {len(order) - MOST_NAMED:,} more" if len(order) > MOST_NAMED else ""
    ways = [way for way in ("minimal", "full") if any(_changes(way, character) for character in order)]
    way = " or ".join(ways)
    remedy = f"; if the model's corpus was cleaned, `cleaning: {way}` cleans your texts in the same way" if ways else ""
    return (
        f"words have characters without a token in the model's vocabulary ({named}{more}): these characters "
        "are rare or absent in the model's training text, so the surprisals of these words are not "
        f"meaningful; the column `in_bytes` marks these words{remedy}"
    )


def _changes(way: str, character: str) -> bool:
    return CLEANING[way](f"a{character}b") != f"a{character}b"

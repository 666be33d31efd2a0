"""The table `selection.csv` with the results of a sweep, and the rule that chooses a tokenizer.

The last columns contain the values printed in papers; a cell is empty if no value was printed. Numbers are rounded so
that the tables are equal on every machine. `selection.csv` corresponds to Table 6 of the reduced-vocabulary study
("Honey, I Shrunk the Language").

The file `config/published/tokenizers/tokenizer_selection.csv` contains the values of Table 6, and 166, the frequency
that 95 % of the entries of LTG-BERT's vocabulary reach. The column `size` of the file contains a number, or
`pretrained` for the reference tokenizer of a tokenizer type.

The rule (reduced-vocabulary study, Section 3.3) has two steps: for each tokenizer type, choose the size whose
word-split ratio is closest to the ratio of the reference tokenizer; then choose the tokenizer type with the highest
ESMS (exact sub-token matching score). Ratios are compared as printed. The study does not describe ties. Of the
WordPiece sizes 16,000 and 17,000, whose ratios are both printed as 1.17, the study chooses the smaller size, as does
this module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from hatchery.artifacts.records import read_rows
from hatchery.sanitize import csv_text
from hatchery.tokenization.selection.frequency_rule import SearchResult
from hatchery.tokenization.selection.settings import SweepSettings

PRETRAINED = "pretrained"
VALUES = ("word_split_ratio", "esms", "frequency_at_95_percent", "selected_within_type", "final_choice")
PUBLISHED_COLUMNS = ("type", "size", *VALUES, "source", "note")

PrintedRows = Mapping[tuple[str, str], dict[str, str]]


def read_published_selection(path: str | Path) -> PrintedRows:
    """Return the published measures of tokenizers as printed, by (tokenizer type, size). Raises EvaluationError, naming
    file and line, for a malformed file.
    """
    return {
        (texts["type"], texts["size"]): {column: texts[column] for column in VALUES}
        for _, texts in read_rows(path, PUBLISHED_COLUMNS, PUBLISHED_COLUMNS[:2])
    }


_DIGITS = 6


@dataclass(frozen=True)
class Measures:
    """Measures of a tokenizer. A value that is not measured is None. If the settings give only the word-split ratio of
    a reference tokenizer (`reference_ratio`), all other values are None.
    """

    word_split_ratio: float
    esms_definition: float | None = None
    esms_published_code: float | None = None
    esms_published_code_corrected: float | None = None
    frequency_at_95_percent: int | None = None
    fertility: float | None = None
    unknown_rate: float | None = None


@dataclass(frozen=True)
class SelectionRow:
    """A row of the table `selection.csv`: a tokenizer of the sweep, or the reference tokenizer of a tokenizer type."""

    type: str
    size: int | None
    """Requested number of entries; None for a reference tokenizer."""
    vocabulary_size: int | None
    """Actual number of entries; None if only the reference's word-split ratio is known."""
    measures: Measures
    published_as: str | None = None
    selected_within_type: bool = False
    final_choice: bool = False

    @property
    def is_reference(self) -> bool:
        """True for the reference tokenizer of a tokenizer type."""
        return self.size is None

    @property
    def size_name(self) -> str:
        """Vocabulary size as written in tables; for a reference tokenizer, the word `pretrained`."""
        return PRETRAINED if self.size is None else str(self.size)


@dataclass(frozen=True)
class SweepFacts:
    """Numbers of sequences, words and morphemes with which the tokenizers were measured."""

    sequences: int
    sample_words: int
    reference_words: int
    reference_morphemes: int
    morphemes: str
    """Description of the list of morphemes."""


MEASURES = tuple(field.name for field in fields(Measures))
COLUMNS = ("type", "size", "vocabulary_size", *MEASURES, "is_reference", "selected_within_type", "final_choice")


def selection_csv(rows: Sequence[SelectionRow], published: PrintedRows) -> str:
    """Return the text of `selection.csv`: one line per tokenizer, with the published measures in the last columns."""
    body = []
    for row in rows:
        printed = printed_of(row, published)
        body.append(
            [
                row.type,
                row.size_name,
                "" if row.vocabulary_size is None else row.vocabulary_size,
                *(_field(getattr(row.measures, name)) for name in MEASURES),
                *(int(flag) for flag in (row.is_reference, row.selected_within_type, row.final_choice)),
                *(printed.get(column, "") for column in VALUES),
            ]
        )
    return csv_text([*COLUMNS, *(f"published_{column}" for column in VALUES)], body)


def search_csv(result: SearchResult, least_frequency: int) -> str:
    """Return the text of `frequency_search.csv`: one line for each vocabulary size that the search has evaluated, with
    the frequency that 95 % of the entries reach.
    """
    rows = [
        (
            probe.size,
            probe.frequency_at_95_percent,
            int(probe.frequency_at_95_percent >= least_frequency),
            int(probe.size == result.largest_size),
        )
        for probe in result.probes
    ]
    return csv_text(("size", "frequency_at_95_percent", "satisfies", "largest"), rows)


def printed_of(row: SelectionRow, published: PrintedRows) -> dict[str, str]:
    """Return the published measures of a tokenizer as printed, by column; empty if there are no published measures."""
    return {} if row.published_as is None else dict(published.get((row.published_as, row.size_name), {}))


def _field(value: float | int | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.{_DIGITS}f}"


# Number of digits to which differences are rounded, because rounding errors must not decide between equal differences.
_COMPARED_DIGITS = 9


def closest_size(ratios: Mapping[int, float], reference: float, decimals: int | None) -> int:
    """Return the vocabulary size whose word-split ratio is closest to `reference`; in a tie, the smaller size.

    `ratios` maps vocabulary sizes to word-split ratios. Ratios and `reference` are rounded to `decimals` (None: not
    rounded).
    """

    def rounded(value: float) -> float:
        return value if decimals is None else round(value, decimals)

    return min(
        ratios, key=lambda size: (round(abs(rounded(ratios[size]) - rounded(reference)), _COMPARED_DIGITS), size)
    )


def best_type(scores: Mapping[str, float]) -> str:
    """Return the tokenizer type with the highest ESMS (exact sub-token matching score) in `scores`; in a tie, the first
    of these types.
    """
    return max(scores, key=scores.__getitem__)


def chosen_rows(
    settings: SweepSettings,
    by_size: Mapping[tuple[str, int], Measures],
    by_reference: Mapping[str, Measures],
    reference_sizes: Mapping[str, int],
) -> list[SelectionRow]:
    """Return the rows of `selection.csv`, with the chosen tokenizers marked. The tokenizer types and their sizes have
    the order of the settings.

    A reference tokenizer is the last row of its tokenizer type.
    """
    selected: dict[str, int] = {}
    for candidate in settings.types:
        ratios = {size: by_size[candidate.name, size].word_split_ratio for size in candidate.sizes}
        reference = by_reference.get(candidate.name)
        target = candidate.reference_ratio if reference is None else reference.word_split_ratio
        # A tokenizer type without a target (the word-split ratio of a reference tokenizer) has only one size, as
        # checked before the training.
        selected[candidate.name] = (
            candidate.sizes[0] if target is None else closest_size(ratios, target, settings.compared_decimals)
        )
    final = best_type({name: getattr(by_size[name, size], settings.choose_by) for name, size in selected.items()})
    rows = []
    for candidate in settings.types:
        row = SelectionRow(candidate.name, None, None, Measures(0.0), candidate.published_as)
        for size in candidate.sizes:
            chosen = selected[candidate.name] == size
            rows.append(
                replace(
                    row,
                    size=size,
                    vocabulary_size=size,
                    measures=by_size[candidate.name, size],
                    selected_within_type=chosen,
                    final_choice=chosen and candidate.name == final,
                )
            )
        if candidate.name in by_reference:
            size = reference_sizes[candidate.name]
            rows.append(replace(row, vocabulary_size=size, measures=by_reference[candidate.name]))
        elif candidate.reference_ratio is not None:
            rows.append(replace(row, measures=Measures(candidate.reference_ratio)))
    return rows

"""Read suites: JSON lines in the format of BLiMP (Warstadt et al. 2020), tables, sentences on alternating lines,
multiple-choice rows (`choices.py`), and BabyLM's other tasks (`babylm_items.py`).

Any folder or archive with such files can be read: the original 67 paradigms, BabyLM's pooled files, or a user's own
files. The same files and seed always give the same items in the same order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.draws import generator
from hatchery.evaluation.evaluation import MostRows
from hatchery.evaluation.json_lines import Record, decode_lines, read_json_lines, shorten, some
from hatchery.evaluation.minimal_pairs.babylm_items import BABYLM_READERS
from hatchery.evaluation.minimal_pairs.choices import HUB_METADATA, document_name, paradigm_of_file, read_choices
from hatchery.evaluation.minimal_pairs.items import Candidate, Item, minimal_pair
from hatchery.evaluation.settings import ExpectedSize, PairFormat, ScoringSettings, SuiteSettings
from hatchery.evaluation.tasks.formats import is_table, read_csv, read_rows
from hatchery.raw.registration import RawSource
from hatchery.sanitize import plain_name

# These two replacements reduce the 13 linguistics terms of BLiMP's release to the 12 phenomena of the paper and of
# BabyLM's tables.
PHENOMENON_OF_TERM = {"s-selection": "argument_structure", "filler_gap_dependency": "filler_gap"}
# The field `linguistics_term` of one paradigm (principle_A_case_2) is spelled differently from that of the other 66
# paradigms.
FIELD_SPELLINGS = {"syntax/semantics": "syntax_semantics"}

LIKE_BLIMP = SuiteSettings()

# Stems of the pooled files of BabyLM 2023 (docs/papers/babylm-evaluation.md, "Files of minimal pairs"). If a suite
# has another size than expected, and its paradigms equal one of these sets of stems, the error message names the set.
POOLED_FILES = {
    "the BabyLM-filtered BLiMP": frozenset(
        {
            "anaphor_agreement",
            "argument_structure",
            "binding",
            "control_raising",
            "determiner_noun_agreement",
            "ellipsis",
            "filler_gap",
            "irregular_forms",
            "island_effects",
            "npi_licensing",
            "quantifiers",
            "subject_verb_agreement",
        }
    ),
    "the BabyLM supplement": frozenset(
        {"hypernym", "qa_congruence_easy", "qa_congruence_tricky", "subject_aux_inversion", "turn_taking"}
    ),
}


def read_minimal_pairs(source: RawSource, suite: SuiteSettings = LIKE_BLIMP) -> list[Item]:
    """Return all items of the suite's files, ordered by file name and line.

    In the format of BLiMP, the setting `unit` determines the names of paradigms and phenomena. If `unit` is "paradigm",
    the paradigm is the field `UID`, by default the file's stem, and the phenomenon is `linguistics_term`, by default
    the paradigm. If `unit` is "file" (BabyLM's pooled files), paradigm and phenomenon are the file's stem. A pair is
    then identified by its line, because ids repeat in these files. `SuiteSettings` describes the other formats. Names
    are sanitised by `plain_name`, because they appear in tables, terminals and pages.

    Raises EvaluationError naming file and line for a malformed record. Also raises EvaluationError if no file matches,
    and for two files with the same stem if `unit` is "file".
    """
    return [pair for name in pair_files(source, suite) for pair in read_pairs(source, suite, name)]


def pair_files(source: RawSource, suite: SuiteSettings) -> list[str]:
    """Return the names of the suite's files, sorted. Raises EvaluationError if there are no files. If `unit` is "file",
    also raises EvaluationError for two files with the same stem.
    """
    names = source.names(suite.files)
    if suite.track == "multilingual":
        names = [name for name in names if is_table(name) and PurePosixPath(name).name not in HUB_METADATA]
    if not names:
        there = source.names()
        listed = ", ".join(there[:_NAMES_SHOWN]) + (", ..." if len(there) > _NAMES_SHOWN else "")
        raise EvaluationError(
            f"{source.root}: no file matches {suite.files!r}, the `files` of the suite; there are: {listed}"
        )
    stems = [PurePosixPath(name).stem for name in names]
    repeated = next((stem for stem in stems if stems.count(stem) > 1), None)
    if suite.unit == "file" and repeated is not None:
        raise EvaluationError(f"{source.root}: several files matching {suite.files!r} are called {repeated!r}")
    return names


def read_pairs(source: RawSource, suite: SuiteSettings, name: str) -> Iterator[Item]:
    """Yield the pairs of one file in order. Raises EvaluationError naming file and line for malformed pairs."""
    return _READERS[suite.format](source, suite, name)


def _blimp(source: RawSource, suite: SuiteSettings, name: str) -> Iterator[Item]:
    read, stem = _pair_of_file if suite.unit == "file" else _pair, PurePosixPath(name).stem
    return (read(record, stem) for record in read_json_lines(source, name))


def _rows(source: RawSource, suite: SuiteSettings, name: str) -> Iterator[Item]:
    columns, stem = suite.columns, paradigm_of_file(name, suite)
    if columns is None:
        raise ConfigError("columns: got none, expected the columns of a pair, because the format is rows")
    named = (columns.paradigm, columns.phenomenon) if suite.unit == "paradigm" else (None, None)
    prefixes = () if columns.prefix is None else (columns.prefix,)
    wanted = {column for column in (columns.good, *columns.wrong, *prefixes, *named) if column is not None}
    wanted |= {column.partition(".")[0] for column in wanted}
    # Spreadsheet programs also put quotation marks around cells of tab-separated tables. `read_rows` expects
    # tab-separated tables without quotation marks, as in GLUE, so the tables of suites are read with `read_csv`.
    is_tsv = name.lower().endswith(".tsv")
    # A document's name is a hash of all columns of its row. If rows get such names, read all columns.
    names_documents = suite.unknown_tokens == "wrong"
    asked = None if names_documents else wanted
    records = some(read_csv(source, name), name) if is_tsv else read_rows(source, name, (), asked)
    for index, record in enumerate(records):
        paradigm = stem if named[0] is None else plain_name(record.text(named[0]))
        phenomenon = paradigm if named[1] is None else plain_name(record.text(named[1]))
        # Spaces at the ends of a cell are usually typing errors, and would add tokens to only one sentence of a pair.
        # Remove these spaces.
        texts = [record.text(column).strip() for column in (columns.good, *columns.wrong)]
        given = "".join(f"{record.text(column).strip()} " for column in prefixes)
        candidates = tuple(Candidate(text, given) for text in texts)
        row = document_name(index, record) if names_documents else str(record.line)
        yield Item(paradigm, phenomenon, row, candidates)


def _alternating_lines(source: RawSource, suite: SuiteSettings, name: str) -> Iterator[Item]:
    """Yield pairs of adjacent lines. Blank lines are allowed only between pairs: within a pair, a blank line would
    shift all later pairs. Raises EvaluationError naming the file for a pair that is incomplete or contains a blank
    line, and for a file without pairs.
    """
    stem = plain_name(PurePosixPath(name).stem)
    phenomenon = stem.partition("-")[0]  # The names of Zorro's files are <phenomenon>-<paradigm>.txt.
    lines, number = decode_lines(source, name), 0
    for number, first in lines:
        second_number, second = next(lines, (0, ""))
        if second_number != number + 1:
            raise EvaluationError(
                f"{name}:{number + 1}: expected the second sentence of the pair that begins in line {number}, got "
                f"{'an empty line' if second else 'the end of the file'}"
            )
        good, bad = (first, second) if suite.good_line == "first" else (second, first)
        yield minimal_pair(stem, phenomenon, str(number), good.strip(), bad.strip())
    if number == 0:
        raise EvaluationError(f"{name}: the file contains no records")


_READERS: dict[PairFormat, Callable[[RawSource, SuiteSettings, str], Iterator[Item]]] = {
    "blimp": _blimp,
    "rows": _rows,
    "alternating_lines": _alternating_lines,
    "multiple_choice": read_choices,
    **BABYLM_READERS,
}
_NAMES_SHOWN = 8


def _pair(record: Record, stem: str) -> Item:
    paradigm = plain_name(_optional(record, "UID", stem))
    term = plain_name(_optional(record, "linguistics_term", paradigm))
    return minimal_pair(
        paradigm, PHENOMENON_OF_TERM.get(term, term), _pair_id(record), *_sentences(record), _field(record)
    )


def _pair_of_file(record: Record, stem: str) -> Item:
    name = plain_name(stem)
    return minimal_pair(name, name, str(record.line), *_sentences(record), _field(record))


def _sentences(record: Record) -> tuple[str, str]:
    return record.text("sentence_good"), record.text("sentence_bad")


def _field(record: Record) -> str:
    field = plain_name(_optional(record, "field", ""))
    return FIELD_SPELLINGS.get(field, field)


def _optional(record: Record, name: str, default: str) -> str:
    return record.text(name) if name in record.values else default


def _pair_id(record: Record) -> str:
    # BLiMP's release has the field `pairID` (text), and its copy on the hub the field `pair_id` (integer). Other suites
    # have neither field.
    value: Any = record.values.get("pairID", record.values.get("pair_id", record.line))
    if not isinstance(value, str | int):
        raise EvaluationError(f"{record.where}: the pair's id must be a text or an integer, got {shorten(value)}")
    return str(value)


def check_size(pairs: Sequence[Item], suite: str, expected: ExpectedSize) -> None:
    """Raise EvaluationError if the number of pairs or of paradigms differs from the number in `expected`. If the
    paradigms are those of a suite in POOLED_FILES, the message names this suite."""
    paradigms = {pair.paradigm for pair in pairs}
    right_paradigms = expected.paradigms in (None, len(paradigms))
    if right_paradigms and expected.pairs in (None, len(pairs)):
        return
    wanted = [
        f"{number:,} {name}"
        for number, name in ((expected.paradigms, "paradigms"), (expected.pairs, "pairs"))
        if number is not None
    ]
    known = next(
        (f" (the paradigms are the paradigms of {name})" for name, names in POOLED_FILES.items() if paradigms == names),
        "",
    )
    raise EvaluationError(
        f"suite {suite}: got {len(paradigms):,} paradigms or files with {len(pairs):,} pairs{known}, "
        f"expected {' with '.join(wanted)}"
    )


def check_pairs(source: RawSource, suite: ScoringSettings, rows: MostRows) -> None:
    """Check the files of a suite by reading them. A file is skipped if `rows` limits the number of its rows, that is,
    does not return None. Raises the EvaluationErrors of `read_minimal_pairs`.

    If all files were read, the size of the suite is also checked.
    """
    names = pair_files(source, suite)
    whole = [name for name in names if rows(name) is None]
    pairs = [pair for name in whole for pair in read_pairs(source, suite, name)]
    if suite.expected is not None and whole == names:
        check_size(pairs, suite.suite, suite.expected)


def choose_pairs(pairs: Sequence[Item], pairs_per_paradigm: int | None, seed: int) -> list[Item]:
    """Return at most `pairs_per_paradigm` pairs of every paradigm, drawn with `seed`, in their original order. If
    `pairs_per_paradigm` is None, return all pairs.

    A smaller number yields a subset of the pairs of a larger number. The pairs drawn from a paradigm do not depend on
    the other paradigms. Raises ConfigError if `pairs_per_paradigm` is below 1.
    """
    if pairs_per_paradigm is None:
        return list(pairs)
    if pairs_per_paradigm < 1:
        raise ConfigError(f"pairs_per_paradigm must be at least 1 or null, got {pairs_per_paradigm}")
    kept: list[int] = []
    for paradigm, positions in positions_by(pair.paradigm for pair in pairs).items():
        order = generator(seed, "minimal pairs", paradigm).permutation(len(positions))
        kept.extend(positions[index] for index in order[:pairs_per_paradigm])
    return [pairs[index] for index in sorted(kept)]


def positions_by(names: Iterable[str]) -> dict[str, list[int]]:
    """Map each name to its positions in `names`, in the order of first occurrence."""
    positions: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        positions.setdefault(name, []).append(index)
    return positions

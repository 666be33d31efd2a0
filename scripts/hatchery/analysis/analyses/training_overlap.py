"""Sentences of minimal pairs that occur in the training text of the models.

Source: no paper; Hatchery adds this analysis. If the training text contains only the good sentence of a pair, a model
can judge the pair from memory. A sentence occurs in the text if one line contains its words in sequence, with equal
spelling and punctuation; a sentence of one or two words must be a whole line. Every experiment with minimal pairs has
this analysis.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hatchery.analysis.analyses.analysis import (
    Analysis,
    AnalysisSettings,
    Findings,
    Numbers,
    Study,
)
from hatchery.analysis.analyses.misjudged_pairs import are_pairs, scored_pairs
from hatchery.analysis.analyses.needs import CORPUS, MINIMAL_PAIRS, PAIR_FILES, corpora, evaluated, pair_files
from hatchery.analysis.analyses.paired_tests import manifests_of
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import table
from hatchery.units import count

Words = tuple[str, ...]
_FIRST = 3
"""Number of initial words by which sentences are indexed. A sentence with fewer words is only found if it is a complete
line.
"""
NOTE = (
    "A sentence is in the training text if one line of this text contains all words of the sentence in "
    f"sequence, with the same spelling and punctuation. A sentence with fewer than {_FIRST} words must be a "
    "complete line. Words are separated by white space. If only the good sentence of a pair is in the "
    "training text, a model can answer from memory instead of grammar."
)


@dataclass(frozen=True, kw_only=True)
class TrainingOverlapSettings(AnalysisSettings):
    """Settings of the analysis. The analysis has only the keys of every analysis."""


def count_overlap(settings: TrainingOverlapSettings, study: Study) -> Findings:
    """Return a row for each suite and corpus. The row contains the numbers of the suite's good and bad sentences that
    occur in the training text. Raises EvaluationError or ManifestError for unreadable files.
    """
    pairs: dict[str, list[tuple[Words, Words]]] = {}
    suites = {suite: models for suite, models in manifests_of(study, MINIMAL_PAIRS).items() if are_pairs(models)}
    for suite, models in suites.items():
        frame = scored_pairs(next(path for paths in models.values() for path in paths), _files(study, suite))
        sentences = zip(frame["good"], frame["bad"], strict=True)
        pairs[suite] = [(tuple(good.split()), tuple(bad.split())) for good, bad in sentences]
    wanted = {words for each in pairs.values() for pair in each for words in pair}
    corpora = study.manifests(CORPUS)
    # Several experiments of a study may use the same corpus, so read each corpus only once.
    read = {path: sentences_in(path, wanted) for path in dict.fromkeys(corpora.values())}
    rows = [_row(name, suite, each, read[path]) for name, path in corpora.items() for suite, each in pairs.items()]
    header = ("suite", "pairs", "good sentence in the training text", "bad sentence", "only the good sentence")
    several = len(corpora) > 1
    shown = table(
        (*(["experiment"] if several else []), *header),
        [
            [*([str(row["experiment"])] if several else []), readable(str(row["suite"]))]
            + [count(row["pairs"])]
            + [
                f"{count(row[key])} ({100 * row[key] / max(1, row['pairs']):.1f} %)"
                for key in ("good", "bad", "good_alone")
            ]
            for row in rows
        ],
        words=2 if several else 1,
        caption="Sentences in the training text",
    )
    return Findings(rows, [shown], [NOTE])


def _files(study: Study, suite: str) -> Path:
    return study.tables[f"{PAIR_FILES}/{suite}"]


def _row(experiment: str, suite: str, pairs: Sequence[tuple[Words, Words]], found: set[Words]) -> Numbers:
    flags = [(good in found, bad in found) for good, bad in pairs]
    return {
        "experiment": experiment,
        "suite": suite,
        "pairs": len(pairs),
        "good": sum(good for good, _ in flags),
        "bad": sum(bad for _, bad in flags),
        "good_alone": sum(good and not bad for good, bad in flags),
    }


def sentences_in(corpus: Path, wanted: Iterable[Words]) -> set[Words]:
    """Return the sentences of `wanted` that occur in the training text of a corpus, given the path of its manifest."""
    from hatchery.artifacts.manifests import read_manifest
    from hatchery.tokenization.documents import TRAINING_SPLIT, read_batches, shards_by_split

    short, by_beginning = set[Words](), dict[Words, list[Words]]()
    for words in wanted:
        if len(words) < _FIRST:
            short.add(words)
        else:
            by_beginning.setdefault(words[:_FIRST], []).append(words)
    found = set[Words]()
    for shard in shards_by_split(read_manifest(corpus)).get(TRAINING_SPLIT, ()):
        for batch in read_batches(shard):
            for line in (line for text in batch.texts for line in text.split("\n")):
                words = tuple(line.split())
                if len(words) < _FIRST:
                    found |= {words} & short
                    continue
                for place, beginning in enumerate(zip(words, words[1:], words[2:], strict=False)):
                    for sentence in by_beginning.get(beginning, ()):
                        if words[place : place + len(sentence)] == sentence:
                            found.add(sentence)
    return found


ANALYSIS = Analysis(
    title="Are sentences of the suites in the training text?",
    version=1,
    settings=TrainingOverlapSettings,
    run=count_overlap,
    needs=(corpora, pair_files, evaluated(MINIMAL_PAIRS)),
    own=lambda experiment: {} if experiment.minimal_pairs else None,
    place=40,
)

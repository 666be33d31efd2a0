"""From sentence scores to decisions and accuracies of minimal pairs.

A pair is right only when the good sentence scores strictly higher (the rule of BLiMP and LTG-BERT): that is `accuracy`.
Ties are counted apart, and `accuracy_ties_correct` calls them right, which is BabyLM's rule. Both are fractions of 1.

Decisions are also written in the files that BabyLM 2023 collects: the text that a model prefers, pair by pair. Source:
the BabyLM evaluation pipeline (docs/papers/babylm-evaluation.md, "Prediction files"): `predictions.txt` with a header
and one line per pair, and one JSON line per task in the collected file. Ties go to the good sentence there, which
stands first, unlike the strict rule of our accuracies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hatchery.evaluation.minimal_pairs.pairs import MinimalPair, positions_by

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

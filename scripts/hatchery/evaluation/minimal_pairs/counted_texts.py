"""Count correct decisions as BabyLM's organisers do: compare the preferred text of each row with the correct text. The
errors of the organisers' code are reproduced.

Source: docs/papers/babylm-2026.md, "Prediction files" and "Leaderboard". Two scores of the organisers differ from the
fraction of correct decisions: the score of EWoK at checkpoints, and the score of entity tracking in a submission.
"""

import dataclasses
from collections.abc import Sequence

from hatchery.evaluation.minimal_pairs.babylm_items import NOTHING, predicted_text
from hatchery.evaluation.minimal_pairs.decisions import Decision
from hatchery.evaluation.minimal_pairs.items import Item
from hatchery.evaluation.minimal_pairs.pairs import positions_by, read_minimal_pairs
from hatchery.evaluation.settings import SuiteSettings
from hatchery.raw.registration import RawSource


def right_texts(items: Sequence[Item], source: RawSource, suite: SuiteSettings) -> list[tuple[str, str]]:
    """Return (paradigm, correct text) for each row that BabyLM's organisers compare with a prediction, in the order of
    the rows.

    For entity tracking, BabyLM's evaluation server compares all rows whose correct option does not contain NOTHING.
    Some of these rows are not in `items`, because rows with NOTHING in a wrong option are not items. For EWoK, the
    collator (the organisers' script that joins all predictions) compares a prediction, which consists of context and
    target, with the target alone.
    """
    if suite.counted_by == "collator" and suite.format == "ewok":
        return [(item.paradigm, item.candidates[0].completion) for item in items]
    if suite.counted_by == "server" and suite.format == "entity_tracking":
        everything = read_minimal_pairs(source, dataclasses.replace(suite, edition=2025, counted_by=None))
        items = [item for item in everything if NOTHING not in item.candidates[0].completion]
    return [(item.paradigm, predicted_text(item.candidates[0], suite)) for item in items]


def counted_by_text(
    items: Sequence[Item], decisions: Sequence[Decision], rights: Sequence[tuple[str, str]], suite: SuiteSettings
) -> list[Decision]:
    """Return the decisions with the credit that BabyLM's organisers give. The organisers compare the nth preferred text
    of a paradigm with the nth correct text of this paradigm. The credit is 1 if the two texts are equal, else 0.

    `rights` is the result of `right_texts`.
    """
    compared_with = positions_by(paradigm for paradigm, _ in rights)
    counted = list(decisions)
    for paradigm, positions in positions_by(item.paradigm for item in items).items():
        # The two lists may differ in length, because `rights` may have more rows than `items`.
        for position, row in zip(positions, compared_with[paradigm], strict=False):
            preferred = predicted_text(items[position].candidates[decisions[position].chosen], suite)
            is_right = preferred.strip() == rights[row][1].strip()
            counted[position] = dataclasses.replace(decisions[position], credit=float(is_right))
    return counted

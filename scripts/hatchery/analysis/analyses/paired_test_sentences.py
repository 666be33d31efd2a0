"""Answer and notes of significance tests between models, as sentences generated from the rows of the findings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hatchery.analysis.comparability import ONE_SEED

MOST_NAMED = 6
"""Maximum number of comparisons per suite or task that the answer names. If there are more comparisons, the answer
gives only their number.
"""
BEYOND_CHANCE = 0.05


@dataclass(frozen=True)
class Nouns:
    """Nouns of an analysis, for columns of `numbers.csv` and for sentences.

    `group` is the noun for a suite or task, `items` is the noun for its minimal pairs or rows, and `runs` is the noun
    for the repetitions of a model. `runs_of` is the noun for these repetitions in a sentence about one model. `title`
    is the caption of the table, `what` explains the compared numbers, and `nothing` is the note if there are no
    comparisons.
    """

    title: str
    group: str
    items: str
    runs: str
    runs_of: str
    what: str
    nothing: str


def has_single(row: Mapping[str, Any]) -> bool:
    """Return True if at least one of the two compared models was pretrained with a single seed."""
    return min(row["seeds"], row["against_seeds"]) < 2


def is_beyond_chance(row: Mapping[str, Any], runs: str) -> bool:
    """Return True if the difference between two models is significant in the test over items, and also exceeds both of
    its standard deviations (over runs and over pretraining seeds).

    Return False if one of the two models has only one pretraining seed. If runs failed, the difference without these
    runs must have the same sign, and must also exceed its standard deviation.
    """
    if has_single(row):
        return False
    over = [row[f"deviation_over_{name}"] or 0.0 for name in (runs, "seeds")]
    readings = [(row["difference"], max(over))]
    if row.get("failed") or row.get("against_failed"):
        readings.append((row["difference_without_failed"], row["deviation_without_failed"] or 0.0))
    beyond = all(abs(difference) > deviation for difference, deviation in readings)
    one_direction = len({difference > 0 for difference, _ in readings}) == 1
    return bool(row["p_corrected"] < BEYOND_CHANCE and beyond and one_direction)


def answer(rows: Sequence[Mapping[str, Any]], labels: Mapping[str, str], nouns: Nouns) -> list[str]:
    """Return sentences that state, for each suite or task, which models differ significantly and which do not.

    If a suite or task has more than MOST_NAMED comparisons, a sentence gives the number of its significant comparisons
    instead.
    """
    from hatchery.analysis.summary_rows import summarised_text
    from hatchery.rendering.escaping import listed, readable

    sentences = []
    for items in dict.fromkeys(row[nouns.group] for row in rows):
        own = [row for row in rows if row[nouns.group] == items]
        beyond = [row for row in own if is_beyond_chance(row, nouns.runs)]
        if len(own) > MOST_NAMED:
            sentences.append(f"On {readable(items)}, {len(beyond)} of {len(own)} pairs of models differ beyond chance.")
            continue
        won: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        for row in beyond:
            first, second = (labels.get(row[key], row[key]) for key in ("model", "against"))
            ahead, behind = (first, second) if row["difference"] > 0 else (second, first)
            won.setdefault(behind, []).append((ahead, row))
        for behind, found in won.items():
            leads = listed(f"{abs(row['difference']):+.1f}" for _, row in found)
            p_value = _p_text(max(row["p_corrected"] for _, row in found))
            sentences.append(
                f"{listed(ahead for ahead, _ in found)} {'is' if len(found) == 1 else 'are'} ahead of {behind} on "
                f"{readable(items)} ({leads} points, corrected p {p_value})."
            )
        for row in own:
            if row in beyond:
                continue
            first, second = (labels.get(row[key], row[key]) for key in ("model", "against"))
            verb = "differ as trained models" if row["p_corrected"] < BEYOND_CHANCE else "do not differ beyond chance"
            seeds = "; only one pretraining seed" if has_single(row) else ""
            both = [summarised_text(row[key]) for key in ("accuracy_percent", "against_accuracy_percent")]
            sentences.append(
                f"{first} and {second} {verb} on {readable(items)} ({' and '.join(both)}, "
                f"corrected p {_p_text(row['p_corrected'])}{seeds})."
            )
    return sentences


def _p_text(value: float) -> str:
    return f"= {value:.3f}" if value >= 0.001 else "< 0.001"


def notes_of(rows: Sequence[Mapping[str, Any]], nouns: Nouns) -> list[str]:
    """Return notes on the columns, on the test, and on rows with failed runs or a single pretraining seed."""
    item = nouns.items.removesuffix("s")
    counts = [row[key] for row in rows for key in (nouns.runs, f"against_{nouns.runs}")]
    several = (
        f"For a model with several {nouns.runs_of}, a {item} counts with the share of {nouns.runs} that answer it "
        f"correctly, and the model with the larger share wins the {item}. The deviation of a difference is the root "
        f"of the sum of squares of the known deviations over {nouns.runs}. A difference that is not larger than "
        f"its deviation is not bold, whatever its p, because one {nouns.runs.removesuffix('s')} may cause the "
        "difference."
    )
    if nouns.runs != "seeds":
        several += " A difference that is not larger than its deviation over pretraining seeds is not bold either."
    failed = (
        "A run fails if it gives the same answer for every row, or if its answers are no better than chance. If runs "
        "failed, a difference is bold only if two further conditions hold: without these runs, the difference has the "
        "same direction and is larger than its deviation."
    )
    return [
        nouns.what,
        f"{nouns.items.capitalize()} won: only the first model answers these {nouns.items} correctly; "
        f"{nouns.items} lost: only the second model answers these {nouns.items} correctly.",
        *([several] if max(counts) > 1 else []),
        *([failed] if any(row.get("failed") or row.get("against_failed") for row in rows) else []),
        f"p: the probability of a difference at least this large if, on every {item}, chance decided which of the two "
        f"models gave which answer (exact; McNemar's test). Corrected p: corrected for the {len(rows)} "
        f"comparison{'s' if len(rows) > 1 else ''} in this table (Holm). A difference is bold if the corrected p is "
        f"below {BEYOND_CHANCE:g}, so that the choice of the {nouns.items} does not explain the difference, and if "
        "both models have several pretraining seeds.",
        f"The test generalises to other {nouns.items}, but not to other trainings of the models. The test assumes "
        f"independent {nouns.items}; if many {nouns.items} are made from one template, p is too small.",
        *([ONE_SEED] if any(map(has_single, rows)) else []),
    ]

"""Sentences that answer the question of an experiment: which models, if any, have the best scores. Scores are averages
over several tasks, as in the summary.

`Scores.best` decides which models lead, as for the bold numbers of tables.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hatchery.analysis.aggregates import SLACK
from hatchery.analysis.scores import Measure, Scores, direction
from hatchery.analysis.summary_rows import SummaryRow, decimals_of, summarised_text
from hatchery.evaluation.basis import differing
from hatchery.rendering.escaping import listed

MOST_NAMED = 3
"""Maximum number of averages or models that a sentence names. All leading models and at least one other model are named
even if their number is larger.
"""


def answer(scores: Scores, headline: Sequence[Measure]) -> list[str]:
    """Return sentences about the best models on each average of scores in `headline`.

    Sentences about leading models require an average with a known direction (whether higher is better) and comparable
    scores of at least two models. The last sentence names models that are clearly better than a blind guess on none of
    the averages for which the score of a blind guess is known.
    """
    leads: dict[tuple[str, ...], list[str]] = {}
    open_measures: list[str] = []
    single_seeds: list[str] = []
    for measure in scores.present(headline):
        rows = scores.with_means(measure)
        if not direction(measure.metric) or len(rows) < 2 or differing(row.basis for row in rows.values()):
            continue
        best = scores.best(measure)
        if best:
            leaders = tuple(model for model in rows if model in best)
            leads.setdefault(leaders, []).append(f"{measure.label} ({_numbers(scores, measure, rows, leaders)})")
            continue
        # `best` names no leader if a leading model has only one seed. `_one_seed_decides` tells if this is the only
        # reason.
        seeds = single_seeds if _one_seed_decides(scores, measure, rows) else open_measures
        seeds.append(f"{measure.label} ({_numbers(scores, measure, rows, ())})")
    sentences = []
    for leaders, measures in leads.items():
        names = listed(scores.label(model) for model in leaders)
        tied = ", without a difference beyond noise between these models," if len(leaders) > 1 else ""
        sentences.append(f"{names} lead{'' if len(leaders) > 1 else 's'}{tied} on {_shortened(measures)}.")
    if open_measures:
        sentences.append(f"No model leads beyond noise on {_few(open_measures)}.")
    if single_seeds:
        sentences.append(
            f"The scores differ on {_few(single_seeds)}, but with one pretraining seed, a lead may be due to the seed."
        )
    return sentences + _guessing(scores, headline)


def _numbers(scores: Scores, measure: Measure, rows: Mapping[str, SummaryRow], leaders: Sequence[str]) -> str:
    """Return text about one average: the scores of the leading models `leaders`, followed by names and scores of the
    next best models. Each score is a mean over seeds.
    """
    sign = direction(measure.metric)
    others = sorted((model for model in rows if model not in leaders), key=lambda model: -sign * _mean(rows[model]))
    named = others[: max(1, MOST_NAMED - len(leaders))]
    decimals = decimals_of(measure.metric)
    values = [summarised_text(_mean(rows[model]), decimals) for model in leaders]
    rest = [f"{scores.label(model)} {summarised_text(_mean(rows[model]), decimals)}" for model in named]
    more = [f"{len(others) - len(named)} more"] if len(others) > len(named) else []
    return "; ".join(filter(None, [listed(values) if values else "", ", ".join(rest + more)]))


def _mean(row: SummaryRow) -> float:
    assert row.mean is not None
    return row.mean


def _one_seed_decides(scores: Scores, measure: Measure, rows: Mapping[str, SummaryRow]) -> bool:
    """Return True if more pretraining seeds could decide which model leads; call this function if `Scores.best` names
    no leader. The result is True if some model has a single seed, and one of two conditions holds: the noise of a
    model's mean score is unknown, or `Scores.best` would name a leader if every model had several seeds.
    """
    if all(row.seeds > 1 for row in rows.values()):
        return False
    if any(row.noise == math.inf for row in rows.values()):
        return True
    counted = [replace(row, seeds=max(2, row.seeds)) if row in rows.values() else row for row in scores.rows]
    return bool(replace(scores, rows=counted).best(measure))


def _guessing(scores: Scores, headline: Sequence[Measure]) -> list[str]:
    """Return a sentence that names the models that are clearly better than a blind guess on none of the averages of
    scores. Averages for which the score of a blind guess is unknown are not considered.

    A model is clearly better if its lead over the guess exceeds the standard deviation of its score over runs (0 for a
    single run). If there are no models to name, or more than MOST_NAMED, there is no sentence.
    """
    beats: dict[str, list[bool]] = {}
    for measure in headline:
        sign = direction(measure.metric)
        for model, row in scores.with_means(measure).items():
            if sign and row.blind_guess is not None:
                beats.setdefault(model, []).append(
                    sign * (_mean(row) - row.blind_guess) > (0.0 if row.std is None else row.std) + SLACK
                )
    names = [scores.label(model) for model in scores.models if model in beats and not any(beats[model])]
    if not names or len(names) > MOST_NAMED:
        return []
    are = "is" if len(names) == 1 else "are"
    return [
        f"{listed(names)} {are} not clearly better than a blind guess on any average for which the score of a blind "
        "guess is known."
    ]


def _few(measures: Sequence[str]) -> str:
    """Return the names in `measures`, each an average of scores, as a phrase; if there are more than MOST_NAMED names,
    return their number instead.
    """
    return listed(measures) if len(measures) <= MOST_NAMED else f"{len(measures)} averages"


def _shortened(measures: Sequence[str]) -> str:
    more = len(measures) - MOST_NAMED
    shown = [*measures[:MOST_NAMED], f"{more} more average{'s' if more > 1 else ''}"] if more > 0 else measures
    return listed(shown)

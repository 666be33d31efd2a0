"""Minimal pairs that models misjudge, and biased paradigms, in which a superficial property reveals the good sentence.

Source: no paper; Hatchery adds this analysis. An untrained model has learned no grammar. If its accuracy on a paradigm
is far from 50 %, the good and the bad sentences differ in a superficial property, most often in length. The chance
level of this paradigm is then not 50 %. Every experiment with minimal pairs has this analysis.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.analysis.analyses.analysis import (
    Analysis,
    AnalysisSettings,
    Findings,
    Numbers,
    Study,
)
from hatchery.analysis.analyses.needs import MINIMAL_PAIRS, PAIR_FILES, evaluated, pair_files
from hatchery.analysis.analyses.own_tests import untrained_models
from hatchery.analysis.analyses.paired_tests import manifests_of
from hatchery.analysis.settings import labels_of
from hatchery.errors import EvaluationError
from hatchery.rendering.table import Column, Content, Group, Table
from hatchery.settings.fields import NotEmpty

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

FAR_FROM_HALF, BY_LENGTH, CHANCE = 0.1, 0.25, 0.001
"""Thresholds for biased paradigms.

A paradigm is biased if one of two conditions is true. First, the accuracy (a share) of untrained models differs from
0.5 by at least FAR_FROM_HALF, and the p value, corrected for the number of paradigms, is below CHANCE. Second, the
accuracy of choosing the shorter sentence differs from 0.5 by at least BY_LENGTH.
"""
PARADIGMS_SHOWN, PAIRS_SHOWN, OF_ONE_PARADIGM, PAIRS_LISTED = 20, 20, 3, 1000
NAMED_UP_TO, HALF_OF_SEEDS = 4, 0.5


@dataclass(frozen=True, kw_only=True)
class MisjudgedPairsSettings(AnalysisSettings):
    """Settings of the analysis: the models that were not trained, with whose decisions it compares other models."""

    untrained: tuple[NotEmpty, ...] = ()
    """Models that were neither trained nor initialised from another model. Pairs that these models judge correctly may
    be biased. The default analysis of an experiment sets this key."""


@dataclass(frozen=True)
class _Suite:
    """A suite of minimal pairs with the models' judgements.

    `pairs` has the columns paradigm, pair_id, good, bad, tokens_good, tokens_bad. All arrays are float64 [pairs].
    `wrong` maps each trained model to the fraction of its seeds that misjudge a pair. `margins` is the score of the bad
    sentence minus the score of the good sentence in nats, averaged over trained models and seeds. `guessed` is the
    fraction of seeds that judge a pair correctly, averaged over untrained models, or None without untrained models.
    """

    pairs: "pl.DataFrame"
    wrong: Mapping[str, "np.ndarray"]
    margins: "np.ndarray"
    guessed: "np.ndarray | None"


def find(settings: MisjudgedPairsSettings, study: Study) -> Findings:
    """Return rows of two kinds: `paradigm` rows for all paradigms, and `pair` rows for the misjudged pairs.

    Raises EvaluationError if the pairs that a model scored are not the pairs in the raw files of the suite.
    """
    untrained = set(settings.untrained)
    judged = {
        suite: _read(models, study.tables[f"{PAIR_FILES}/{suite}"], untrained)
        for suite, models in manifests_of(study, MINIMAL_PAIRS).items()
        if are_pairs(models)
    }
    paradigms = [row for suite, each in judged.items() for row in _paradigms(suite, each)]
    pairs = [row for suite, each in judged.items() for row in _misjudged(suite, each)]
    biased = [row for row in paradigms if row["biased"]]
    tables = [*_biased_table(biased), *_pair_table(pairs, judged, labels_of(study.runs))]
    return Findings(paradigms + pairs, tables, _notes(judged, paradigms, biased, pairs))


def are_pairs(models: Mapping[str, Sequence[Path]]) -> bool:
    """Return True if each item of a suite has two candidate sentences. With more candidate sentences per item,
    `scores.parquet` has other columns.
    """
    import polars as pl

    from hatchery.artifacts.manifests import read_manifest

    first = next(path for paths in models.values() for path in paths)
    return "score_good" in pl.read_parquet_schema(read_manifest(first).file("scores.parquet"))


def _read(models: Mapping[str, Sequence[Path]], source: Path, untrained: Collection[str]) -> _Suite:
    import numpy as np
    import polars as pl

    from hatchery.artifacts.manifests import read_manifest

    scores = {
        model: [pl.read_parquet(read_manifest(path).file("scores.parquet")) for path in paths]
        for model, paths in models.items()
    }
    first = next(path for paths in models.values() for path in paths)
    pairs = scored_pairs(first, source)
    for model, frames in scores.items():
        for path, frame in zip(models[model], frames, strict=True):
            if not frame.select("paradigm", "pair_id").equals(pairs.select("paradigm", "pair_id")):
                raise EvaluationError(
                    f"{path}: the pairs differ from the pairs of {source}, expected scores of the same pairs"
                )
    lengths = next(frame for frames in scores.values() for frame in frames).select("tokens_good", "tokens_bad")
    wrong = {
        model: np.mean([(frame["outcome"] != "correct").to_numpy() for frame in frames], axis=0)
        for model, frames in scores.items()
    }
    trained = [model for model in scores if model not in untrained]
    margins = [(frame["score_bad"] - frame["score_good"]).to_numpy() for model in trained for frame in scores[model]]
    guesses = [1 - wrong[model] for model in scores if model in untrained]
    return _Suite(
        pairs.hstack(lengths),
        {model: wrong[model] for model in trained},
        np.mean(margins, axis=0) if margins else np.zeros(pairs.height),
        np.mean(guesses, axis=0) if guesses else None,
    )


def scored_pairs(scores: Path, source: Path) -> "pl.DataFrame":
    """Read from the raw files of a suite the pairs that were scored. `scores` and `source` are the manifests of the
    scores and of the raw files. Columns: paradigm, pair_id, good, bad.
    """
    import polars as pl

    from hatchery.artifacts.manifests import read_manifest
    from hatchery.evaluation.minimal_pairs.pairs import choose_pairs, read_minimal_pairs
    from hatchery.evaluation.settings import ScoringSettings
    from hatchery.raw.registration import open_source
    from hatchery.typed import build

    scored = read_manifest(scores).settings
    settings = build(ScoringSettings, {key: value for key, value in scored.items() if not key.startswith("stage")})
    read = read_minimal_pairs(open_source(source), settings)
    chosen = choose_pairs(read, settings.pairs_per_paradigm, settings.seed)
    rows = [(pair.paradigm, pair.item_id, *(candidate.text for candidate in pair.candidates)) for pair in chosen]
    return pl.DataFrame(rows, ["paradigm", "pair_id", "good", "bad"], orient="row")


_EMPTY: Numbers = dict.fromkeys(
    (
        *("kind", "suite", "paradigm", "pairs", "untrained_percent", "p_value", "tokens_good", "tokens_bad"),
        *("shorter_is_good_percent", "biased", "pair_id", "good", "bad", "misjudged_by", "margin_nats"),
    )
)


def _paradigms(suite: str, judged: _Suite) -> Iterator[Numbers]:
    """Yield a row for each paradigm: the accuracy of untrained models, and the mean numbers of tokens of the good and
    bad sentences.
    """
    from scipy.stats import binomtest

    paradigms = judged.pairs.with_row_index().partition_by("paradigm", as_dict=True, maintain_order=True)
    for (paradigm,), rows in paradigms.items():
        good, bad = rows["tokens_good"].to_numpy(), rows["tokens_bad"].to_numpy()
        shorter = float(((good < bad) + 0.5 * (good == bad)).mean())
        share, p_value = None, None
        if judged.guessed is not None:
            share = float(judged.guessed[rows["index"].to_numpy()].mean())
            p_value = float(binomtest(round(share * rows.height), rows.height).pvalue)
        # The difference is rounded, because 0.6 - 0.5 is less than 0.1 in floating point.
        far = share is not None and round(abs(share - 0.5), 9) >= FAR_FROM_HALF
        beyond_chance = p_value is not None and p_value * len(paradigms) < CHANCE
        yield _EMPTY | {
            **{"kind": "paradigm", "suite": suite, "paradigm": paradigm, "pairs": rows.height},
            "untrained_percent": None if share is None else round(100 * share, 4),
            "p_value": None if p_value is None else float(f"{p_value:.3g}"),
            "tokens_good": round(float(good.mean()), 4),
            "tokens_bad": round(float(bad.mean()), 4),
            "shorter_is_good_percent": round(100 * shorter, 4),
            "biased": int((far and beyond_chance) or abs(shorter - 0.5) >= BY_LENGTH),
        }


def _misjudged(suite: str, judged: _Suite) -> list[Numbers]:
    """Return at most PAIRS_LISTED minimal pairs that trained models misjudge. The pairs are in descending order of the
    fraction of wrong judgements, averaged over these models. Pairs with equal fractions are in descending order of
    `margins`: the score of the bad sentence minus the score of the good sentence.
    """
    import numpy as np

    if not judged.wrong:
        return []
    shares = np.mean(list(judged.wrong.values()), axis=0)
    order = np.lexsort((np.arange(len(shares)), -judged.margins, -shares))
    rows = judged.pairs.to_dicts()
    return [
        _EMPTY
        | {**{"kind": "pair", "suite": suite}, **rows[index]}
        | {"misjudged_by": ";".join(model for model, wrong in judged.wrong.items() if wrong[index] >= HALF_OF_SEEDS)}
        | {"margin_nats": round(float(judged.margins[index]), 4)}
        for index in order[:PAIRS_LISTED].tolist()
        if shares[index] > 0
    ]


def _biased_table(biased: Sequence[Numbers]) -> list[Table]:
    from hatchery.rendering.escaping import readable

    rows: list[list[Content]] = [
        [
            f"{readable(row['suite'])}: {readable(row['paradigm'])}",
            f"{row['pairs']:,}",
            "-" if row["untrained_percent"] is None else f"{row['untrained_percent']:.1f}",
            f"{row['tokens_good']:.1f}",
            f"{row['tokens_bad']:.1f}",
            f"{row['shorter_is_good_percent']:.1f}",
        ]
        for row in sorted(biased, key=_bias, reverse=True)[:PARADIGMS_SHOWN]
    ]
    headings = (
        "pairs",
        "correct, untrained model (%)",
        "tokens, good sentence",
        "tokens, bad sentence",
        "shorter sentence is good (%)",
    )
    columns = [Column("paradigm", words=True), *map(Column, headings)]
    return [Table(columns, [Group(rows)], "Biased pairs", foreign=True)] if rows else []


def _bias(row: Mapping[str, Any]) -> float:
    shares = (row["untrained_percent"], row["shorter_is_good_percent"])
    return max(abs(share - 50) for share in shares if share is not None)


def _pair_table(pairs: Sequence[Numbers], judged: Mapping[str, _Suite], labels: Mapping[str, str]) -> list[Table]:
    from hatchery.rendering.escaping import readable

    groups = []
    for suite in judged:
        seen, rows = Counter[str](), list[list[Content]]()
        for row in pairs:
            seen[row["paradigm"]] += row["suite"] == suite
            if row["suite"] == suite and seen[row["paradigm"]] <= OF_ONE_PARADIGM and len(rows) < PAIRS_SHOWN:
                pair = f"{readable(row['paradigm'])}, {row['pair_id']}"
                rows.append([pair, row["good"], row["bad"], _whose(row["misjudged_by"], judged[suite], labels)])
        groups += [Group(rows, readable(suite))] if rows else []
    columns = [Column(heading, words=True) for heading in ("pair", "good sentence", "bad sentence", "misjudged by")]
    return [Table(columns, groups, "Pairs that trained models misjudge", foreign=True)] if groups else []


def _whose(names: str, judged: _Suite, labels: Mapping[str, str]) -> str:
    models = [name for name in names.split(";") if name]
    if len(judged.wrong) > NAMED_UP_TO:
        return f"{len(models)} of {len(judged.wrong)} models"
    return ", ".join(labels.get(model, model) for model in models) or "some seeds"


def _notes(
    judged: Mapping[str, _Suite],
    paradigms: Sequence[Numbers],
    biased: Sequence[Numbers],
    pairs: Sequence[Numbers],
) -> list[str]:
    notes = []
    if biased:
        farthest = f"; the table shows the {PARADIGMS_SHOWN} paradigms that are farthest from 50 %"
        shown = farthest if len(biased) > PARADIGMS_SHOWN else ""
        notes += [
            f"{len(biased)} of {len(paradigms)} paradigms are biased{shown}. In a biased paradigm, a model can tell "
            "the sentences of a pair apart without grammar. There are two signs of bias. First, an untrained model, "
            "which knows no grammar, judges far more or far fewer than half of the pairs correctly. Second, the "
            "shorter sentence is the good one in far more or far fewer than half of the pairs. In these paradigms, "
            "the chance level is not 50 %, so compare trained models with the untrained model.",
            "The score of a sentence is the sum of the log-probabilities of its tokens, so a model without knowledge "
            "prefers the shorter sentence.",
        ]
    elif any(each.guessed is not None for each in judged.values()):
        notes.append(
            "No paradigm is biased: untrained models judge about half of the pairs of each paradigm correctly."
        )
    if any(each.guessed is None for each in judged.values()):
        notes.append("There is no untrained model, so biases are found only from the lengths of the sentences.")
    if pairs:
        notes.append(
            f"The table shows at most {OF_ONE_PARADIGM} misjudged pairs of a paradigm and {PAIRS_SHOWN} of a "
            "suite. Pairs that most models misjudge come first. Pairs that equally many models misjudge are in "
            "descending order of the margin of the bad sentence. `numbers.csv` contains up to "
            f"{PAIRS_LISTED:,} misjudged pairs of each suite, and `scores.parquet` of each model contains all pairs."
        )
    return notes


ANALYSIS = Analysis(
    title="Which minimal pairs are misjudged, and which are biased?",
    version=2,
    settings=MisjudgedPairsSettings,
    run=find,
    needs=(pair_files, evaluated(MINIMAL_PAIRS)),
    own=lambda experiment: {"untrained": untrained_models(experiment)} if experiment.minimal_pairs else None,
    place=30,
)

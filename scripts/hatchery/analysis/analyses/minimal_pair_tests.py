"""Exact significance tests of the difference between the accuracies of two models on the same minimal pairs.

Every experiment with several such models has this analysis. `paired_tests` computes the tests.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.analysis.analyses.analysis import Analysis, Findings, Study
from hatchery.analysis.analyses.needs import MINIMAL_PAIRS, evaluated
from hatchery.analysis.analyses.own_tests import own_tests
from hatchery.analysis.analyses.paired_test_sentences import Nouns
from hatchery.analysis.analyses.paired_tests import (
    PairedTestsSettings,
    check,
    findings,
    manifests_of,
    read_answers,
)

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True)
class MinimalPairTestsSettings(PairedTestsSettings):
    """Settings of the analysis: the models to compare, on the minimal pairs that all of these models judged."""


NOUNS = Nouns(
    title="Differences on the same minimal pairs",
    group="suite",
    items="pairs",
    runs="seeds",
    runs_of="pretraining seeds",
    what="Accuracy in percent over all pairs of a suite. All pairs have equal weights, and a tie counts as wrong.",
    nothing="No two models judged the same minimal pairs.",
)


def compare(settings: MinimalPairTestsSettings, study: Study) -> Findings:
    """Return findings with a row for each suite and each pair of models: the test of the difference between the
    accuracies of the two models.

    Raises EvaluationError if models scored different pairs of a suite.
    """
    judged = {
        suite: read_answers(models, _read, NOUNS.items) for suite, models in manifests_of(study, MINIMAL_PAIRS).items()
    }
    return findings(settings, study, judged, NOUNS)


def _read(path: Path) -> "tuple[Any, np.ndarray, None]":
    import polars as pl

    from hatchery.artifacts.manifests import read_manifest

    scores = pl.read_parquet(read_manifest(path).file("scores.parquet"), columns=["paradigm", "pair_id", "outcome"])
    return scores.drop("outcome"), (scores["outcome"] == "correct").to_numpy()[None], None


ANALYSIS = Analysis(
    title="Are differences on minimal pairs beyond chance?",
    version=1,
    settings=MinimalPairTestsSettings,
    run=compare,
    needs=(evaluated(MINIMAL_PAIRS),),
    check=check,
    own=lambda experiment: own_tests(experiment, experiment.minimal_pairs),
    place=10,
)

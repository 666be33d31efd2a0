"""Paired bootstrap over test sentences: could the choice of sentences explain a difference between two initialisations?

The analysis computes the test of Koehn (2004) with the algorithm of sacreBLEU. This choice is Hatchery's, because "A
Natural Bias for Language Generation Models" names no test. Runs with equal pretraining seeds are paired: they have
equal initial output matrices and an equal order of the data. The test ignores the variation over seeds; the analysis
`starts` shows standard errors over seeds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchery.analysis.analyses.analysis import Analysis, Findings, Numbers, Study
from hatchery.analysis.analyses.needs import TRANSLATION, evaluated
from hatchery.analysis.analyses.starts import StartsSettings, check
from hatchery.analysis.comparability import BETWEEN_TWO
from hatchery.evaluation.translation_settings import REFERENCE_LINES, TRANSLATED_LINES
from hatchery.rendering.table import Column, Group, Table
from hatchery.settings.base import Count, Natural


@dataclass(frozen=True, kw_only=True)
class BootstrapSettings(StartsSettings):
    """Settings of the analysis: the reference initialisation, and the bootstrap samples."""

    samples: Count = 1000
    """Number of bootstrap samples. In each sample, the sentences of a test set are drawn with replacement."""
    seed: Natural = 12345
    """Random seed of the bootstrap samples; the default is sacreBLEU's."""


def compare(settings: BootstrapSettings, study: Study) -> Findings:
    """Return a row for each combination of a pair of runs, a test set and a metric."""
    rows = list(_rows(settings, study))
    titles = {run.name: run.title for run in study.runs}
    columns = [Column("score", words=True), Column("difference"), Column("95 % interval"), Column("p")]
    groups = [
        Group([_line(row) for row in rows if row["run"] == run], titles[run])
        for run in dict.fromkeys(row["run"] for row in rows)
    ]
    notes = [
        f"Differences are in points, between a run and the run `{settings.against}` of the same experiment "
        f"and pretraining seed. The sentences of a test set were drawn with replacement {settings.samples:,} "
        "times, with the same draws for both runs. The interval contains 95 % of the resulting differences. "
        "p is the probability that chance alone gives a difference at least as large as the measured one, "
        "computed as in sacreBLEU. Interval and p do not include the variation between training seeds."
    ]
    return Findings(
        rows, [Table(columns, groups, f"Differences on the test sentences, {BETWEEN_TWO}")] if groups else [], notes
    )


def _rows(settings: BootstrapSettings, study: Study) -> Iterator[Numbers]:
    from hatchery.translation.metrics import paired_differences

    manifests, runs = study.manifests(TRANSLATION), {run.name: run for run in study.runs}
    by_start = {(run.model, run.seed): name for name, run in runs.items() if name in manifests}
    for name, path in manifests.items():
        run = runs[name]
        other = by_start.get((f"{run.model.partition('/')[0]}/{settings.against}", run.seed))
        if other is None or other == name:
            continue
        mine, theirs = _texts(path), _texts(manifests[other])
        for test, (translations, references) in mine.items():
            found = paired_differences(translations, theirs[test][0], references, settings.samples, settings.seed)
            for metric, difference in found.items():
                numbers = {key: round(value, 4) + 0.0 for key, value in difference._asdict().items()}
                yield {"model": run.model, "run": name, "against": other, "test": test, "metric": metric, **numbers}


def _texts(manifest: Path) -> Mapping[str, tuple[list[str], list[str]]]:
    """Return the translations and the reference translations of each test set."""
    from hatchery.artifacts.manifests import read_manifest

    made = read_manifest(manifest)
    return {
        test: (_lines(made.file(f"{test}{TRANSLATED_LINES}")), _lines(made.file(f"{test}{REFERENCE_LINES}")))
        for test in made.settings["tests"]
    }


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def _line(row: Mapping[str, Any]) -> list[Any]:
    interval = f"{row['low']:+.2f} to {row['high']:+.2f}"
    return [f"{row['test']}, {row['metric']}", f"{row['value']:+.2f}", interval, f"{row['p_value']:.3f}"]


ANALYSIS = Analysis(
    title="Paired bootstrap over the test sentences",
    version=1,
    settings=BootstrapSettings,
    run=compare,
    needs=(evaluated(TRANSLATION),),
    of_translations=True,
    check=check,
)

"""What stands in the file of a study, and what it asks of its experiments and of the published tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from annotated_types import MinLen

from hatchery.analysis.analyses.analysis import Study
from hatchery.analysis.analyses.registry import analysis_called, kind_of, settings_of
from hatchery.errors import ConfigError
from hatchery.experiment.blocks import Blocks
from hatchery.rendering.style import Style
from hatchery.settings.base import Settings
from hatchery.settings.fields import BlockName, Reference, Unique
from hatchery.settings.problems import Problems, nearest, offered
from hatchery.settings.walk import Named, references
from hatchery.typed import validated

PUBLISHED = "published"
"""Folder of published tables, below the configuration."""
PAIR_TESTS = "minimal_pair_tests"
"""The analysis that experiments have by themselves."""


@dataclass(frozen=True, kw_only=True)
class StudyFile(Settings):
    """Several experiments read together; `results/<name>/summary.csv` exists because the file exists."""

    base: Annotated[str, Reference("study", inherited=True)] | None = None
    """A study whose keys, analyses included, are the defaults of this one; only what differs is stated."""
    description: str = ""
    """What it is, for people."""
    experiments: Annotated[tuple[Annotated[str, Reference("experiment")], ...], MinLen(1), Unique()]
    """The experiments, files of config/experiments/, in the order of tables and pages."""
    analyses: dict[BlockName, dict[str, Any]] = field(default_factory=dict)
    """What is computed from their results: settings by names of your choice. `analysis` names the analysis, where the
    entry is not called like it."""
    figures: Style = field(default_factory=Style)
    """Look of the figures."""


def with_analyses(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The keys of a study, validated, with all defaults, those of its analyses included. Raises ConfigError."""
    problems = Problems()
    with problems.collecting():
        study = validated(StudyFile, document, where)
    entries = document.get("analyses")
    made: dict[str, Any] = {}
    for name, entry in entries.items() if isinstance(entries, Mapping) else ():
        if not isinstance(entry, Mapping):
            continue  # told already
        place = f"{where}: analyses.{name}"
        with problems.collecting():
            kind = kind_of(name, entry, place)
            made[name] = validated(analysis_called(kind).settings, {**entry, "analysis": kind}, place)
    problems.raise_any()
    return {**study, "analyses": made}


def check_study(study: Mapping[str, Any], shown: Study, where: str, blocks: Blocks) -> None:
    """Raise ConfigError for an analysis that does not fit the study, whose runs `shown` has, or other files."""
    problems = Problems()
    translates = any(blocks.block("experiment", part)["translation"]["tests"] for part in study["experiments"])
    for name, entry in study["analyses"].items():
        place = f"{where}: analyses.{name}"
        if analysis_called(entry["analysis"]).of_translations and not translates:
            problems.add(
                f"{place}: {entry['analysis']} compares translations, but no experiment of this study has "
                "translation.tests; leave it out"
            )
            continue
        with problems.collecting(place):
            settings = settings_of(entry["analysis"], entry)
            analysis_called(entry["analysis"]).check(settings, shown)
        for named in references(analysis_called(entry["analysis"]).settings, entry):
            with problems.collecting():
                _check_named(named, f"{place}.{named.key}", study["experiments"], blocks)
        with problems.collecting():
            _check_published(published_tables(entry), place, blocks)
    problems.raise_any()


def own_analyses(experiment: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The entries that an experiment has without a study: the test between models that judge the same minimal pairs."""
    models = [*experiment["runs"], *experiment["baselines"]]
    if len(models) < 2 or not experiment["minimal_pairs"]:
        return {}
    return {PAIR_TESTS: validated(analysis_called(PAIR_TESTS).settings, {"analysis": PAIR_TESTS}, PAIR_TESTS)}


def analysis_entry(blocks: Blocks, name: str, analysis: str) -> dict[str, Any]:
    """An entry of the analyses of a study or an experiment. Raises ConfigError with the nearest where there is none."""
    entries = blocks.analyses(name)
    if analysis not in entries:
        raise ConfigError(f"{name!r} has no analysis {analysis!r}{offered(analysis, entries)}")
    return entries[analysis]


def published_tables(entry: Mapping[str, Any]) -> list[str]:
    """The tables below `config/published/` that an entry of a study's analyses reads, without their ending."""
    return list(analysis_called(entry["analysis"]).published(settings_of(entry["analysis"], entry)))


def sweeps_read(entry: Mapping[str, Any]) -> list[str]:
    """The tokenizer sweeps whose results an entry of a study's analyses reads."""
    return list(analysis_called(entry["analysis"]).sweeps(settings_of(entry["analysis"], entry)))


def _check_named(named: Named, where: str, experiments: Sequence[str], blocks: Blocks) -> None:
    blocks.require(named.kind, named.name, where)
    if named.kind == "experiment" and named.name not in experiments:
        raise ConfigError(f"{where}: got {named.name!r}, no experiment of this study{offered(named.name, experiments)}")


def _check_published(tables: list[str], where: str, blocks: Blocks) -> None:
    folder = blocks.folder / PUBLISHED
    known = [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.rglob("*.csv"))]
    for name in tables:
        if name not in known:
            raise ConfigError(f"{where}: there is no {folder / name}.csv with published numbers{nearest(name, known)}")

"""Functions for the field `needs` of an `Analysis`, which return the paths of the analysis's input files.

Such a function receives the `ResultPaths` of the project, the name of a study or an experiment, and the settings of the
analysis. It returns a mapping from the keys of `Study.tables` to paths. An analysis that reads other files defines its
own function.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hatchery.raw.listings import source_manifest, source_of

if TYPE_CHECKING:
    from hatchery.workflow.result_paths import ResultPaths

    Need = Callable[[ResultPaths, str, Any], Mapping[str, str]]

CORPUS, TOKENS, PAIR_FILES = "corpus", "tokens", "pair_files"
MINIMAL_PAIRS, FINETUNING, TRANSLATION = "minimal_pairs", "finetuning", "translation"


def tables(*names: str) -> "Need":
    """Return a function for `needs` that returns the paths of the tables `names`: tidy tables or the summary."""
    return lambda results, name, settings: {table: results.of.table(table, experiment=name) for table in names}


def evaluated(kind: str) -> "Need":
    """Return a function for `needs` that returns the paths of the manifests of all evaluations of the kind `kind` in a
    study or experiment.

    The keys are `<kind>/<experiment>/<run>:<suite or task>`; for a single experiment, the keys lack `<experiment>/`.
    """

    def manifests(results: "ResultPaths", name: str, settings: object) -> dict[str, str]:
        found = results.project.for_members(name, partial(results.of_kind, kind=kind))
        return {f"{kind}/{key}": path for key, path in found.items()}

    return manifests


def corpora(results: "ResultPaths", name: str, settings: object) -> dict[str, str]:
    """Return the paths of the manifests of each experiment's corpus (key `corpus/<experiment>`) and token shards (key
    `tokens/<experiment>`).
    """
    parts = results.project.members(name)
    return {f"{CORPUS}/{part}": results.corpus(part) for part in parts} | {
        f"{TOKENS}/{part}": results.tokens(part) for part in parts
    }


def pair_files(results: "ResultPaths", name: str, settings: object) -> dict[str, str]:
    """Return the paths of the manifests of all minimal-pair suites' raw files, by key `pair_files/<suite>`."""
    project = results.project
    suites = [suite for part in project.members(name) for suite in project.experiment(part).minimal_pairs]
    return {f"{PAIR_FILES}/{suite}": source_manifest(source_of(project.suite(suite))) for suite in suites}

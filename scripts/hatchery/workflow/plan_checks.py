"""Checks before the first job, which report all known problems of the targets at once.

An unknown target is reported with the most similar known target, instead of Snakemake's "No rule to produce". Then all
configuration files (experiment, corpus, suite, ...) on which the targets depend are checked. The data of suites and
tasks is also checked if the data is on this machine. After an invalid configuration file, the check continues with the
other files. In this module, a block is a configuration file or an inline definition; kind and name identify the block.
"""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from hatchery.analysis.studies import check_published, check_study
from hatchery.errors import ConfigError, ModelError
from hatchery.experiment.kinds import FOLDERS
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import data_read, usable_path
from hatchery.experiment.written_blocks import is_name, misnamed_file
from hatchery.export.submissions import check_submission
from hatchery.raw.listings import listing_of
from hatchery.settings.fields import ABSENT, DATA
from hatchery.settings.problems import Problems, nearest
from hatchery.training.runtime_settings import not_installed
from hatchery.typed import references
from hatchery.views.figures.registry import declared_figures

Asked = tuple[str, str]
"""Kind (experiment, corpus, ...) and name of a configuration block."""


def collect_problems(
    project: Project, asked: Iterable[Asked], problems: Problems, is_own_environment: bool = True
) -> list[str]:
    """Check configuration files and inline definitions, and add their mistakes to `problems`. `asked` are pairs (kind,
    name); files and definitions to which these refer are also checked.

    Return notes on surprising properties of evaluation data. `is_own_environment` is True if jobs run in the software
    environment of this process. Only then does the check report missing packages.
    """
    waiting, seen, experiments = list(asked), set(asked), list[str]()
    while waiting:
        kind, name = waiting.pop(0)
        with problems.collecting():
            project.check(kind, name)
            if kind == "study":
                check_study(project, name)
        try:
            block = project.block(kind, name)
        except ConfigError:
            continue  # Invalid keys of the block have already been reported.
        if kind == "experiment":
            with problems.collecting():
                check_published(project, name)
            with problems.collecting():
                check_submission(project, name)
            for sink in project.config.compute.sinks if is_own_environment else ():
                if find_spec(sink) is None:
                    problems.add(f"{project.folder / 'config.yaml'}: compute.sinks: {not_installed(sink)}")
            experiments.append(name)
        if kind == "baseline" and (problem := _no_model(project, block.data)):
            problems.add(f"{project.place(kind, name)}: {problem}")
        for named in references(block):
            other = (named.kind, named.name)
            if named.kind == DATA or named.inherited or other in seen:
                continue
            seen.add(other)
            # If a file is missing, the check of the block that refers to this file has already reported it.
            if project.has(named.kind, named.name):
                waiting.append(other)
    return _check_data(project, experiments, problems)


def _check_data(project: Project, experiments: Iterable[str], problems: Problems) -> list[str]:
    """Check the experiments' evaluation data, as far as it is on this machine, and return notes on this data."""
    notes: dict[str, tuple[str, ...]] = {}
    for kind, read in (each for experiment in experiments for each in data_read(project, experiment)):
        root = None if read.source is ABSENT else usable_path(project, read.source)
        if root is None or read.where in notes:
            continue
        # Import this function only here, because the import takes long and is unnecessary without evaluation data.
        from hatchery.evaluation.first_rows import check_first_rows

        notes[read.where] = ()
        with problems.collecting(read.where):
            notes[read.where] = check_first_rows(kind, read.settings, root)
    return [f"{where}: {note}" for where, found in notes.items() for note in found]


_MODEL_FILES = {
    "config.json": ("config.json",),
    "weights (*.safetensors or *.bin)": ("*.safetensors", "*.bin"),
    "a tokenizer (tokenizer.json, vocab.* or *.model)": ("tokenizer.json", "vocab.*", "*.model"),
}
"""File name patterns by component of a model. For each component, a model's folder must contain a file that matches one
of the patterns.
"""


def _no_model(project: Project, data: str) -> str | None:
    """If the path of the raw input `data` cannot be the folder of a `transformers` model, return the reason, otherwise
    None. For a missing path or an empty folder, return None.
    """
    root = usable_path(project, data)
    if root is None or not listing_of(root, most=1):
        return None  # Missing paths are reported with the missing raw data.
    if Path(root).is_file():
        return f"data.{data}.path: {root} is a file, expected the folder of a model"
    # Import this function only here, because the import takes long and only experiments with external models need it.
    from hatchery.evaluation.baselines.loading import check_files

    try:
        check_files(Path(root))
    except ModelError as error:
        return f"data.{data}.path: {error}"
    names = [path.name for path in Path(root).iterdir()]
    for what, patterns in _MODEL_FILES.items():
        if not any(fnmatch.filter(names, pattern) for pattern in patterns):
            return f"data.{data}.path: {root} lacks {what}, expected the folder of a model with all of its files"
    return None


_KINDS = {"sweep": "tokenizer_sweep"}
"""Kind of the blocks that a wildcard names, by wildcard; other wildcards have the same name as the kind."""

_WILDCARD = re.compile(r"\{(\w+)\}")


def requested_blocks(target: str, patterns: Iterable[str], project: Project) -> list[tuple[str, str]]:
    """Return (kind, name) of each configuration file or inline definition (such as an experiment or a corpus) that the
    path `target` names; empty if no rule makes this path.

    `patterns` are the output patterns of all rules, with `{wildcards}`. If the path contains an unknown name, raises
    ConfigError, which suggests the most similar name.
    """
    error: ConfigError | None = None
    for values in _matches(target, patterns):
        # Skip wildcards whose values cannot be names of blocks, such as addresses with digests.
        kinds = [(_kind(wildcard, name, project), name) for wildcard, name in values.items() if is_name(name)]
        named = [(kind, name) for kind, name in kinds if kind is not None]
        try:
            for kind, name in named:
                project.require(kind, name, target)
        except ConfigError as found:
            error = error or found
        else:
            return named
    if error is not None:
        raise error
    return []


def unknown_target(target: str, patterns: Iterable[str], rules: Iterable[str], project: Project) -> str:
    """Return the error message for a target that is neither a rule nor a file that a rule makes.

    The message suggests the most similar name, if there is one.
    """
    if "/" not in target and (near := nearest(target, rules)):
        return f"{target}: unknown rule{near}"
    for values in _matches(target, patterns):
        for wildcard, name in values.items():
            kind = _kind(wildcard, name, project)
            if kind is None:
                if wildcard == "figure" and (near := nearest(name, declared_figures())):
                    return f"{target}: unknown figure {name!r}{near}"
                continue
            if wrong := misnamed_file(project.folder / FOLDERS[kind], name, project.names(kind)):
                return wrong
            try:
                project.require(kind, name, target)
            except ConfigError as error:
                return str(error)
    return (
        f"{target}: no rule makes this file; request results/<experiment>/summary.csv or index.html, with one of the "
        f"experiments {', '.join(project.names('experiment'))}"
    )


def _kind(wildcard: str, name: str, project: Project) -> str | None:
    """Return the kind of the block that a wildcard's value `name` refers to; None if the wildcard does not name blocks.

    The value of the wildcard `experiment` may be an experiment or a study.
    """
    kind = _KINDS.get(wildcard, wildcard)
    if kind == "experiment" and project.is_study(name):
        return "study"
    return kind if kind in FOLDERS else None


def _matches(target: str, patterns: Iterable[str]) -> Iterator[Mapping[str, str]]:
    """For each pattern that `target` matches, yield the values of its wildcards; patterns with fewer wildcards come
    first.

    The values may contain any characters except slashes.
    """
    for pattern in sorted(set(patterns), key=lambda pattern: (len(_WILDCARD.findall(pattern)), pattern)):
        if found := _loose(pattern).fullmatch(target):
            yield found.groupdict()


def _loose(pattern: str) -> re.Pattern[str]:
    pieces, seen = [], set[str]()
    for index, piece in enumerate(_WILDCARD.split(pattern)):
        if index % 2 == 0:
            pieces.append(re.escape(piece))
        else:
            pieces.append(f"(?P={piece})" if piece in seen else f"(?P<{piece}>[^/]+)")
            seen.add(piece)
    return re.compile("".join(pieces))


def check_targets(
    targets: Iterable[str], patterns: Iterable[str], rules: Iterable[str], made: Mapping[str, bool], project: Project
) -> tuple[list[tuple[str, str]], Problems]:
    """Return the configuration blocks that the targets name, and the problems of the targets themselves.

    `made` maps each target to True if the target is a rule, an output of a rule, or an existing file, otherwise to
    False.
    """
    patterns, rules, problems = list(patterns), list(rules), Problems()
    asked: list[tuple[str, str]] = []
    for target in targets:
        with problems.collecting():
            if not made[target]:
                raise ConfigError(unknown_target(target, patterns, rules, project))
            asked += requested_blocks(target, patterns, project)
    return asked, problems

"""Checks of a configuration block against the blocks that it names, and against the files of this machine.

A configuration block is the settings of one corpus, tokenizer, experiment and so on. The settings class of a block has
already validated the block's own keys. The checks of a corpus need no corpus on this machine: its encodings, its
sources and its possible splits follow from its settings.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.errors import ConfigError
from hatchery.experiment.kinds import TaskFile
from hatchery.experiment.quotas import check_quotas
from hatchery.experiment.run_checks import check_experiment
from hatchery.experiment.text_files import CorpusFile, Sample, TokenizerFile
from hatchery.experiment.written_blocks import INLINE
from hatchery.settings.fields import ABSENT, DATA
from hatchery.settings.problems import Problems, alternatives
from hatchery.stage import reserved_names
from hatchery.typed import Named, references

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def check_block(kind: str, name: str, project: "Project") -> None:
    """Check a configuration block against the blocks that it names and the files of this machine.

    Raises ConfigError with a line for each problem.
    """
    block, where, problems = project.block(kind, name), project.place(kind, name), Problems()
    if kind in ("experiment", "study"):
        _check_name(kind, name, where, project)
    for named in references(block):
        with problems.collecting():
            _require(named, f"{where}: {named.key}", project)
    # Raise here if a named configuration block does not exist, because the checks below read all named blocks.
    problems.raise_any()
    for inline in INLINE if kind == "experiment" else ():
        if project.written.is_inline(inline, name):
            with problems.collecting():
                project.check(inline, name)
    if kind in _CHECKS:
        with problems.collecting():
            _CHECKS[kind](name, block, where, project)
    problems.raise_any()


def _check_name(kind: str, name: str, where: str, project: "Project") -> None:
    """Raise ConfigError if a name is reserved, or if an experiment and a study have the same name. Results of an
    experiment and of a study with the same name would have the same folder, `results/<name>/`.
    """
    if name in reserved_names():
        word = "an experiment" if kind == "experiment" else "a study"
        raise ConfigError(f"{where}: {name!r} cannot be the name of {word}, because results/{name}/ is reserved")
    other = "experiment" if kind == "study" else "study"
    if name in project.names(other):
        raise ConfigError(
            f"{where}: {project.place(other, name)} has the same name, so the results of both files would be in "
            f"results/{name}/; rename one of the two files"
        )


def _require(named: Named, where: str, project: "Project") -> None:
    if named.kind != DATA:
        project.require(named.kind, named.name, where)
    elif project.raw_input(named.name) is None:
        raise ConfigError(
            f"{where}: got {named.name!r}, not under `data` in {project.folder / 'config.yaml'}"
            f"{alternatives(named.name, sorted(project.config.data))}"
        )


def check_corpus(name: str, corpus: CorpusFile, where: str, project: "Project") -> None:
    """Raise ConfigError if a corpus depends on itself, or if a source has an unsupported encoding. Also raise
    ConfigError if the corpus requests more texts than its text selections contain (`check_quotas`), or if the entry of
    a language in `sample.languages` refers to an unknown source.
    """
    check_circle(name, project, where)
    if corpus.made_from == "sources":
        check_encodings(corpus, where)
    if corpus.made_from == "sequences":
        check_quotas(corpus, where, project)
    if corpus.made_from == "sample" and corpus.sample.languages is not ABSENT:
        _check_languages(corpus.sample, where, project)


def _check_languages(sample: Sample, where: str, project: "Project") -> None:
    """Raise ConfigError if an entry of `sample.languages` refers to a source that the sampled corpus does not have.

    If the sampled corpus is not made from sources, nothing is checked.
    """
    other = project.corpus(sample.corpus)
    there = [source.name for source in other.sources] if other.made_from == "sources" else []
    for name, part in sample.languages.items():
        for source in part.sources if there else ():
            if source not in there:
                raise ConfigError(
                    f"{where}: sample.languages.{name}.sources: got {source!r}, expected a source of the corpus "
                    f"{sample.corpus!r}: {', '.join(there)}"
                )


def check_encodings(corpus: CorpusFile, where: str) -> None:
    """Raise ConfigError for a source with a text encoding that Python does not support."""
    for index, source in enumerate(corpus.sources):
        encoding = getattr(source.options, "encoding", "utf-8")
        try:
            "a".encode(encoding)
        except (LookupError, ValueError):
            raise ConfigError(
                f"{where}: sources.{index}.options.encoding: got {encoding!r}, expected a text encoding of Python, "
                "such as utf-8, utf-16, latin-1 or cp1252"
            ) from None


def check_circle(name: str, project: "Project", where: str) -> None:
    """Raise ConfigError if a corpus depends on itself, directly or through other corpora."""
    paths, seen = [[name]], {name}
    while paths:
        path = paths.pop()
        for other in _corpora_in("corpus", path[-1], project):
            if other == name:
                way = " -> ".join([*path, name])
                raise ConfigError(
                    f"{where}: the corpus is made from itself: {way}; name another corpus in one of these files"
                )
            if other not in seen:
                seen.add(other)
                paths.append([*path, other])


def _corpora_in(kind: str, name: str, project: "Project") -> Iterator[str]:
    """Yield the names of the corpora in the file of the corpus or selection `name`, and in the files of the selections
    that this file names.
    """
    for reference in references(project.block(kind, name)) if project.has(kind, name) else ():
        if reference.kind == "corpus":
            yield reference.name
        elif reference.kind == "selection":
            yield from _corpora_in("selection", reference.name, project)


def check_tokenizer(name: str, tokenizer: TokenizerFile, where: str, project: "Project") -> None:
    """Raise ConfigError if the file of a pretrained tokenizer does not exist."""
    if tokenizer.path is not ABSENT and not Path(tokenizer.path).expanduser().is_file():
        raise ConfigError(
            f"{where}: path: got {tokenizer.path!r}, expected the path of a tokenizer.json, but there is no such file"
        )


def check_task(name: str, task: TaskFile, where: str, project: "Project") -> None:
    """Raise ConfigError if keys of a task contradict each other, or if one of its `transfer_tasks` lacks the key
    `transfer`.
    """
    from hatchery.evaluation.tasks.checks import check_task as check_settings

    try:
        check_settings(task.settings(name))
    except ConfigError as error:
        raise ConfigError(f"{where}: {str(error).removeprefix(f'task {name!r}: ')}") from None
    for other in task.transfer_tasks:
        if project.task(other).transfer is None:
            raise ConfigError(f"{where}: transfer_tasks: got {other!r}, expected a task with the key `transfer`")


_CHECKS: dict[str, Callable[[str, Any, str, "Project"], None]] = {
    "experiment": check_experiment,
    "corpus": check_corpus,
    "tokenizer": check_tokenizer,
    "task": check_task,
}

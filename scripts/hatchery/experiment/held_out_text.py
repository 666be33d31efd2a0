"""Checks of evaluations on held-out text: whether a corpus can have the requested splits, and checks of translation.

The checks need no corpus on this machine: the possible splits of a corpus, and whether its documents are sentence
pairs, follow from the configuration.
"""

import fnmatch
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.corpora.readers import READERS
from hatchery.errors import ConfigError
from hatchery.evaluation.translation_settings import translated_runs
from hatchery.experiment.experiment_file import Experiment
from hatchery.experiment.text_files import Sequences
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import Problems, alternatives

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

TRANSLATION, TRANSLATING_FAMILY = "translation", "encoder_decoder"


def held_out_splits(project: "Project", name: str) -> set[str]:
    """Return the held-out splits (`dev`, `test`) that a corpus may have according to its configuration.

    Raises ConfigError for an invalid corpus, such as a corpus that depends on itself.
    """
    project.check("corpus", name)
    corpus = project.corpus(name)
    if corpus.made_from == "sample":
        # The documents of a sample keep their splits, so a sample may have the splits of its corpus.
        return held_out_splits(project, corpus.sample.corpus)
    if corpus.made_from == "sequences":
        return _of_sequences(project, corpus.sequences)
    split = corpus.split
    development = split.development_documents
    wanted = {
        "dev": split.development_fraction if development is None else development,
        "test": split.test_fraction,
    }
    drawn = {name for name, share in wanted.items() if share > 0}
    return {name for source in corpus.sources for name in _of_source(source, drawn)}


def _of_source(source: Any, drawn: set[str]) -> set[str]:
    """Return the held-out splits that a source may have.

    If the source's options state the splits of its files, the result contains the stated splits. For files without a
    stated split, the result contains `drawn`, the splits that the corpus draws at random.
    """
    if source.reader == "babylm":
        return _of_release(source)
    if READERS[source.reader].holds != "texts":
        named = set(source.options.files)
        return (drawn if "any" in named else set()) | (named & {"dev", "test"})
    return drawn


def _of_release(source: Any) -> set[str]:
    """Return the held-out splits of a source in BabyLM's file layout. Generated demo text has no test split."""
    track = source.options.track
    if track in ("dev", "test"):
        return {track}
    return {"dev"} if source.data is ABSENT else {"dev", "test"}


def _of_sequences(project: "Project", sequences: Sequences) -> set[str]:
    if sequences.held_out_from is not None:
        return held_out_splits(project, sequences.held_out_from)
    keys = {"dev": "development", "test": "test"}
    return {name for name, key in keys.items() if any(getattr(group, key) > 0 for group in sequences.groups)}


_SPLIT_KEYS = {"dev": "split.development_fraction", "test": "split.test_fraction"}


def check_perplexity_splits(experiment: Experiment, where: str, project: "Project") -> None:
    """Raise ConfigError for a split of `perplexity.splits` that the experiment's corpus cannot have."""
    chosen = experiment.perplexity.splits
    if not chosen:
        return
    name, problems = experiment.corpus, Problems()
    there = held_out_splits(project, name)
    for split in chosen:
        if split not in there:
            key = _SPLIT_KEYS[split] if project.corpus(name).made_from == "sources" else "the keys of held-out text"
            lacks = f"got {split!r}, a split that the corpus {name!r} does not have"
            problems.add(f"{where}: perplexity.splits: {lacks}; see {key} in {project.place('corpus', name)}")
    problems.raise_any()


def check_translation(name: str, experiment: Experiment, where: str, project: "Project") -> None:
    """Raise ConfigError, one line per problem, if the models, evaluations and corpora of a translation experiment do
    not fit each other.

    A translation model has an encoder and a decoder, learns from sentence pairs, and is scored only on translation.
    """
    tests, problems = experiment.translation.tests, Problems()
    tasks = {run: entry.pretraining.objective.task for run, entry in experiment.runs.items()}
    for run, task in tasks.items():
        with problems.collecting():
            _check_translating_model(name, run, task, where, project)
        if tests and task != TRANSLATION:
            problems.add(
                f"{where}: runs.{run}.pretraining.objective.task: got {task!r}, expected {TRANSLATION} in an "
                "experiment with translation.tests; put other models in an experiment of their own"
            )
    if TRANSLATION in tasks.values():
        for key, names in _other_evaluations(experiment):
            problems.add(
                f"{where}: {key}: got {', '.join(names)}, expected none in an experiment with objective.task "
                f"{TRANSLATION}, whose models are scored by translation.tests alone"
            )
        with problems.collecting():
            if not _holds_pairs(project, experiment.corpus):
                problems.add(f"{where}: corpus: {_no_pairs(experiment.corpus)}")
        with problems.collecting(where):
            _check_special_tokens(experiment.tokenizer, project)
    runs = list(experiment.runs)
    for pattern in experiment.translation.leave_out:
        if not fnmatch.filter(runs, pattern):
            problems.add(f"{where}: translation.leave_out: got {pattern!r}, no such run{alternatives(pattern, runs)}")
    if tests and not translated_runs(experiment.translation, runs):
        problems.add(f"{where}: translation.leave_out: leaves no run that translates, expected at least one")
    for called, test in tests.items():
        place, corpus = f"{where}: translation.tests.{called}", test.corpus
        with problems.collecting():
            if not _holds_pairs(project, corpus):
                problems.add(f"{place}.corpus: {_no_pairs(corpus)}")
            elif test.split not in (there := _splits_of_pairs(project, corpus)):
                problems.add(
                    f"{place}.split: got {test.split!r}, a split that the corpus {corpus!r} does not have; "
                    f"allowed are: {', '.join(there)}"
                )
    problems.raise_any()


def _check_translating_model(experiment: str, run: str, task: str, where: str, project: "Project") -> None:
    name, family = project.experiment(experiment).runs[run].model, project.model_of(experiment, run).family
    if family == TRANSLATING_FAMILY and task != TRANSLATION:
        raise ConfigError(
            f"{where}: runs.{run}.pretraining.objective.task: got {task!r}, expected {TRANSLATION} for the model "
            f"{name!r} of the family {family}"
        )
    if family != TRANSLATING_FAMILY and task == TRANSLATION:
        raise ConfigError(
            f"{where}: runs.{run}.model: got {name!r} of the family {family}, expected a model of the family "
            f"{TRANSLATING_FAMILY} with objective.task {TRANSLATION}"
        )


def _check_special_tokens(name: str, project: "Project") -> None:
    """Raise ConfigError for a tokenizer with a paragraph token, which would be added to every text and so to every
    translation.
    """
    tokenizer = project.tokenizer(name)
    if tokenizer.path is not ABSENT:
        # Import inside the function, because the library takes long to import and only tokenizers with a `path` need
        # it.
        from hatchery.tokenization.tokenizer_file import load_tokenizer

        path = Path(tokenizer.path).expanduser()
        special, got = load_tokenizer(path).special, f"path: got {str(path)!r}, which has"
    else:
        special, got = tokenizer.special, f"special_tokens: got {tokenizer.special_tokens!r}, with"
    if special.paragraph is not None:
        raise ConfigError(
            f"tokenizer: {name!r} cannot translate; {project.place('tokenizer', name)}: {got} the token "
            f"{special.paragraph}, which would end every translation; expected the special tokens roberta"
        )


def _other_evaluations(experiment: Experiment) -> Iterator[tuple[str, list[str]]]:
    """Yield the keys and values of evaluations that translation models do not support."""
    asked = {
        "minimal_pairs": experiment.minimal_pairs,
        "finetuning.tasks": experiment.finetuning.tasks,
    }
    return ((key, list(names)) for key, names in asked.items() if names)


def _holds_pairs(project: "Project", name: str) -> bool:
    """Return True if every document of a corpus is a sentence pair. Raises ConfigError for an invalid corpus."""
    return holds_only(project, name, "translations")


def holds_only(project: "Project", name: str, content: str) -> bool:
    """Return True if the readers of all sources of a corpus yield documents of the kind `content`, a value of
    `Reader.holds`. Raises ConfigError for an invalid corpus.
    """
    sources = sources_of(project, name)
    return bool(sources) and all(READERS[source.reader].holds == content for source in sources)


def sources_of(project: "Project", name: str) -> tuple[Any, ...]:
    """Return the sources of a corpus. For a sample, return the sources of the sampled corpus. For a corpus of selected
    texts (`sequences`), return an empty tuple.

    Raises ConfigError for an invalid corpus.
    """
    project.check("corpus", name)
    corpus = project.corpus(name)
    if corpus.made_from == "sample":
        return sources_of(project, corpus.sample.corpus)
    return tuple(corpus.sources) if corpus.made_from == "sources" else ()


def _splits_of_pairs(project: "Project", name: str) -> list[str]:
    """Return the names of the splits that a corpus of sentence pairs may have."""
    corpus = project.corpus(name)
    if corpus.made_from == "sample":
        return _splits_of_pairs(project, corpus.sample.corpus)
    has_training = any(source.options.files.keys() & {"train", "any"} for source in corpus.sources)
    return [*(["train"] if has_training else []), *sorted(held_out_splits(project, name))]


def _no_pairs(corpus: str) -> str:
    return (
        f"got {corpus!r}, which contains no sentence pairs; expected a corpus whose sources have reader parallel_text"
    )

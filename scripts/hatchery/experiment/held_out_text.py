"""What an experiment measures on held-out text: which splits its corpora may have, and which models fit.

Of a corpus it is known before it is made which splits it may have, and whether it holds pairs of sentences.
"""

import fnmatch
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from hatchery.errors import ConfigError, SourceError
from hatchery.evaluation.translation.settings import translated_runs
from hatchery.experiment.blocks import Blocks
from hatchery.experiment.overrides import pretraining_of
from hatchery.experiment.own_text import source_at
from hatchery.settings.problems import Problems, offered
from hatchery.tokenization.special_tokens import SPECIAL_SETS

TRANSLATION, TRANSLATING_FAMILY = "translation", "encoder_decoder"


def held_out_splits(blocks: Blocks, name: str) -> set[str]:
    """The splits `dev` and `test` that a corpus may have; one that is not here is surely empty."""
    block = blocks.block("corpus", name)
    if "sample" in block:
        # Drawn documents keep their splits.
        return held_out_splits(blocks, block["sample"]["corpus"])
    if "sequences" in block:
        return _of_sequences(blocks, block["sequences"])
    split = block["split"]
    development = split["development_documents"]
    wanted = {
        "dev": split["development_fraction"] if development is None else development,
        "test": split["test_fraction"],
    }
    drawn = {name for name, share in wanted.items() if share > 0}
    return {name for source in block["sources"] for name in _of_source(source, drawn, blocks)}


def _of_source(source: Mapping[str, Any], drawn: set[str], blocks: Blocks) -> set[str]:
    """The held-out splits that a source may have, of documents that are drawn or of files that name them."""
    if source["reader"] == "babylm":
        return _of_release(source, drawn, blocks)
    if source["reader"] == "parallel_text":
        named = set(source["options"]["files"])
        return (drawn if "any" in named else set()) | (named & {"dev", "test"})
    return drawn


def _of_release(source: Mapping[str, Any], drawn: set[str], blocks: Blocks) -> set[str]:
    """Those of a source in the layout of BabyLM, whose files name them; as far as it lies here."""
    if source["options"]["track"] in ("dev", "test"):
        return {source["options"]["track"]}
    if "data" not in source:
        # What the miniature language has.
        return {"dev"}
    found = source_at((blocks.raw_input(source["data"]) or {"path": None})["path"])
    if found is None:
        return {"dev", "test"}
    from hatchery.corpora.babylm.release import SPLIT_OF_SUFFIX, corpus_files

    options = source["options"]
    try:
        names = corpus_files(found, options["corpus"], options["track"], options["files"])
    except SourceError:
        # Said in full by the stage that reads.
        return {"dev", "test"}
    named = {SPLIT_OF_SUFFIX.get(PurePosixPath(name).suffix) for name in names}
    held_out = {str(split) for split in ("dev", "test") if split in named}
    # Of files that name no split, and of training files without development files, documents are drawn.
    return held_out | drawn if None in named or "dev" not in named else held_out


def _of_sequences(blocks: Blocks, sequences: Mapping[str, Any]) -> set[str]:
    other = sequences["held_out_from"]
    if other is not None:
        return held_out_splits(blocks, other)
    keys = {"dev": "development", "test": "test"}
    return {name for name, key in keys.items() if any(group[key] > 0 for group in sequences["groups"])}


_SPLIT_KEYS = {"dev": "split.development_fraction", "test": "split.test_fraction"}


def check_perplexity_splits(experiment: Mapping[str, Any], where: str, blocks: Blocks) -> None:
    """Raise ConfigError for a split to measure perplexity on that the experiment's corpus surely has not."""
    chosen = experiment["perplexity"]["splits"]
    if not chosen:
        return
    name = experiment["corpus"]
    there = held_out_splits(blocks, name)
    file = blocks.folder / "corpora" / f"{name}.yaml"
    problems = Problems()
    for split in chosen:
        if split not in there:
            key = _SPLIT_KEYS[split] if "sources" in blocks.block("corpus", name) else "what it holds out"
            lacks = f"got {split!r}, a split that the corpus {name!r} does not have"
            problems.add(f"{where}: perplexity.splits: {lacks}; see {key} in {file}")
    problems.raise_any()


def check_translation(experiment: Mapping[str, Any], where: str, blocks: Blocks) -> None:
    """Raise ConfigError where models, evaluations and corpora of translation do not belong together, each on a line.

    A model that translates is an encoder and a decoder, learns from pairs, and is scored on test sets of pairs alone.
    """
    tests, problems = experiment["translation"]["tests"], Problems()
    tasks = {run: pretraining_of(experiment, run)["objective"]["task"] for run in experiment["runs"]}
    for run, task in tasks.items():
        with problems.collecting():
            _check_translating_model(experiment, run, task, where, blocks)
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
        if not _holds_pairs(blocks, experiment["corpus"]):
            problems.add(f"{where}: corpus: {_no_pairs(experiment['corpus'])}")
        with problems.collecting(where):
            _check_special_tokens(experiment["tokenizer"], blocks)
    runs = list(experiment["runs"])
    for pattern in experiment["translation"]["leave_out"]:
        if not fnmatch.filter(runs, pattern):
            problems.add(f"{where}: translation.leave_out: got {pattern!r}, no such run{offered(pattern, runs)}")
    if tests and not translated_runs(experiment):
        problems.add(f"{where}: translation.leave_out: leaves no run that translates, expected one at least")
    for name, test in tests.items():
        place, corpus = f"{where}: translation.tests.{name}", test["corpus"]
        if not _holds_pairs(blocks, corpus):
            problems.add(f"{place}.corpus: {_no_pairs(corpus)}")
        elif test["split"] not in (there := _splits_of_pairs(blocks, corpus)):
            problems.add(
                f"{place}.split: got {test['split']!r}, a split that the corpus {corpus!r} does not have; "
                f"allowed are: {', '.join(there)}"
            )
    problems.raise_any()


def _check_translating_model(experiment: Mapping[str, Any], run: str, task: str, where: str, blocks: Blocks) -> None:
    name = experiment["runs"][run]["model"]
    family = blocks.model_of_run(experiment["runs"][run], f"{where}: runs.{run}")["family"]
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


def _check_special_tokens(name: str, blocks: Blocks) -> None:
    """Raise ConfigError for a tokenizer that ends every text, and so every translation, with the end of a paragraph."""
    block, file = blocks.block("tokenizer", name), blocks.folder / "tokenizers" / f"{name}.yaml"
    if "path" in block:
        # The library takes long to import, and nearly all tokenizers are trained here.
        from hatchery.tokenization.tokenizer_file import load_tokenizer

        path = Path(block["path"]).expanduser()
        special, got = load_tokenizer(path).special, f"path: got {str(path)!r}, which has"
    else:
        special, got = SPECIAL_SETS[block["special_tokens"]], f"special_tokens: got {block['special_tokens']!r}, with"
    if special.paragraph is not None:
        raise ConfigError(
            f"tokenizer: {name!r} cannot translate; {file}: {got} the token {special.paragraph}, which would end every "
            "translation; expected the special tokens roberta"
        )


def _other_evaluations(experiment: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The keys of evaluations that no translating model has, with what they name."""
    asked = {
        "minimal_pairs": experiment["minimal_pairs"],
        "finetuning.tasks": experiment["finetuning"]["tasks"],
    }
    return ((key, list(names)) for key, names in asked.items() if names)


def _holds_pairs(blocks: Blocks, name: str) -> bool:
    """Whether every document of a corpus is a pair of sentences."""
    block = blocks.block("corpus", name)
    if "sample" in block:
        return _holds_pairs(blocks, block["sample"]["corpus"])
    return "sources" in block and all(source["reader"] == "parallel_text" for source in block["sources"])


def _splits_of_pairs(blocks: Blocks, name: str) -> list[str]:
    """The splits that a corpus of pairs may have."""
    block = blocks.block("corpus", name)
    if "sample" in block:
        return _splits_of_pairs(blocks, block["sample"]["corpus"])
    has_training = any(source["options"]["files"].keys() & {"train", "any"} for source in block["sources"])
    return [*(["train"] if has_training else []), *sorted(held_out_splits(blocks, name))]


def _no_pairs(corpus: str) -> str:
    return (
        f"got {corpus!r}, which holds no pairs of sentences; expected a corpus whose sources have reader parallel_text"
    )

"""Which other blocks and raw inputs a block of the configuration names, and under which key: the one list of them."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

DATA = "data"
"""Kind of a reference to a raw input of config.yaml."""


class Reference(NamedTuple):
    """A name under a key: a block of this kind, or a raw input where the kind is DATA."""

    kind: str
    # None only before `references` leaves such keys out.
    name: Any
    key: str


def references(kind: str, block: Mapping[str, Any]) -> Iterator[Reference]:
    """Everything that the block names, in the order of its keys; names that are null are left out."""
    for reference in _FINDERS.get(kind, _nothing)(block):
        if reference.name is not None:
            yield reference


def _nothing(block: Mapping[str, Any]) -> Iterator[Reference]:
    return iter(())


def _own_data(block: Mapping[str, Any], key: str = "data") -> Iterator[Reference]:
    if "data" in block:
        yield Reference(DATA, block["data"], key)


def _experiment(block: Mapping[str, Any]) -> Iterator[Reference]:
    yield Reference("corpus", block["corpus"], "corpus")
    yield Reference("tokenizer", block["tokenizer"], "tokenizer")
    for name, run in block["runs"].items():
        yield Reference("model", run["model"], f"runs.{name}.model")
    named = {"cards": "corpus", "minimal_pairs": "suite", "baselines": "baseline"}
    for key, kind in named.items():
        for name in block[key]:
            yield Reference(kind, name, key)
    for task in block["finetuning"]["tasks"]:
        yield Reference("task", task, "finetuning.tasks")


def _corpus(block: Mapping[str, Any]) -> Iterator[Reference]:
    yield Reference("tokenizer", block["card_tokenizer"], "card_tokenizer")
    for index, source in enumerate(block.get("sources", ())):
        yield from _own_data(source, f"sources.{index}.data")
    yield Reference(DATA, block["sentence_model"], "sentence_model")
    yield from corpora_behind(block)
    for index, group in enumerate(block.get("sequences", {}).get("groups", ())):
        for selection in group["selections"]:
            yield Reference("selection", selection, f"sequences.groups.{index}.selections")


def corpora_behind(corpus: Mapping[str, Any]) -> Iterator[Reference]:
    """The corpora that a corpus is made from; names may be None. The block may be without its defaults."""
    sample, sequences = corpus.get("sample") or {}, corpus.get("sequences") or {}
    for key in ("corpus", "size_of"):
        if key in sample:
            yield Reference("corpus", sample[key], f"sample.{key}")
    if sequences.get("held_out_from") is not None:
        yield Reference("corpus", sequences["held_out_from"], "sequences.held_out_from")


def corpora_of(tokenizer: Mapping[str, Any]) -> list[str]:
    """The corpora that a tokenizer is trained on: one, several together, or none where it is taken from a file."""
    if "path" in tokenizer:
        return []
    return list(tokenizer["corpora"]) if "corpora" in tokenizer else [tokenizer["corpus"]]


def _tokenizer(block: Mapping[str, Any]) -> Iterator[Reference]:
    for name in corpora_of(block):
        yield Reference("corpus", name, "corpora" if "corpora" in block else "corpus")


def _tokenizer_sweep(block: Mapping[str, Any]) -> Iterator[Reference]:
    yield Reference("corpus", block["corpus"], "corpus")
    yield Reference(DATA, block["morphemes_data"], "morphemes_data")
    for name, entry in block["types"].items():
        yield Reference(DATA, entry["reference"], f"types.{name}.reference")


def _vocabulary(block: Mapping[str, Any]) -> Iterator[Reference]:
    yield from _own_data(block)
    for key in ("dictionary", "released"):
        yield Reference(DATA, block.get(key), key)


def _selection(block: Mapping[str, Any]) -> Iterator[Reference]:
    yield from _own_data(block)
    yield Reference(DATA, block["sentence_model"], "sentence_model")
    yield Reference("vocabulary", block["vocabulary"], "vocabulary")


def _task(block: Mapping[str, Any]) -> Iterator[Reference]:
    yield from _own_data(block)
    if block["vocabulary"] is not None:
        yield Reference("vocabulary", block["vocabulary"]["name"], "vocabulary.name")
    for task in block["transfer_tasks"]:
        yield Reference("task", task, "transfer_tasks")


def _protocol(block: Mapping[str, Any]) -> Iterator[Reference]:
    for task in block["tasks"]:
        yield Reference("task", task, "tasks")


_FINDERS = {
    "experiment": _experiment,
    "corpus": _corpus,
    "tokenizer": _tokenizer,
    "tokenizer_sweep": _tokenizer_sweep,
    "vocabulary": _vocabulary,
    "selection": _selection,
    "suite": _own_data,
    "baseline": _own_data,
    "task": _task,
    "protocol": _protocol,
}

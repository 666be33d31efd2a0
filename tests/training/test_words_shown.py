"""The words shown to a model are counted by the corpus's rule, and not estimated."""

import functools
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.artifacts.parquet import ShardWriter
from hatchery.objectives.special_ids import SpecialIds
from hatchery.runner import run_stage
from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.tokenization.token_shards import TokenShards
from hatchery.tokenization.token_words import load_jieba
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.training.batches import TrainingBatches
from hatchery.training.curriculum import order_of
from hatchery.training.development import development_tokens_per_byte
from hatchery.training.inputs import Inputs
from hatchery.training.objectives import objective_of, objective_settings
from hatchery.training.precision import resolve_precision
from hatchery.training.run_parts import RunParts
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.settings import TrainingSettings, pretrain_settings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import SINGLE_PROCESS, Topology
from hatchery.typed import build

LINES = (
    "The dog doesn't like 3.5 (or four) cats, does it?",
    'Well - "no"!  It\'s   a well-known fact; e.g. in St. Ives.',
    "Rivers run, and children's gardens grow...",
    "x=y+1",
    # Non-ASCII white space, in several scripts: 4, 2, 3, 4 and 3 words.
    "10\u00a0km von\u2003Köln",
    "我们\u3000学习语言。",
    "Собаки\u2009бегут\u202fбыстро",
    "one\u2028two\u00a0\u00a0three \u3000four",
    "बिल्ली\u00a0घर में",
)
TEXTS = [
    "\n\n".join("\n".join(LINES[(number + line) % 9] for line in range(1 + number % 5)) for _ in range(1 + number % 3))
    for number in range(40)
]
WORDS = sum(len(text.split()) for text in TEXTS)
BYTES = sum(len(text.encode()) for text in TEXTS)


@functools.cache
def words_by_jieba() -> int:
    """Return jieba's number of words, cached because loading its dictionary takes a second."""
    return sum(not word.isspace() for word in load_jieba().cut("\n".join(TEXTS)))


RULES: dict[str, tuple[dict[str, Any], Callable[[], int]]] = {
    "white_space": ({}, lambda: WORDS),
    "adjusted": (
        {"word_count": "adjusted", "byte_premium": 0.9359664},
        lambda: math.ceil(BYTES / (5.43 * 0.9359664)),
    ),
    "jieba": ({"word_count": "jieba"}, words_by_jieba),
}
"""The settings of each rule, and the words of the texts."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    manifest = tmp_path_factory.mktemp("words") / "corpus" / "manifest.json"
    columns = [(name, pa.string()) for name in ("doc_id", "source", "split", "text")]
    schema = pa.schema([*columns, *((name, pa.int32()) for name in ("n_sentences", "n_words"))])
    with stage_run(manifest, {"stage": "convert_corpus", "stage_version": 1}) as run:
        with ShardWriter(manifest.parent, "train", schema, 25) as writer:
            for number, text in enumerate(TEXTS):
                row = {"doc_id": f"train/{number}", "source": "made", "split": "train", "text": text}
                writer.write({**row, "n_sentences": 1, "n_words": len(text.split())})
        for path in writer.paths:
            run.add_output(path)
    return manifest


KINDS: dict[str, dict[str, Any]] = {
    "wordpiece": {
        "kind": "wordpiece",
        "special_tokens": "babylm",
        "pre_tokenizer": "ltg_bnc",
        "continuing_subword_prefix": "@@",
    },
    "byte_level": {"kind": "byte_bpe", "special_tokens": "babylm", "pre_tokenizer": "byte_level"},
    "metaspace": {"kind": "bpe", "special_tokens": "roberta", "pre_tokenizer": "metaspace"},
}


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS.keys())
def tokens(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokens")
    tokenizer, tokens = (folder / name / "manifest.json" for name in ("tokenizer", "tokens"))
    settings = {
        "stage": "train_tokenizer",
        "vocabulary_size": 400,
        "allow_smaller": True,
        "min_frequency": 1,
        **request.param,
    }
    run_stage(train_tokenizer, settings, tokenizer, corpus=[corpus])
    run_stage(encode_corpus, {"stage": "encode_corpus"}, tokens, corpus=corpus, tokenizer=tokenizer)
    return tokens


def batches(tokens: Path, objective: dict[str, Any], steps: int, topology: Topology = SINGLE_PROCESS) -> Any:
    chosen = objective_settings(objective, "objective")
    plan = StepPlan(TrainingSettings(steps=steps, batch_size=6, sequence_length=32, objective=chosen))
    made = objective_of(chosen)
    shards = TokenShards.open(tokens, TRAINING_SPLIT)
    return TrainingBatches(plan, 5, topology, 4, partial(made.examples, shards), partial(order_of, made))


def test_encoding_counts_the_words_and_bytes_of_a_split(tokens: Path) -> None:
    shards = TokenShards.open(tokens, TRAINING_SPLIT)
    assert [len(line.split()) for line in LINES[4:]] == [4, 2, 3, 4, 3]
    assert (shards.text_words, shards.text_bytes) == (WORDS, sum(len(text.encode()) for text in TEXTS))


@pytest.mark.parametrize("rule", RULES)
def test_an_epoch_that_shows_every_token_once_shows_every_word_once(
    tokens: Path, rule: str, corpus: Path, tmp_path: Path
) -> None:
    counting, words = RULES[rule]
    if counting:
        tokenizer = tokens.parent.parent / "tokenizer/manifest.json"
        tokens = tmp_path / "tokens/manifest.json"
        run_stage(encode_corpus, counting, tokens, corpus=corpus, tokenizer=tokenizer)
    for objective in ({"segments": "packed"}, {"task": "causal"}):
        n_sequences = len(batches(tokens, objective, 1).examples_at(0))
        # These batches of 6 sequences hold whole epochs.
        made = batches(tokens, objective, n_sequences)
        drawn = [made.at(step) for step in range(n_sequences)]
        assert sum(batch.words for batch in drawn) == 6 * words(), objective
        half = Topology(1, 2, 1, "a", 1)
        assert batches(tokens, objective, 1, half).at(0).words < drawn[0].words, objective


def test_a_hybrid_run_counts_both_kinds(tokens: Path) -> None:
    objective = {"task": "hybrid", "causal_share": 0.5}
    n_sequences = len(batches(tokens, objective, 1).examples_at(0))
    made = batches(tokens, objective, n_sequences)
    assert sum(made.at(step).words for step in range(n_sequences)) == 6 * WORDS


# Byte-level tokenizers are left out: their white-space tokens belong to the next word, which offsets do not show.
@pytest.mark.parametrize(
    "tokens", [KINDS["wordpiece"], KINDS["metaspace"]], ids=["wordpiece", "metaspace"], indirect=True
)
@pytest.mark.parametrize("segments", ["documents", "babylm", "bnc"])
def test_cut_segments_count_the_words_that_begin_in_them(tokens: Path, segments: str) -> None:
    shards = TokenShards.open(tokens, TRAINING_SPLIT)
    folder = read_manifest(tokens)
    tokenizer = load_tokenizer(Path(str(folder.path)).parent.parent / "tokenizer" / "tokenizer.json")
    made = batches(tokens, {"segments": segments, "short_probability": 0.5}, 3)
    special, examples = SpecialIds.of(shards.special), made.examples_at(0)
    for index in range(len(examples)):
        (segment,) = examples.example(5, 0, index).texts
        lines = [line for line in TEXTS[segment.number].split("\n") if line]
        # The library finds the character of the line at which each token begins.
        begins: list[bool] = []
        ends = np.append(segment.document.sentence_starts[1:], len(segment.document.ids))
        for line, end in zip(lines, ends, strict=True):
            places = [start for start, _ in tokenizer.backend.encode(line, add_special_tokens=False).offsets]
            numbers = [len((line[: place + 1] + "|").split()) for place in places]
            begins += [number != before for number, before in zip(numbers, [-1, *numbers], strict=False)]
            begins += [False] * (int(end) - len(begins))
        assert segment.text_words(special) == sum(begins[segment.start : segment.end]), lines


def test_words_of_pairs_are_those_of_both_sides(pair_data: Any) -> None:
    shards = TokenShards.open(pair_data.tokens, TRAINING_SPLIT)
    objective = objective_of(objective_settings({"task": "translation", "longest_ratio": None}, "objective"))
    examples = objective.examples(shards, 1_000)
    _, words = examples.counted_batch(0, 0, np.arange(len(examples)))
    assert words == shards.text_words


def test_shards_that_know_neither_words_nor_bytes_count_none(
    token_data: Any, pretrain_slice: Any, runtime_slice: Any, tmp_path: Path
) -> None:
    manifest = tmp_path / "tokens" / "manifest.json"
    manifest.parent.mkdir()
    for path in token_data.tokens.parent.iterdir():
        (manifest.parent / path.name).write_bytes(path.read_bytes())
    described = json.loads(manifest.read_text("utf-8"))
    for name in ("text_words", "text_bytes", "token_bytes"):
        del described["measures"][name]
    manifest.write_text(json.dumps(described), encoding="utf-8")
    manifest.with_name("provenance.json").unlink()
    shards = TokenShards.open(manifest, TRAINING_SPLIT)
    assert shards.text_words is shards.text_bytes is None
    masked = objective_of(objective_settings({}, "objective"))
    assert development_tokens_per_byte(manifest, masked) is None
    settings, options = pretrain_settings(pretrain_slice()), build(RuntimeSettings, runtime_slice(), "runtime")
    for tokens, words in ((token_data.tokens, 0), (manifest, None)):
        parts = RunParts(settings, options, Inputs(tokens, token_data.tokenizer), SINGLE_PROCESS, "run")
        precision = resolve_precision("fp32", torch.device("cpu"))
        record = parts.record(tmp_path, tmp_path, torch.device("cpu"), precision, None, (), counts_flops=True)
        assert record.position.words == words

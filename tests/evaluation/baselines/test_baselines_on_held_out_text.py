"""Perplexity of models of others: losses are those of the library alone, with its own encoding of the text."""

from math import exp
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from baseline_cases import build, rows_of
from perplexity_cases import documents, settings, typed_settings, write_corpus

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import EvaluationError
from hatchery.evaluation.baselines.own_text import OwnText
from hatchery.evaluation.perplexity.scoring import held_out_examples
from hatchery.evaluation.runtime import load_sentence_model
from hatchery.evaluation.stages.measure_perplexity import measure_perplexity
from hatchery.evaluation.trained_objective import asked_of_others
from hatchery.runner import run_stage
from hatchery.tokenization.special_tokens import UNLABELLED

LENGTH = 24
TEXTS = documents(9)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus") / "manifest.json", {"train": documents(3), "dev": TEXTS})


def measured(model, corpus, folder, **changes: Any):
    chosen = settings(splits=["dev"], sequence_length=LENGTH, **changes)
    runtime = {"tokens_per_batch": 100, "device": "cpu"}
    run_stage(measure_perplexity, chosen, folder / "manifest.json", runtime=runtime, model=model, corpus=corpus)
    (row,) = rows_of(folder / "perplexity.csv")
    return {key: float(value) for key, value in row.items() if key != "split" and value}


@torch.no_grad()
def losses_from_left_to_right(name):
    """Of every token of every document and of its end: documents as running text, cut after LENGTH - 2 tokens."""
    tokenizer, network = build(name)
    end, found = tokenizer.eos_token_id, []
    for text in TEXTS:
        ids = tokenizer(" ".join(text.split()), add_special_tokens=False)["input_ids"]
        for first in range(0, len(ids), LENGTH - 2):
            piece = ids[first : first + LENGTH - 2]
            targets = torch.tensor([*piece, end] if first + len(piece) == len(ids) else piece)
            if name == "t5":
                begin = torch.tensor([[network.config.decoder_start_token_id, *piece]])
                logits = network(input_ids=torch.tensor([[end]]), decoder_input_ids=begin).logits[0]
            else:
                logits = network(torch.tensor([[end, *piece]])).logits[0]
            found += F.cross_entropy(logits[: len(targets)], targets, reduction="none").tolist()
    return found


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_every_token_is_asked_for_once_and_costs_what_the_library_says(manifest_of, corpus, tmp_path, name):
    found, losses = measured(manifest_of(name), corpus, tmp_path), losses_from_left_to_right(name)
    assert found["labelled_tokens"] == len(losses)
    assert found["loss_nats"] == pytest.approx(np.mean(losses), abs=1e-5)
    (words,) = rows_of(tmp_path / "words.csv")
    n_words = sum(len(text.split()) for text in TEXTS)
    assert int(words["words"]) == n_words
    assert float(words["word_perplexity"]) == pytest.approx(exp(sum(losses) / n_words), rel=1e-4)


@pytest.mark.parametrize("masking", ["common", "own"])
def test_masked_tokens_cost_what_the_library_says(manifest_of, corpus, tmp_path, masking):
    manifest = manifest_of("bert")
    found = measured(manifest, corpus, tmp_path, masking=masking, pseudo_perplexity_sentences=4)
    tokenizer, network = build("bert")
    text = OwnText(load_sentence_model(manifest, torch.device("cpu")), read_manifest(corpus), "dev")
    chosen = typed_settings(splits=["dev"], sequence_length=LENGTH)
    examples = held_out_examples(text, chosen, asked_of_others(chosen, "masked"))
    losses = []
    for index in range(len(examples)):
        example = examples.example(chosen.seed, 0, index)
        original = np.where(example.labels == UNLABELLED, example.input_ids, example.labels)
        assert (original[0], original[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
        asked = example.labels != UNLABELLED
        assert (example.input_ids[asked] == tokenizer.mask_token_id).all() and not asked[[0, -1]].any()
        with torch.no_grad():
            logits = network(torch.tensor(example.input_ids)[None]).logits[0]
        losses += F.cross_entropy(logits, torch.tensor(example.labels), reduction="none")[asked].tolist()
    assert found["labelled_tokens"] == len(losses) > 10
    assert found["loss_nats"] == pytest.approx(np.mean(losses), abs=1e-5)
    assert found["pseudo_perplexity"] > 1 and not (tmp_path / "words.csv").exists()


def test_sequences_that_are_too_long_for_a_model_are_told_before_they_are_scored(manifest_of, corpus, tmp_path):
    with pytest.raises(EvaluationError, match="sequence_length: got 128, expected at most 32, the longest input"):
        chosen = settings(splits=["dev"], sequence_length=128)
        output = tmp_path / "manifest.json"
        run_stage(measure_perplexity, chosen, output, runtime={}, model=manifest_of("bert"), corpus=corpus)

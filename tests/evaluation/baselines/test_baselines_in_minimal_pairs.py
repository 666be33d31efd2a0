"""Minimal pairs and perplexity of models of the library transformers, against one call of the library per token."""

from math import exp
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import torch.nn.functional as F
from baseline_cases import ARCHITECTURES, NAMES, build, imported
from finetuning_cases import results
from perplexity_cases import documents, settings, typed_settings, write_corpus

import hatchery
from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.baselines.own_text import own_text
from hatchery.evaluation.minimal_pairs.items import minimal_pair
from hatchery.evaluation.minimal_pairs.score_suite import candidate_scores
from hatchery.evaluation.minimal_pairs.scoring import token_scores
from hatchery.evaluation.perplexity.scoring import held_out_examples
from hatchery.evaluation.runtime import load_sentence_model
from hatchery.evaluation.stages.measure_perplexity import measure_perplexity
from hatchery.evaluation.stages.score_minimal_pairs import score_minimal_pairs
from hatchery.evaluation.trained_objective import baseline_objective
from hatchery.runner import run_stage
from hatchery.tokenization.special_tokens import UNLABELLED

CPU = torch.device("cpu")
TEXTS = ["The dogs sleep near an old house.", "The cat sleeps.", "Dogs, unhappily, sleep!", "The dogs sleeps."]
MASKED = [name for name, architecture in ARCHITECTURES.items() if architecture == "masked"]


@pytest.fixture
def model_of(manifest_of):
    return lambda name: load_sentence_model(manifest_of(name), CPU)


@torch.no_grad()
def naive(name: str, texts: list[str]) -> list[list[float]]:
    """Return token scores by definition: one library call per token, full logits, and the library's encoding."""
    tokenizer, network = build(name)
    scores = []
    for text in texts:
        values = []
        match ARCHITECTURES[name]:
            case "masked":
                ids = torch.tensor(tokenizer(text)["input_ids"])
                for position in range(1, len(ids) - 1):
                    row = ids.clone()
                    row[position] = tokenizer.mask_token_id
                    values.append((network(row[None]).logits[0, position], ids[position]))
            case "causal":
                ids = tokenizer(text, add_special_tokens=False)["input_ids"]
                ids = torch.tensor([tokenizer.eos_token_id, *ids])
                values += [(network(ids[None, :at]).logits[0, -1], ids[at]) for at in range(1, len(ids))]
            case "encoder_decoder":
                # The encoder reads EOS. The decoder predicts the sentence and EOS.
                ids = tokenizer(text, add_special_tokens=False)["input_ids"]
                ids = torch.tensor([network.config.decoder_start_token_id, *ids, tokenizer.eos_token_id])
                read = torch.tensor([[tokenizer.eos_token_id]])
                for position in range(1, len(ids)):
                    logits = network(input_ids=read, decoder_input_ids=ids[None, :position]).logits[0, -1]
                    values.append((logits, ids[position]))
        scores.append([float(torch.log_softmax(logits, dim=-1)[target]) for logits, target in values])
    return scores


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tokens_per_batch", [1, 90, None])
def test_scores_are_those_of_one_call_of_the_library_per_token(model_of, name, tokens_per_batch):
    model = model_of(name)
    scores = token_scores(model, model.encode(TEXTS), "auto", tokens_per_batch)
    for values, expected in zip(scores, naive(name, TEXTS), strict=True):
        np.testing.assert_allclose(values, expected, atol=2e-5)


@pytest.mark.parametrize("name", sorted(MASKED))
def test_logits_of_masked_models_are_made_at_the_wanted_positions_only(model_of, name):
    model = model_of(name)
    seen: list[Any] = []
    model.network.get_output_embeddings().register_forward_hook(lambda module, inputs, output: seen.append(output))
    ids = torch.tensor([[2, 5, 6, 3], [2, 7, 8, 3]])
    chosen = model.logits_at(ids, torch.tensor([1, 6]))
    assert chosen.shape == (2, model.vocabulary_size) and seen[0].numel() == chosen.numel()
    full = model.network(input_ids=ids).logits.flatten(0, 1)[[1, 6]]
    torch.testing.assert_close(chosen, full, atol=1e-5, rtol=1e-5)


def test_words_of_a_wordpiece_tokenizer_are_masked_together(model_of):
    model = model_of("bert")
    (sentence,) = model.encode(["The dogs unhappily sleep."], words=True)
    assert sentence.words == (0, 1, 1, 2, 2, 2, 3, 4)
    assert len(token_scores(model, [sentence], "pll_within_word_l2r")[0]) == 8


def test_special_tokens_spelled_out_in_a_sentence_are_text(model_of):
    spelled = {"bert": "The [MASK].", "roberta": "The <mask>.", "gpt2": "The </s>.", "bart": "The </s>."}
    for name, text in spelled.items():
        model = model_of(name)
        end = 1 if ARCHITECTURES[name] == "encoder_decoder" else 0
        ids = model.encode([text])[0].ids
        special = {*build(name)[0].all_special_ids} - {build(name)[0].unk_token_id}
        assert not special & {*ids[: len(ids) - end]}, name


def test_a_leading_blank_changes_byte_level_ids_without_a_prefix_space_and_no_wordpiece_ids(model_of):
    for name, changes in (("bert", False), ("roberta", True), ("gpt2", True)):
        model = model_of(name)
        assert (model.encode([" The dogs"]) != model.encode(["The dogs"])) is changes, name


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_gap_is_filled_with_the_most_probable_tokens_of_the_library(manifest_of, name):
    tokenizer, network = build(name)
    before, behind = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("the", " dogs sleep."))
    # The mask takes the place of the word and of the space before the word.
    ids = [tokenizer.cls_token_id, *before, tokenizer.mask_token_id, *behind, tokenizer.sep_token_id]
    with torch.no_grad():
        shares = network(torch.tensor([ids])).logits[0, 1 + len(before)].double().softmax(-1)
    best = shares.argsort(descending=True, stable=True)[:4]
    found = hatchery.model(manifest_of(name)).fill("the ____ dogs sleep.", number=4)
    assert found["probability"].to_list() == pytest.approx(shares[best].tolist(), abs=1e-6)
    assert found["text"].to_list() == [tokenizer.decode([index]).strip() for index in best.tolist()]


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_hidden_states_are_those_of_the_library_for_the_framed_sentence(manifest_of, name):
    tokenizer, network = build(name)
    ids = tokenizer("the dogs")["input_ids"]
    if name == "gpt2":
        ids = [tokenizer.eos_token_id, *ids]
    with torch.no_grad():
        expected = torch.cat(network(torch.tensor([ids]), output_hidden_states=True).hidden_states)
    found = hatchery.model(manifest_of(name)).hidden_states("the dogs")
    assert found.attentions is None and found.states == pytest.approx(expected.numpy(), abs=1e-5)
    assert found.tokens == tuple(tokenizer.decode([index]).strip() for index in ids)


def test_the_limit_of_an_input_is_known_before_it_is_scored(model_of):
    longest = {name: model_of(name).longest_input for name in NAMES}
    # RoBERTa's positions start at the padding id + 1. The other models accept one token per position; T5 has no limit.
    assert longest == {"bert": 32, "roberta": 64, "distilbert": 32, "gpt2": 64, "opt": 64, "t5": None, "bart": 64}
    pairs = [minimal_pair("p", "f", "0", "a" * 62, "a")]
    assert candidate_scores(pairs, model_of("roberta")).tokens.tolist() == [[62, 1]]


SETTINGS = {
    "stage": "score_minimal_pairs",
    "suite": "mine",
    "format": "blimp",
    "files": "*.jsonl",
    "pairs_per_paradigm": None,
    "seed": 0,
    "scoring": "auto",
}
ROWS = [
    {"sentence_good": "The dogs sleep.", "sentence_bad": "The dogs sleeps.", "UID": "agreement", "pairID": "0"},
    {"sentence_good": "The cat sleeps.", "sentence_bad": "The cat sleep.", "UID": "agreement", "pairID": "1"},
]


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_the_stage_scores_a_baseline_with_its_own_blank_and_says_what_it_was(
    stored, make_source, json_lines, tmp_path, name
):
    source = make_source({"pairs.jsonl": json_lines(ROWS)})
    model = imported(stored(name), ARCHITECTURES[name], tmp_path / "model", leading_blank=True)
    output = tmp_path / "out/manifest.json"
    given = {"runtime": {"device": "cpu"}, "model": model, "source": source.manifest}
    run_stage(score_minimal_pairs, SETTINGS, output, **given)
    measures = read_manifest(output).measures
    scoring = {"bert": "pll", "gpt2": "left_to_right", "t5": "left_to_right"}[name]
    assert (measures["scoring"], measures["architecture"]) == (scoring, ARCHITECTURES[name])
    assert measures["model_kind"] == "transformers" and measures["leading_blank"] is True
    table = pq.read_table(tmp_path / "out/scores.parquet").to_pylist()
    for row, scored in zip(ROWS, table, strict=True):
        good, bad = naive(name, [f" {row['sentence_good']}", f" {row['sentence_bad']}"])
        assert (scored["score_good"], scored["score_bad"]) == pytest.approx((sum(good), sum(bad)), abs=2e-4)
    wrong = {**SETTINGS, "scoring": "left_to_right" if name == "bert" else "pll"}
    with pytest.raises(ConfigError, match="language model, but this model is"):
        run_stage(score_minimal_pairs, wrong, output, **given)
    assert not output.exists()


LENGTH = 24
HELD_OUT_TEXTS = documents(9)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    return write_corpus(folder / "manifest.json", {"train": documents(3), "dev": HELD_OUT_TEXTS})


def measured(model, corpus, folder, **changes: Any):
    chosen = settings(splits=["dev"], sequence_length=LENGTH, **changes)
    runtime = {"tokens_per_batch": 100, "device": "cpu"}
    run_stage(measure_perplexity, chosen, folder / "manifest.json", runtime=runtime, model=model, corpus=corpus)
    (row,) = results(folder, "perplexity.csv")
    return {key: float(value) for key, value in row.items() if key != "split" and value}


@torch.no_grad()
def losses_from_left_to_right(name):
    """Return the losses of all tokens and of each document's EOS. Documents are split after LENGTH - 2 tokens."""
    tokenizer, network = build(name)
    end, found = tokenizer.eos_token_id, []
    for text in HELD_OUT_TEXTS:
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
    (words,) = results(tmp_path, "words.csv")
    n_words = sum(len(text.split()) for text in HELD_OUT_TEXTS)
    assert int(words["words"]) == n_words
    assert float(words["word_perplexity"]) == pytest.approx(exp(sum(losses) / n_words), rel=1e-4)


@pytest.mark.parametrize("masking", ["common", "own"])
def test_masked_tokens_cost_what_the_library_says(manifest_of, corpus, tmp_path, masking):
    manifest = manifest_of("bert")
    found = measured(manifest, corpus, tmp_path, masking=masking, pseudo_perplexity_sentences=4)
    tokenizer, network = build("bert")
    text = own_text(load_sentence_model(manifest, torch.device("cpu")), read_manifest(corpus), "dev")
    chosen = typed_settings(splits=["dev"], sequence_length=LENGTH)
    examples = held_out_examples(text, chosen, baseline_objective(chosen, "masked"))
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

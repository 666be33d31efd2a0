"""Perplexity of causal and hybrid models, and measures of single tokens: frequency bins and their slopes."""

import csv
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from perplexity_cases import OBJECTIVE, ModelMaker, Text, documents, examples_of, measure, typed_settings

from hatchery.analysis.collect_measurements import HeldOutText
from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.minimal_pairs.scoring import scoring_name, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel
from hatchery.evaluation.perplexity.measurements import perplexity_rows
from hatchery.evaluation.perplexity.scoring import chosen_sequences
from hatchery.evaluation.runtime import load_pretrained, load_sentence_model
from hatchery.evaluation.settings import PerplexitySettings
from hatchery.evaluation.trained_objective import objective_of_model
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.tokenization.token_shards import TokenShards


def next_token_losses(network: LanguageModel, ids: list[int]) -> list[float]:
    """Return the loss of each id after [CLS], from one forward pass per id."""
    losses = []
    for end in range(1, len(ids)):
        with torch.no_grad():
            hidden = network.encoder(torch.tensor([ids[:end]]))[-1][0, -1]
            losses.append(-float(torch.log_softmax(network.logits_at(hidden).double(), dim=-1)[ids[end]]))
    return losses


def test_a_causal_model_is_asked_for_every_token_and_every_end_also_per_word(
    text: Text, make_model: ModelMaker, tmp_path: Path
) -> None:
    model = make_model(objective={"task": "causal", "segments": "documents"})
    # Because the sequence length is large, no document is split.
    rows = measure(model, text, tmp_path, sequence_length=512, pseudo_perplexity_sentences=3)
    row = rows["dev"]
    network, tokenizer = load_pretrained(model)
    network.eval()
    shards = TokenShards.open(text.tokens, "dev")
    framed = [[tokenizer.cls_id, *document.ids.tolist(), tokenizer.sep_id] for document in shards]
    assert int(row["labelled_tokens"]) == shards.n_tokens + shards.n_documents
    assert row["pseudo_perplexity"] == ""
    found = read_manifest(tmp_path / "manifest.json").file("words.csv")
    with found.open(newline="") as handle:
        words = {entry["split"]: entry for entry in csv.DictReader(handle)}
    assert list(words) == ["dev", "test"]
    for split, number in (("dev", 60), ("test", 25)):
        n_words = sum(len(document.split()) for document in documents(number))
        assert int(words[split]["words"]) == n_words
        whole = float(rows[split]["loss_nats"]) * int(rows[split]["labelled_tokens"])
        assert float(words[split]["loss_nats_per_word"]) == pytest.approx(whole / n_words)
        assert float(words[split]["word_perplexity"]) == pytest.approx(math.exp(whole / n_words))
    part = measure(model, text, tmp_path / "part", sequence_length=512, masking="own", sequences=20)["dev"]
    chosen = chosen_sequences(framed, typed_settings(sequences=20))
    losses = [loss for index in chosen for loss in next_token_losses(network, framed[int(index)])]
    assert float(part["loss_nats"]) == pytest.approx(math.fsum(losses) / len(losses), rel=1e-5)
    assert (tmp_path / "part/words.csv").read_text().count("\n") == 1
    # Blocks do not predict document ends.
    blocks = make_model("blocks", objective={"task": "causal", "segments": "blocks"})
    without_ends = measure(blocks, text, tmp_path / "ends", sequence_length=512)["dev"]
    assert int(without_ends["labelled_tokens"]) == shards.n_tokens
    assert (tmp_path / "ends/words.csv").read_text().count("\n") == 1


def test_numbers_of_differently_drawn_sequences_are_not_comparable(
    text: Text, make_model: ModelMaker, tmp_path: Path
) -> None:
    model = make_model(objective={"task": "causal"})
    bases = set()
    for number, seed in ((20, 1), (20, 2), (21, 1), (None, 1)):
        folder = tmp_path / f"{number} {seed}"
        measure(model, text, folder, masking="own", sequences=number, seed=seed)
        rows = perplexity_rows(Evaluated(read_manifest(folder / "manifest.json"), read_manifest(model)))
        bases |= {row["basis"] for row in rows if row["metric"] == "perplexity" and row["task"] == "dev"}
    assert len(bases) == 4


def test_a_causal_model_reads_a_sentence_from_left_to_right(make_model: ModelMaker) -> None:
    network, tokenizer = load_pretrained(make_model(objective={"task": "causal"}))
    model = HatcheryModel(network, tokenizer, torch.device("cpu"))
    assert scoring_name("auto", model.architecture) == "left_to_right"
    sentences = model.encode(["The old dogs near the house sleep .", "A cat chases dogs ."])
    for sentence, scores in zip(sentences, token_scores(model, sentences), strict=True):
        expected = next_token_losses(network, [tokenizer.cls_id, *sentence.ids])
        assert scores.tolist() == pytest.approx([-loss for loss in expected], rel=1e-5)
    with pytest.raises(
        ConfigError, match="'pll' needs a masked language model, but this model is causal; use left_to_right"
    ):
        token_scores(model, sentences, "pll")


def tokens_of(model: Path, examples: Any, typed: PerplexitySettings) -> list[tuple[int, float, float]]:
    """Return each labelled token with its log-probability and its log-probability without the output bias."""
    network = load_pretrained(model)[0].eval()
    bias = network.output_layer[1]
    own, found = bias.detach().clone(), []
    for index in chosen_sequences(examples, typed):
        batch = examples.batch(typed.seed, 0, [int(index)])
        labels = batch["labels"][0]
        asked = (labels != UNLABELLED).nonzero()[:, 0]
        values = []
        with torch.no_grad():
            hidden = network.encoder(batch["input_ids"], batch["attention_mask"])[-1][0, asked]
            for used in (own, torch.zeros_like(own)):
                bias.copy_(used)
                log_probabilities = torch.log_softmax(network.logits_at(hidden).double(), dim=-1)
                values.append(log_probabilities[torch.arange(len(asked)), labels[asked]].tolist())
        found += list(zip(labels[asked].tolist(), *values, strict=True))
    return found


@pytest.mark.parametrize("objective", [OBJECTIVE, {"task": "causal", "segments": "documents"}])
def test_bins_of_frequency_and_slopes_are_those_of_a_plain_computation(
    text: Text, make_model: ModelMaker, tmp_path: Path, objective: Any
) -> None:
    model = make_model(objective=objective, biased=True)
    plain = measure(model, text, tmp_path / "plain")["dev"]
    assert measure(model, text, tmp_path, frequency_bin_nats=0.5)["dev"] == plain
    assert not (tmp_path / "plain/frequency.csv").exists()
    examples, typed = examples_of(text, model)
    types, with_bias, without = map(np.array, zip(*tokens_of(model, examples, typed), strict=True))
    shards = TokenShards.open(text.tokens, "train")
    counts = np.ones(shards.vocabulary_size)
    for document in shards:
        ids = document.ids[document.ids >= len(shards.special.order)] if objective is OBJECTIVE else document.ids
        np.add.at(counts, ids, 1)
        counts[shards.special.ids[shards.special.sep]] += objective is not OBJECTIVE
    x = np.log(counts / counts.sum())[types]
    with read_manifest(tmp_path / "manifest.json").file("frequency.csv").open(newline="") as handle:
        rows = {(row["lowest"], row["metric"]): row for row in csv.DictReader(handle) if row["split"] == "dev"}
    bins = sorted(set(np.floor(x / 0.5)))
    assert len(bins) > 3
    named = {"log_frequency_nats": x, "log_probability_nats": with_bias, "log_probability_without_bias_nats": without}
    for place in bins:
        among = np.floor(x / 0.5) == place
        for metric, values in named.items():
            row = rows.pop((str(place * 0.5), metric))
            assert int(row["tokens"]) == among.sum()
            assert float(row["value"]) == pytest.approx(values[among].mean(), rel=1e-5)
            if among.sum() > 1:
                error = values[among].std(ddof=1) / among.sum() ** 0.5
                assert float(row["standard_error"]) == pytest.approx(error, rel=1e-4, abs=1e-6)
    for metric, values in (("frequency_slope", with_bias), ("frequency_slope_without_bias", without)):
        (slope, _), spread = np.polyfit(x, values, 1, cov=True)
        row = rows.pop(("", metric))
        assert float(row["value"]) == pytest.approx(slope, rel=1e-4)
        assert float(row["standard_error"]) == pytest.approx(spread[0, 0] ** 0.5, rel=1e-4)
    assert not rows
    made = read_manifest(tmp_path / "manifest.json")
    tidy = perplexity_rows(Evaluated(made, read_manifest(model), unigram_loss=lambda split: 3.0))
    slopes = {"frequency_slope", "frequency_slope_without_bias"}
    assert {row["metric"] for row in tidy if row["level"] == "bin"} == set(named)
    assert {row["level"] for row in tidy if row["metric"] in slopes} == {"split"}
    (last,) = [row for row in tidy if (row["task"], row["metric"]) == ("dev", "frequency_slope_without_bias")]
    assert (last["value"], last["sampling_deviation"]) == pytest.approx((slope, spread[0, 0] ** 0.5), rel=1e-4)
    assert last["items"] == len(x)
    assert abs(with_bias.mean() - without.mean()) > 0.01


CPU = torch.device("cpu")
SENTENCE = "The old dogs near the house sleep ."


def scored(model: Any, way: str) -> tuple[list[int], list[float]]:
    asked = load_sentence_model(model, CPU, way)
    (sentence,) = asked.encode([SENTENCE])
    (scores,) = token_scores(asked, [sentence], way)
    return list(sentence.ids), scores.tolist()


@pytest.mark.parametrize("way", ["auto", "pll"])
@torch.no_grad()
def test_a_hidden_token_is_read_at_the_position_before_it(make_model: Any, way: str) -> None:
    model = make_model(objective={"task": "hybrid"})
    ids, scores = scored(model, way)
    network, tokenizer = load_pretrained(model)
    framed = [tokenizer.cls_id, *ids, tokenizer.sep_id]
    for position, (token, score) in enumerate(zip(ids, scores, strict=True), start=1):
        hidden = torch.tensor([framed])
        hidden[0, position] = tokenizer.mask_id
        logits = network.eval().logits_at(network.encoder(hidden)[-1][0, position - 1])
        assert score == pytest.approx(float(logits.log_softmax(0)[token]), rel=1e-4)


@torch.no_grad()
def test_from_left_to_right_it_is_a_causal_model(make_model: Any) -> None:
    model = make_model(objective={"task": "hybrid"})
    ids, scores = scored(model, "left_to_right")
    network, tokenizer = load_pretrained(model)
    states = network.eval().encoder(torch.tensor([[tokenizer.cls_id, *ids[:-1]]]), causal=True)[-1][0]
    expected = network.logits_at(states).log_softmax(1).gather(1, torch.tensor(ids)[:, None]).squeeze(1)
    assert scores == pytest.approx(expected.tolist(), rel=1e-4)


def test_common_masks_hide_the_same_tokens_as_of_masked_models(text: Text, make_model: Any, tmp_path: Any) -> None:
    rows = [
        measure(make_model(name, objective=objective), text, tmp_path / f"{name}_measured")["dev"]
        for name, objective in (("masked", {"kind": "span"}), ("hybrid", {"task": "hybrid"}))
    ]
    assert rows[0]["labelled_tokens"] == rows[1]["labelled_tokens"]
    # The weights are equal, but the hybrid model's logits are read at other positions.
    assert rows[0]["loss_nats"] != rows[1]["loss_nats"]


def test_a_hybrid_model_that_was_only_causal_is_asked_for_next_tokens(
    text: Text, make_model: Any, tmp_path: Any
) -> None:
    objectives = {"hybrid": {"task": "hybrid", "causal_share": 1}, "causal": {"task": "causal", "segments": "packed"}}
    rows = [
        measure(make_model(name, objective=objective), text, tmp_path / f"{name}_measured")["dev"]
        for name, objective in objectives.items()
    ]
    # The weights are equal. Each batch sets the hybrid model's direction; the other model is always causal.
    losses = [float(row["loss_nats"]) for row in rows]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert rows[0]["labelled_tokens"] == rows[1]["labelled_tokens"]


CAUSAL = {"task": "causal", "segments": "packed", "reset_attention": True}


def blind_guesses(text: Text, model: Path, folder: Path, of: Path | None = None) -> dict[tuple[str, str], float | None]:
    measure(model, text, folder)
    made = read_manifest(folder / "manifest.json")
    loss = partial(HeldOutText(read_manifest(of or text.tokens)).loss, made, objective_of_model(read_manifest(model)))
    found = perplexity_rows(Evaluated(made, read_manifest(model), unigram_loss=loss))
    return {(row["task"], row["metric"]): row["blind_guess"] for row in found}


def mean_loss_of_unigrams(text: Text, model: Path, rounds: int, causal: bool) -> float:
    """Return the mean loss of the training split's unigrams over the labels of `rounds` draws."""
    size = int(read_manifest(text.tokens).measures["vocabulary_size"])
    counts = np.ones(size)
    shards = TokenShards.open(text.tokens, "train")
    for document in shards:
        for token in document.ids.tolist():
            counts[token] += causal or token >= len(shards.special.order)
        if causal:
            counts[shards.special.ids[shards.special.sep]] += 1
    examples, _ = examples_of(text, model)
    batches = [examples.batch(seed, 0, np.arange(len(examples)))["labels"].numpy() for seed in range(rounds)]
    labels = np.concatenate([batch[batch != UNLABELLED] for batch in batches])
    return float(-np.log(counts / counts.sum())[labels].mean())


# In short texts, masks select some tokens more often than others, because each sequence has at least one mask.
@pytest.mark.parametrize(("objective", "rounds", "tolerance"), [(CAUSAL, 1, 1e-9), (OBJECTIVE, 50, 0.1)])
def test_a_blind_guess_of_held_out_text_is_the_unigram_distribution_of_the_training_text(
    *, objective: dict[str, Any], rounds: int, tolerance: float, text: Text, make_model: ModelMaker, tmp_path: Path
) -> None:
    model = make_model(objective=objective)
    found = blind_guesses(text, model, tmp_path / "measured")
    loss = found["dev", "loss_nats"]
    assert loss == pytest.approx(mean_loss_of_unigrams(text, model, rounds, objective is CAUSAL), abs=tolerance)
    assert found["dev", "perplexity"] == pytest.approx(math.exp(loss or 0.0))
    # Another split has other words.
    assert found["test", "loss_nats"] not in (None, loss)
    assert found["dev", "accuracy_percent"] is None


def test_of_text_that_a_model_was_not_trained_on_no_blind_guess_is_known(
    text: Text, make_model: ModelMaker, tmp_path: Path
) -> None:
    other = Text(tmp_path / "other", 300, {"train": documents(5), "dev": documents(3), "test": documents(2)})
    assert set(blind_guesses(text, make_model(), tmp_path / "measured", of=other.tokens).values()) == {None}

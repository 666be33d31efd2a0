import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.minimal_pairs.accuracy import decide
from hatchery.evaluation.minimal_pairs.pairs import MinimalPair
from hatchery.evaluation.minimal_pairs.pseudo_log_likelihood import SpecialIds, sentence_scores, token_log_probabilities
from hatchery.evaluation.minimal_pairs.stage import pair_scores
from hatchery.modeling.configuration import LtgBertConfig
from hatchery.modeling.masked_language_model import MaskedLanguageModel
from hatchery.modeling.published_names import from_published
from hatchery.tokenization.tokenizer_file import load_tokenizer

SPECIAL = SpecialIds(cls=1, sep=2, mask=4)
CPU = torch.device("cpu")
SENTENCES = st.lists(st.lists(st.integers(7, 50), min_size=1, max_size=9), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def model(small_model):
    network = small_model(51).eval()
    torch.manual_seed(0)
    with torch.no_grad():  # a fresh model is nearly uniform; the tests need tokens that differ
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return network


class Uniform(torch.nn.Module):
    """Every token equally likely; counts what it is asked."""

    def __init__(self, vocabulary=16):
        super().__init__()
        self.encoder = self.remember
        self.vocabulary = vocabulary
        self.batches = []

    def remember(self, ids, mask):
        assert mask.dtype == torch.bool and bool(mask.all())
        self.batches.append(ids)
        return [torch.zeros(*ids.shape, 4)]

    def logits_at(self, hidden):
        assert hidden.ndim == 2, "the head must see one vector per row"
        return torch.zeros(len(hidden), self.vocabulary)


@torch.no_grad()
def one_at_a_time(model, sentence):
    """The definition, token by token: one unbatched call each, in the words of evaluation.md 3.1."""
    values = []
    for position, target in enumerate(sentence):
        row = [SPECIAL.cls, *sentence, SPECIAL.sep]
        row[position + 1] = SPECIAL.mask
        ids = torch.tensor([row])
        logits = model.logits_at(model.encoder(ids, torch.ones_like(ids, dtype=torch.bool))[-1])
        values.append(float(torch.log_softmax(logits[0, position + 1], dim=-1)[target]))
    return np.array(values)


@settings(max_examples=25, deadline=None)
@given(SENTENCES, st.integers(1, 60))
def test_batched_scores_are_those_of_one_call_per_token(model, sentences, tokens_per_batch):
    batched = token_log_probabilities(model, sentences, SPECIAL, tokens_per_batch, CPU)
    for sentence, values in zip(sentences, batched, strict=True):
        np.testing.assert_allclose(values, one_at_a_time(model, sentence), atol=1e-5)


def test_200_sentences_agree_with_the_one_at_a_time_loop(model):
    random = np.random.default_rng(5)
    sentences = [random.integers(7, 51, size=random.integers(1, 20)).tolist() for _ in range(200)]
    batched = sentence_scores(token_log_probabilities(model, sentences, SPECIAL, 512, CPU))
    expected = [one_at_a_time(model, sentence).sum() for sentence in sentences]
    assert np.abs(batched - expected).max() < 1e-4


@settings(max_examples=20, deadline=None)
@given(SENTENCES, st.randoms(use_true_random=False))
def test_the_order_of_the_sentences_changes_no_bit(model, sentences, random):
    order = list(range(len(sentences)))
    random.shuffle(order)
    straight = sentence_scores(token_log_probabilities(model, sentences, SPECIAL, 64, CPU))
    shuffled = sentence_scores(token_log_probabilities(model, [sentences[i] for i in order], SPECIAL, 64, CPU))
    assert shuffled.tolist() == straight[order].tolist()


def test_each_row_masks_one_token_and_batches_keep_to_the_budget():
    tokens: list[int] = []
    sentences = [[7, 8, 9], [9, 8, 7], [7], [7, 8, 9, 10, 11, 12, 13, 14]]
    token_log_probabilities(Uniform(64), sentences, SPECIAL, 12, CPU, tokens.append)
    assert sum(tokens) == 3 * 5 + 3 * 5 + 1 * 3 + 8 * 10
    model = Uniform(64)
    token_log_probabilities(model, sentences, SPECIAL, 12, CPU)
    for ids in model.batches:
        assert (ids == SPECIAL.mask).sum(dim=1).tolist() == [1] * len(ids)
        assert ids.numel() <= 12 and bool((ids[:, 0] == SPECIAL.cls).all()) and bool((ids[:, -1] == SPECIAL.sep).all())
    assert [ids.numel() for ids in model.batches] == tokens


def test_a_sentence_that_stands_twice_is_scored_once():
    tokens = []
    scores = token_log_probabilities(Uniform(), [[7, 7], [7], [7, 7]], SPECIAL, 99, CPU, tokens.append)
    assert sum(tokens) == 2 * 4 + 1 * 3
    assert [len(values) for values in scores] == [2, 1, 2]


def test_a_uniform_model_ties_on_equal_lengths_and_is_never_normalised_by_length():
    sentences = [[7, 8], [8, 7], [7, 8, 9]]
    scores = sentence_scores(token_log_probabilities(Uniform(16), sentences, SPECIAL, 64, CPU))
    np.testing.assert_allclose(scores, -np.log(16) * np.array([2, 2, 3]), rtol=1e-6)
    pair = MinimalPair("p", "f", "0", "one two", "two one")
    assert decide(pair, scores[0], scores[1]) == "tie"
    assert decide(pair, scores[0], scores[2]) == "correct"


def test_damaged_weights_and_empty_sentences_are_errors(model):
    class Damaged(Uniform):
        def logits_at(self, hidden):
            return super().logits_at(hidden) * float("nan")

    with pytest.raises(EvaluationError, match="not finite"):
        token_log_probabilities(Damaged(), [[7]], SPECIAL, 64, CPU)
    with pytest.raises(EvaluationError, match="no tokens"):
        token_log_probabilities(model, [[7], []], SPECIAL, 64, CPU)
    with pytest.raises(ConfigError, match="tokens_per_batch"):
        token_log_probabilities(model, [[7]], SPECIAL, 0, CPU)


def golden_model(golden_directory, vocabulary):
    config = json.loads((golden_directory / "blimp" / f"pll_vocab{vocabulary}.json").read_text())["config"]
    network = MaskedLanguageModel(LtgBertConfig(**config, position_head_layout="bnc"))
    weights = np.load(golden_directory / "blimp" / f"weights_vocab{vocabulary}.npz")
    state = {name.removeprefix("state."): torch.from_numpy(weights[name]) for name in weights}
    network.load_state_dict(from_published(state), strict=False)
    return network.eval()


def golden_rows(golden_directory, vocabulary):
    lines = (golden_directory / "blimp" / f"pll_vocab{vocabulary}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("vocabulary", [4096, 6144])
def test_scores_agree_with_the_published_scorer_token_by_token(golden_directory, vocabulary):
    rows = golden_rows(golden_directory, vocabulary)
    model = golden_model(golden_directory, vocabulary)
    for side in ("good", "bad"):
        tokens = token_log_probabilities(model, [row[f"ids_{side}"] for row in rows], SPECIAL, 512, CPU)
        for row, values, total in zip(rows, tokens, sentence_scores(tokens), strict=True):
            np.testing.assert_allclose(values, row[f"token_log_probs_{side}"], atol=1e-5)
            assert total == pytest.approx(row[f"pll_{side}"], abs=1e-4)
            assert total == pytest.approx(row[f"pll_{side}_float64"], abs=1e-4)


def test_decisions_from_text_agree_with_the_published_ones(shared_directory, golden_directory):
    rows = golden_rows(golden_directory, 4096)
    pairs = [MinimalPair(r["UID"], "f", str(i), r["sentence_good"], r["sentence_bad"]) for i, r in enumerate(rows)]
    tokenizer = load_tokenizer(shared_directory / "data" / "ltg_bert_babylm_10m_tokenizer.json", recognise=())
    scores, n_rows = pair_scores(pairs, golden_model(golden_directory, 4096), tokenizer, 512, CPU)
    outcomes = [decide(pair, *score) for pair, score in zip(pairs, scores, strict=True)]
    assert [outcome == "correct" for outcome in outcomes] == [row["correct"] for row in rows]
    assert n_rows == sum(len(ids) for ids in {tuple(r[f"ids_{side}"]) for r in rows for side in ("good", "bad")})

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.minimal_pairs import score_suite, screening
from hatchery.evaluation.minimal_pairs.decisions import decide
from hatchery.evaluation.minimal_pairs.items import minimal_pair
from hatchery.evaluation.minimal_pairs.likelihoods import expand
from hatchery.evaluation.minimal_pairs.score_suite import candidate_scores
from hatchery.evaluation.minimal_pairs.scoring import sentence_scores, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, Frame, HatcheryModel
from hatchery.evaluation.settings import EvaluationRuntime, ScoringSettings
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.modeling.ltg.published_names import from_published
from hatchery.tokenization.tokenizer_file import load_tokenizer

CLS, SEP, MASK = 1, 2, 4
FRAME = Frame((CLS,), (SEP,))
CPU = torch.device("cpu")
SENTENCES = st.lists(st.lists(st.integers(7, 50), min_size=1, max_size=9), min_size=1, max_size=12)


def framed(network):
    """Return a Hatchery model without a tokenizer; its sentences are ids."""
    return HatcheryModel(network, SimpleNamespace(cls_id=CLS, end_ids=[SEP], mask_id=MASK), CPU)


class Uniform:
    """A model that predicts a uniform distribution and records its inputs."""

    architecture = "masked"
    device = CPU
    frame = FRAME
    mask_id = MASK
    predicted_before = 0
    longest_input = None

    def __init__(self, vocabulary=64):
        self.vocabulary_size = vocabulary
        self.batches = []

    def logits_at(self, input_ids, rows):
        assert rows.shape == (len(input_ids),), "one position per row"
        self.batches.append(input_ids)
        return torch.zeros(len(rows), self.vocabulary_size)


@pytest.fixture(scope="module")
def model(small_model):
    network = small_model(51).eval()
    torch.manual_seed(0)
    with torch.no_grad():  # A fresh model predicts nearly uniformly; the tests need tokens with different scores.
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return framed(network)


def encoded(sentences):
    return [EncodedSentence(tuple(ids)) for ids in sentences]


def scores_of(model, sentences, tokens_per_batch=64, **options):
    return token_scores(model, encoded(sentences), "pll", tokens_per_batch, **options)


@torch.no_grad()
def one_at_a_time(model, sentence):
    """Score each token by definition with one unbatched call (docs/papers/babylm-evaluation.md,
    "Pseudo-log-likelihood")."""
    values = []
    for position, target in enumerate(sentence):
        row = [CLS, *sentence, SEP]
        row[position + 1] = MASK
        ids = torch.tensor([row])
        network = model.network
        logits = network.logits_at(network.encoder(ids, torch.ones_like(ids, dtype=torch.bool))[-1])
        values.append(float(torch.log_softmax(logits[0, position + 1], dim=-1)[target]))
    return np.array(values)


@settings(max_examples=25, deadline=None)
@given(SENTENCES, st.integers(1, 60))
def test_batched_scores_are_those_of_one_call_per_token(model, sentences, tokens_per_batch):
    batched = scores_of(model, sentences, tokens_per_batch)
    for sentence, values in zip(sentences, batched, strict=True):
        np.testing.assert_allclose(values, one_at_a_time(model, sentence), atol=5e-5)


def test_60_sentences_agree_with_the_one_at_a_time_loop_and_at_any_batch_size(model):
    random = np.random.default_rng(5)
    sentences = [random.integers(7, 51, size=random.integers(1, 20)).tolist() for _ in range(60)]
    batched = sentence_scores(scores_of(model, sentences, 512))
    expected = [one_at_a_time(model, sentence).sum() for sentence in sentences]
    assert np.abs(batched - expected).max() < 1e-5 * 20
    for tokens_per_batch in (1, 37, 100_000, None):
        other = sentence_scores(scores_of(model, sentences, tokens_per_batch))
        assert np.abs(batched - other).max() < 1e-4


@settings(max_examples=20, deadline=None)
@given(SENTENCES, st.randoms(use_true_random=False))
def test_the_order_of_the_sentences_changes_no_bit(model, sentences, random):
    order = list(range(len(sentences)))
    random.shuffle(order)
    straight = sentence_scores(scores_of(model, sentences))
    shuffled = sentence_scores(scores_of(model, [sentences[i] for i in order]))
    assert shuffled.tolist() == straight[order].tolist()


def test_a_sentence_of_n_tokens_asks_for_n_rows_with_one_mask_each():
    rows = expand(encoded([[7, 8, 9], [10, 11, 12]]), FRAME, MASK, within_word=False)
    assert sorted(rows.of) == list(range(6))
    for sentence, of in zip([[7, 8, 9], [10, 11, 12]], rows.of.reshape(2, 3), strict=True):
        for index, row in enumerate(of):
            expected = [CLS, *sentence, SEP]
            expected[index + 1] = MASK
            assert rows.ids[row].tolist() == expected and rows.positions[row] == index + 1


def test_batches_keep_to_the_budget_and_are_never_padded():
    model, tokens = Uniform(), []
    sentences = [[7, 8, 9], [9, 8, 7], [7], [7, 8, 9, 10, 11, 12, 13, 14]]
    scores_of(model, sentences, 12, on_tokens=tokens.append)
    assert sum(tokens) == 3 * 5 + 3 * 5 + 1 * 3 + 8 * 10
    assert sum(ids.numel() for ids in model.batches) == sum(tokens)
    for ids in model.batches:
        assert (ids == MASK).sum(dim=1).tolist() == [1] * len(ids)
        assert ids.numel() <= 12 and bool((ids[:, 0] == CLS).all()) and bool((ids[:, -1] == SEP).all())


def test_a_row_that_two_sentences_share_is_computed_once_and_answers_both(model):
    uniform = Uniform()
    scores_of(uniform, [[7, 8, 9], [7, 30, 9], [7, 8, 9]], 999)
    (ids,) = uniform.batches
    assert len(ids) == 5, "masking the middle token gives the same row twice"
    for sentence, values in zip([[7, 8, 9], [7, 30, 9]], scores_of(model, [[7, 8, 9], [7, 30, 9]]), strict=True):
        np.testing.assert_allclose(values, one_at_a_time(model, sentence), atol=5e-5)


def test_blocks_that_bound_the_memory_change_no_value(model, monkeypatch):
    random = np.random.default_rng(6)
    sentences = [random.integers(7, 12, size=4).tolist() for _ in range(60)]
    whole = sentence_scores(scores_of(model, sentences))
    monkeypatch.setattr("hatchery.evaluation.minimal_pairs.likelihoods.TOKENS_PER_BLOCK", 50)
    np.testing.assert_allclose(sentence_scores(scores_of(model, sentences)), whole, atol=1e-5)


def test_a_uniform_model_ties_on_equal_lengths_and_is_never_normalised_by_length():
    scores = sentence_scores(scores_of(Uniform(16), [[7, 8], [8, 7], [7, 8, 9]]))
    np.testing.assert_allclose(scores, -np.log(16) * np.array([2, 2, 3]), rtol=1e-6)
    pair = minimal_pair("p", "f", "0", "one two", "two one")
    assert decide(pair, scores[0], scores[1]) == "tie"
    assert decide(pair, scores[0], scores[2]) == "correct"


def test_damaged_weights_and_empty_sentences_are_errors(model):
    class Damaged(Uniform):
        def logits_at(self, input_ids, rows):
            return super().logits_at(input_ids, rows) * float("nan")

    with pytest.raises(EvaluationError, match="not finite"):
        scores_of(Damaged(), [[7]])
    with pytest.raises(EvaluationError, match="no tokens"):
        scores_of(model, [[7], []])
    with pytest.raises(ConfigError, match="tokens_per_batch"):
        scores_of(model, [[7]], 0)


def golden_model(golden_directory, vocabulary):
    config = json.loads((golden_directory / "blimp" / f"pll_vocab{vocabulary}.json").read_text())["config"]
    network = LanguageModel(LtgBertConfig(**config, position_head_layout="bnc"))
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
    model = framed(golden_model(golden_directory, vocabulary))
    for side in ("good", "bad"):
        tokens = scores_of(model, [row[f"ids_{side}"] for row in rows], 512)
        for row, values, total in zip(rows, tokens, sentence_scores(tokens), strict=True):
            np.testing.assert_allclose(values, row[f"token_log_probs_{side}"], atol=1e-5)
            assert total == pytest.approx(row[f"pll_{side}"], abs=1e-4)
            assert total == pytest.approx(row[f"pll_{side}_float64"], abs=1e-4)


def test_decisions_from_text_agree_with_the_published_ones(golden_directory):
    rows = golden_rows(golden_directory, 4096)
    pairs = [minimal_pair(r["UID"], "f", str(i), r["sentence_good"], r["sentence_bad"]) for i, r in enumerate(rows)]
    tokenizer = load_tokenizer(golden_directory / "tokenizers/ltg_bert_babylm_10m.json", recognise=())
    scored = candidate_scores(pairs, HatcheryModel(golden_model(golden_directory, 4096), tokenizer, CPU), "auto", 512)
    outcomes = [decide(pair, *score) for pair, score in zip(pairs, scored.scores, strict=True)]
    assert [outcome == "correct" for outcome in outcomes] == [row["correct"] for row in rows]
    assert scored.rows == sum(len(ids) for ids in {tuple(r[f"ids_{side}"]) for r in rows for side in ("good", "bad")})
    assert scored.tokens.tolist() == [[len(row["ids_good"]), len(row["ids_bad"])] for row in rows]


@pytest.mark.parametrize("vocabulary", [4096, 6144])
def test_screened_decisions_agree_with_the_published_ones(golden_directory, vocabulary, monkeypatch):
    monkeypatch.setattr(score_suite, "computes_bf16_fast", lambda device: True)
    monkeypatch.setattr(screening, "LEAST_SAMPLE", 4)
    rows = golden_rows(golden_directory, vocabulary)
    model = framed(golden_model(golden_directory, vocabulary))
    model.encode = lambda texts, **_: [EncodedSentence(tuple(map(int, text.split()))) for text in texts]
    sides = [[" ".join(map(str, row[f"ids_{side}"])) for side in ("good", "bad")] for row in rows]
    pairs = [
        minimal_pair(row["UID"], "f", str(i), *texts) for i, (row, texts) in enumerate(zip(rows, sides, strict=True))
    ]
    settings = ScoringSettings(suite="mine", precision="screened")
    found = score_suite.score(model, score_suite.Suite(pairs), settings, EvaluationRuntime(tokens_per_batch=512))
    table = found.tables["scores.parquet"]
    assert [outcome == "correct" for outcome in table["outcome"].to_pylist()] == [row["correct"] for row in rows]
    assert 0 < found.facts["screening"]["computed_twice"] < 1, "some decisions rest on bf16 alone"

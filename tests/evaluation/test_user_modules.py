"""A module that a user wrote has the numbers of a few lines of PyTorch, and of our own model where it wraps one."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hatchery
from hatchery.evaluation.opening import open_model
from hatchery.evaluation.pretrained import OurModel
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.tokenizer_file import Tokenizer

# No text is a permutation of its rival: to `Bag`, with all tokens in sight, the two would tie.
PAIRS = [
    ("The old dogs sleep .", "The old dogs sleeps .", "The old dogs house ."),
    ("She likes old houses .", "She likes old dogs .", "She sleeps ."),
    ("The dogs near the house sleep .", "The dogs near a house sleep .", "The house ."),
    ("A cat chases the dogs .", "A cat chase the dogs .", "The dogs a cat ."),
]
READING = Path(__file__).resolve().parents[1] / "golden/babylm_2026/data/full/reading/reading_data.csv"
DOCUMENTS = ["The old dogs sleep .\nShe likes a cat .", "A cat chases the dogs near the house ."]


class Bag(nn.Module):
    """Logits are a table's row of the own token, plus the mean of another's rows of all tokens that may be read."""

    def __init__(self, size: int) -> None:
        super().__init__()
        draws = torch.Generator().manual_seed(7)
        # A module may have no parameter at all.
        self.register_buffer("own", torch.randn(size, size, generator=draws))
        self.register_buffer("read", 3 * torch.randn(size, size, generator=draws))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        weights = attention_mask.float()
        return self.own[input_ids] + weights @ self.read[input_ids] / weights.sum(dim=-1, keepdim=True)


class Wrapped(nn.Module):
    """One of our models behind the interface of a user's module."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        rows = torch.arange(input_ids.numel())
        hidden = self.model.encoder.hidden_at(input_ids, attention_mask, rows, causal=False)
        return self.model.logits_at(hidden).unflatten(0, input_ids.shape)


def ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.backend.encode(text, add_special_tokens=False).ids


def by_hand(bag: Bag, ids: list[int], at: int, visible: list[int], target: int) -> float:
    """Natural log-probability of `target` where the token at `at` reads the tokens `visible`."""
    logits = bag.own[ids[at]] + sum(bag.read[token] for token in visible) / len(visible)
    return (logits[target] - logits.exp().sum().log()).item()


def tokens_by_hand(bag: Bag, tokenizer: Tokenizer, text: str, architecture: str) -> list[float]:
    ids = [tokenizer.cls_id, *ids_of(tokenizer, text), tokenizer.sep_id]
    found = []
    for place in range(1, len(ids) - 1):
        if architecture == "causal":
            found.append(by_hand(bag, ids, place - 1, ids[:place], ids[place]))
        else:
            hidden = [*ids[:place], tokenizer.mask_id, *ids[place + 1 :]]
            found.append(by_hand(bag, hidden, place - (architecture == "hybrid"), hidden, ids[place]))
    return found


@pytest.mark.parametrize("architecture", ["masked", "causal", "hybrid"])
def test_sums_decisions_and_surprisals_are_those_of_a_loop(architecture: Any, tokenizer: Tokenizer) -> None:
    bag = Bag(tokenizer.vocabulary_size + 3).train()
    expected = [[sum(tokens_by_hand(bag, tokenizer, text, architecture)) for text in texts] for texts in PAIRS]
    asked: dict[str, Any] = {"tokenizer": tokenizer, "architecture": architecture}
    pairs = hatchery.evaluate(bag, [texts[:2] for texts in PAIRS], **asked)
    scores = pairs.tables["scores.parquet"]
    for row, (good, bad, _) in zip(scores.iter_rows(named=True), expected, strict=True):
        assert (row["score_good"], row["score_bad"]) == pytest.approx((good, bad), abs=1e-4)
        assert row["outcome"] == ("correct" if good > bad else "wrong")
    assert len(set(scores["outcome"])) == 2 and pairs.facts["model_kind"] == "module"
    right = sum(good == max(texts) for texts in expected for good in texts[:1])
    choices = hatchery.evaluate(bag, PAIRS, **asked)
    assert choices.summary["value"].to_list()[0] == pytest.approx(100 * right / len(PAIRS))
    text = PAIRS[2][0]
    words = hatchery.surprisals(bag, [text], **asked)
    found, offsets = [0.0] * len(words), tokenizer.backend.encode(text, add_special_tokens=False).offsets
    tokens = tokens_by_hand(bag, tokenizer, text, architecture)
    for value, (start, end) in zip(tokens, offsets, strict=True):
        found[text[: end - 1].count(" ")] -= value / math.log(2)
        assert start < end
    assert words["surprisal"].to_list() == pytest.approx(found, abs=1e-4)
    assert bag.training and bag.own.dtype == torch.float32


def test_both_likelihoods_of_a_hybrid_module_add_up(tokenizer: Tokenizer) -> None:
    bag, text = Bag(tokenizer.vocabulary_size), PAIRS[0][0]
    ways = {"fused": ("hybrid", "causal"), "mntp": ("hybrid",), "left_to_right": ("causal",)}
    for scoring, parts in ways.items():
        expected = sum(sum(tokens_by_hand(bag, tokenizer, text, part)) for part in parts)
        found = hatchery.model(bag, tokenizer=tokenizer, architecture="hybrid").scores([text], scoring)
        assert found["score"].to_list() == pytest.approx([expected], abs=1e-4)


def test_perplexity_is_that_of_a_loop_in_which_documents_do_not_see_each_other(tokenizer: Tokenizer) -> None:
    bag, losses = Bag(tokenizer.vocabulary_size), list[float]()
    for document in DOCUMENTS:
        text = [token for line in document.split("\n") for token in ids_of(tokenizer, line)]
        ids = [tokenizer.cls_id, *text, tokenizer.par_id or 0, tokenizer.sep_id]
        losses += [-by_hand(bag, ids, at - 1, ids[:at], ids[at]) for at in range(1, len(ids))]
    found = hatchery.evaluate(bag, "perplexity", DOCUMENTS, tokenizer=tokenizer, architecture="causal")
    (row,) = found.tables["perplexity.csv"].iter_rows(named=True)
    assert (row["labelled_tokens"], row["sequences"]) == (len(losses), 1)
    assert row["loss_nats"] == pytest.approx(sum(losses) / len(losses), rel=1e-5)


@pytest.mark.parametrize("task", ["masked", "causal", "hybrid"])
def test_a_module_that_wraps_a_model_of_ours_has_its_numbers(task: str, make_model_manifest: Any) -> None:
    folder = make_model_manifest(task == "causal", objective={"task": task}).parent
    ours = open_model(folder)
    assert isinstance(ours, OurModel)
    settings = {"sequence_length": 16, "pseudo_perplexity_sentences": 3 * (task == "masked")}
    suites: list[tuple[Any, Any, dict[str, Any]]] = [
        ([texts[:2] for texts in PAIRS], None, {}),
        ("perplexity", DOCUMENTS * 8, settings),
        ("reading", READING, {}),
    ]
    module = Wrapped(ours.network)
    for given in ({"tokenizer": folder}, {"tokenizer": ours.tokenizer, "architecture": task}):
        tables = [
            (table, hatchery.evaluate(folder, suite, data, **more).tables[name])
            for suite, data, more in suites
            for name, table in hatchery.evaluate(module, suite, data, **given, **more).tables.items()
        ]
        tables.append((hatchery.surprisals(module, DOCUMENTS, **given), hatchery.surprisals(folder, DOCUMENTS)))
        for found, expected in tables:
            numbers = [name for name, kind in expected.schema.items() if kind.is_float()]
            assert numbers and found.drop(numbers).equals(expected.drop(numbers))
            for name in numbers:
                wanted = expected[name].drop_nulls().to_list()
                assert found[name].drop_nulls().to_list() == pytest.approx(wanted, abs=1e-4, rel=1e-4, nan_ok=True)


def test_what_is_missing_and_what_a_module_cannot_be_asked_is_one_line(tokenizer: Tokenizer, tmp_path: Path) -> None:
    bag, pairs = Bag(tokenizer.vocabulary_size), [texts[:2] for texts in PAIRS]
    given: dict[str, Any] = {"tokenizer": tokenizer, "architecture": "causal"}
    narrow = Bag(tokenizer.vocabulary_size)
    narrow.own, narrow.read = narrow.own[:, :9], narrow.read[:, :9]
    for ask, message in (
        (lambda: hatchery.evaluate(bag, pairs), "tokenizer: got NoneType with the module Bag, expected the folder of"),
        (lambda: hatchery.evaluate(bag, pairs, tokenizer=tokenizer), "architecture: got None .*: masked, causal, hyb"),
        (lambda: hatchery.evaluate(bag, pairs, tokenizer=tmp_path, architecture="causal"), "tokenizer.json"),
        (lambda: hatchery.evaluate(bag, pairs, **{**given, "architecture": "encoder_decoder"}), "'encoder_decoder' wi"),
        (lambda: hatchery.evaluate(bag, pairs, **given, scoring="pll"), "needs a masked language model"),
        (lambda: hatchery.evaluate(narrow, pairs, **given), r"Bag: its output has the shape \[.*, 9\], expected"),
        (lambda: hatchery.evaluate(bag, "glue_rte", tmp_path, **given), "Bag: .*neither fine-tuned nor probed"),
        (lambda: hatchery.model(bag, **given).continuation("The"), "continuation: got Bag, a module of your own"),
        (lambda: hatchery.model(bag, **given).hidden_states("The"), "hidden_states: got Bag, a module of your own"),
    ):
        with pytest.raises(hatchery.HatcheryError, match=message) as raised:
            ask()
        assert "\n" not in str(raised.value)

"""A user's module gives the numbers of a few lines of PyTorch, and of a Hatchery model that it wraps."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from baseline_cases import transformers, wordpiece
from finetuning_cases import PROTOCOL, TASK, sentences
from torch import Tensor, nn

import hatchery
from hatchery.evaluation.opening import open_model
from hatchery.evaluation.pretrained import OurModel
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.tokenizer_file import Tokenizer

# No text is a permutation of another, because `Bag` would score both equally if it sees all tokens.
PAIRS = [
    ("The old dogs sleep .", "The old dogs sleeps .", "The old dogs house ."),
    ("She likes old houses .", "She likes old dogs .", "She sleeps ."),
    ("The dogs near the house sleep .", "The dogs near a house sleep .", "The house ."),
    ("A cat chases the dogs .", "A cat chase the dogs .", "The dogs a cat ."),
]
READING = Path(__file__).resolve().parents[1] / "golden/babylm_2026/data/full/reading/reading_data.csv"
DOCUMENTS = ["The old dogs sleep .\nShe likes a cat .", "A cat chases the dogs near the house ."]


class Bag(nn.Module):
    """Logits are the own token's row of one table plus the mean of a second table's rows over visible tokens."""

    def __init__(self, size: int) -> None:
        super().__init__()
        draws = torch.Generator().manual_seed(7)
        # Because a module may have no parameters.
        self.register_buffer("own", torch.randn(size, size, generator=draws))
        self.register_buffer("read", 3 * torch.randn(size, size, generator=draws))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        weights = attention_mask.float()
        return self.own[input_ids] + weights @ self.read[input_ids] / weights.sum(dim=-1, keepdim=True)


class Wrapped(nn.Module):
    """A Hatchery model with the interface of a user's module."""

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
    """Return the natural log-probability of `target`, predicted at index `at` with the tokens `visible`."""
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


class OfThree(Bag):
    """A module whose inputs hold at most three tokens of text between [CLS] and [SEP]."""

    longest_input = 5


def test_a_longer_text_than_the_module_states_is_split_or_refused(tokenizer: Tokenizer) -> None:
    free, limited = Bag(tokenizer.vocabulary_size), OfThree(tokenizer.vocabulary_size)
    ids = ids_of(tokenizer, "She likes old")
    assert len(ids) == 3
    given: dict[str, Any] = {"tokenizer": tokenizer, "architecture": "masked"}
    for text in ("She likes old", "She likes old dogs"):
        ask = [hatchery.evaluate, hatchery.surprisals]
        asked: list[Any] = [[(text, "A cat sleeps")], [text]]
        for function, data in zip(ask, asked, strict=True):
            if text.count(" ") == 2:
                assert function(limited, data, **given) is not None
            else:
                with pytest.raises(hatchery.HatcheryError, match=r"4 tokens, expected (1 to|at most) 3"):
                    function(limited, data, **given)
    # A causal input has [CLS] only, so four tokens fit. The context of the fifth token is [CLS] and the last tokens of
    # these four.
    given["architecture"], text = "causal", "She likes old dogs sleep near"
    ids = ids_of(tokenizer, text)
    found = hatchery.surprisals(limited, [text], **given)["surprisal"].to_list()
    whole = hatchery.surprisals(free, [text], **given)["surprisal"].to_list()
    assert len(found) == len(ids) and found[:4] == pytest.approx(whole[:4]) and found[4] != pytest.approx(whole[4])
    seen = [[tokenizer.cls_id, *ids[start:4]] for start in range(4)]
    assert min(abs(found[4] + by_hand(limited, each, -1, each, ids[4]) / math.log(2)) for each in seen) < 1e-4
    with pytest.raises(hatchery.HatcheryError, match=r"sequence_length: got 6, expected at most 5, the longest input"):
        hatchery.evaluate(limited, "perplexity", DOCUMENTS, sequence_length=6, **given)
    assert hatchery.evaluate(limited, "perplexity", DOCUMENTS, sequence_length=5, **given).rows.height


class Positions(nn.Module):
    """Learned positions without an attribute that states their number."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(size, size), nn.Embedding(6, size)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.words(input_ids) + self.positions(torch.arange(input_ids.shape[1]))


def test_an_embedding_without_an_entry_is_reported_with_the_attribute_that_helps(tokenizer: Tokenizer) -> None:
    module = Positions(tokenizer.vocabulary_size)
    given: dict[str, Any] = {"tokenizer": tokenizer, "architecture": "causal"}
    ids = ids_of(tokenizer, "She likes old dogs sleep near dogs")
    assert len(ids) == 7
    # The last token is predicted but not read, so the six positions hold [CLS] and the first five tokens.
    hatchery.surprisals(module, ["She likes old dogs sleep near"], **given)
    with pytest.raises(hatchery.HatcheryError, match=r"Positions: index out of .* input has 7 tokens .* longest_input"):
        hatchery.surprisals(module, ["She likes old dogs sleep near dogs"], **given)


@pytest.mark.parametrize("architecture", ["masked", "causal", "hybrid"])
def test_a_fast_tokenizer_of_the_library_gives_the_sums_of_a_loop(architecture: Any) -> None:
    library = wordpiece()
    bag, text, other = Bag(len(library)), "an old dog sleep .", "an old cat sleep ."
    cls_id, sep_id, mask_id = library.cls_token_id, library.sep_token_id, library.mask_token_id
    expected = []
    for sentence in (text, other):
        body, total = library.encode(sentence, add_special_tokens=False), 0.0
        # As for models of the library transformers, a causal text follows EOS (here [SEP]), or BOS without EOS.
        ids = [sep_id, *body] if architecture == "causal" else [cls_id, *body, sep_id]
        for place in range(1, len(body) + 1):
            if architecture == "causal":
                total += by_hand(bag, ids, place - 1, ids[:place], ids[place])
            else:
                hidden = [*ids[:place], mask_id, *ids[place + 1 :]]
                total += by_hand(bag, hidden, place - (architecture == "hybrid"), hidden, ids[place])
        expected.append(total)
    library.eos_token = "[SEP]"
    padding = library.padding_side, library.model_max_length
    given: dict[str, Any] = {"tokenizer": library, "architecture": architecture}
    row = hatchery.evaluate(bag, [(text, other)], **given).tables["scores.parquet"].row(0, named=True)
    assert (row["score_good"], row["score_bad"]) == pytest.approx(expected, abs=1e-4)
    assert hatchery.evaluate(bag, [(text, other)], **given).facts["model_kind"] == "module"
    words = hatchery.surprisals(bag, [text], **given)
    assert sum(words["surprisal"]) * math.log(2) == pytest.approx(-expected[0], abs=1e-4)
    assert hatchery.evaluate(bag, "perplexity", DOCUMENTS * 8, sequence_length=16, **given).summary["value"][0] > 0
    assert padding == (library.padding_side, library.model_max_length)
    # A module that reads 5 tokens has place for a frame of two tokens, or of one token for a causal text.
    longest = 4 if architecture == "causal" else 3
    with pytest.raises(hatchery.HatcheryError, match=f"a sentence becomes 5 tokens, expected 1 to {longest}$"):
        hatchery.evaluate(OfThree(len(library)), [(text, other)], **given)
    with pytest.raises(hatchery.HatcheryError, match="architecture: got None for your module Bag, expected one of"):
        hatchery.evaluate(bag, [(text, other)], tokenizer=library)


class WithStates(Wrapped):
    """A module that also returns the Hatchery model's hidden states."""

    def hidden_states(self, input_ids: Tensor, attention_mask: Tensor) -> list[Tensor]:
        states: list[Tensor] = self.model.encoder(input_ids, attention_mask, causal=False)
        return states


@pytest.mark.parametrize("causal", [False, True])
def test_fine_tuning_and_probing_of_a_wrapped_model_have_the_numbers_of_the_model(
    causal: bool, make_model_manifest: Any, make_source: Any, json_lines: Any, tmp_path: Path
) -> None:
    folder = make_model_manifest(causal, objective={"task": "causal" if causal else "masked"}).parent
    ours = open_model(folder)
    assert isinstance(ours, OurModel)
    rows = {"train.jsonl": json_lines(sentences(48, 0)), "validation.jsonl": json_lines(sentences(32, 1))}
    source = make_source(rows)
    task = {key: value for key, value in TASK.items() if key != "name"}
    (tmp_path / "agreement.yaml").write_text(json.dumps({"data": "x", **task}))
    protocol = {**PROTOCOL, "epochs": 2, "learning_rates": [1e-3], "seeds": [1]}
    # In a user's module, fine-tuning only knows PyTorch's dropout and norm layers, so dropout and weight decay are off.
    protocol |= {"dropout": 0.0, "weight_decay": 0.0}
    ours.network.encoder.set_dropout(0.0)
    options = {"layer_norm_eps": 1e-5}
    module = WithStates(ours.network).train()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    asked: list[dict[str, Any]] = [{"tokenizer": folder}]
    # The library's tokenizer frames texts like ours only for masked models, because it adds the separator at the end.
    asked += [{"tokenizer": library_of(folder, ours.tokenizer), "architecture": "masked"}] * (not causal)
    told = {"protocol": protocol, "head_options": options}
    expected = hatchery.evaluate(folder, tmp_path / "agreement.yaml", source.root, **told)
    scores = expected.tables["predictions.parquet"]
    for given in asked:
        found = hatchery.evaluate(module, tmp_path / "agreement.yaml", source.root, **told, **given)
        assert found.rows["value"].to_list() == pytest.approx(expected.rows["value"].to_list(), abs=1e-4)
        table = found.tables["predictions.parquet"]
        assert len(set(map(tuple, scores["scores"]))) > 9 and table["prediction"].equals(scores["prediction"])
        assert np.array(table["scores"].to_list()) == pytest.approx(np.array(scores["scores"].to_list()), abs=1e-3)
        # The caller's module does not change.
        assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
        assert module.training
    if not causal:
        states = hatchery.model(module, tokenizer=folder).hidden_states("She likes a cat .")
        wanted = hatchery.model(folder).hidden_states("She likes a cat .")
        assert states.tokens == wanted.tokens and states.states == pytest.approx(wanted.states, abs=1e-5)


def test_a_probe_leaves_every_parameter_of_the_caller_s_module_as_trainable_as_it_was(
    make_model_manifest: Any, make_source: Any, json_lines: Any, tmp_path: Path
) -> None:
    folder = make_model_manifest(objective={"task": "masked"}).parent
    ours = open_model(folder)
    assert isinstance(ours, OurModel)
    targets = [{"span1": [0, 1], "label": "DET"}, {"span1": [2, 3], "label": "NOUN"}]
    rows = json_lines([{"text": "The old dogs sleep .", "targets": targets}] * 2)
    source = make_source({"train.jsonl": rows, "validation.jsonl": rows})
    task = {"format": "jiant", "files": TASK["files"], "metrics": ["micro_f1"], "head": {"kind": "span_classification"}}
    (tmp_path / "probe.yaml").write_text(json.dumps({"data": "x", **task}))
    protocol = {**PROTOCOL, "epochs": 1, "learning_rates": [1e-3], "seeds": [1]}
    protocol |= {"selection": "last", "development_fraction": 0.0}
    for module, tokenizer in ((WithStates(ours.network), folder), (ours.network, ours.tokenizer)):
        frozen = next(module.parameters()).requires_grad_(False)
        hatchery.evaluate(module.train(), tmp_path / "probe.yaml", source.root, tokenizer=tokenizer, protocol=protocol)
        assert module.training
        assert [parameter is not frozen for parameter in module.parameters()] == [
            parameter.requires_grad for parameter in module.parameters()
        ]


def library_of(folder: Path, tokenizer: Tokenizer) -> Any:
    """Return the folder's tokenizer as a tokenizer of the library transformers, with its special tokens."""
    special = tokenizer.special
    roles = {"cls": special.cls, "sep": special.sep, "mask": special.mask, "pad": special.pad, "unk": special.unknown}
    named = {f"{role}_token": token for role, token in roles.items()}
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **named)


def test_states_of_wrong_shapes_are_refused(tokenizer: Tokenizer) -> None:
    module = Bag(tokenizer.vocabulary_size)
    asked: dict[str, Any] = {"tokenizer": tokenizer, "architecture": "masked"}
    for states, message in (
        (lambda ids, mask: [], r"returned the shapes \[\], expected equal shapes \[sentences, tokens, width\]"),
        (
            lambda ids, mask: torch.zeros(1, 3),
            r"returned the shapes \[\[1, 3\]\], expected equal shapes \[sentences, tokens, width\]",
        ),
        (lambda ids, mask: torch.zeros(1, 1, 4), r"returned the shape \[1, 1, 4\], expected \[1, \d, width\]"),
        (
            lambda ids, mask: [torch.zeros(1, 2, 4), torch.zeros(1, 2, 5)],
            r"expected equal shapes \[sentences, tokens, width\]",
        ),
    ):
        module.hidden_states = states  # type: ignore[assignment]
        with pytest.raises(hatchery.HatcheryError, match=message):
            hatchery.model(module, **asked).hidden_states("She likes a cat .")


def test_what_is_missing_and_what_a_module_cannot_be_asked_is_one_line(tokenizer: Tokenizer, tmp_path: Path) -> None:
    bag, pairs = Bag(tokenizer.vocabulary_size), [texts[:2] for texts in PAIRS]
    given: dict[str, Any] = {"tokenizer": tokenizer, "architecture": "causal"}
    narrow = Bag(tokenizer.vocabulary_size)
    narrow.own, narrow.read = narrow.own[:, :9], narrow.read[:, :9]
    for ask, message in (
        (lambda: hatchery.evaluate(bag, pairs), "tokenizer: got NoneType for your module Bag, expected the folder of"),
        (lambda: hatchery.evaluate(bag, pairs, tokenizer=tokenizer), "architecture: got None .*: masked, causal, hyb"),
        (lambda: hatchery.evaluate(bag, pairs, tokenizer=tmp_path, architecture="causal"), "tokenizer.json"),
        (
            lambda: hatchery.evaluate(bag, pairs, **{**given, "architecture": "encoder_decoder"}),
            "'encoder_decoder' for",
        ),
        (lambda: hatchery.evaluate(bag, pairs, **given, scoring="pll"), "needs a masked language model"),
        (lambda: hatchery.evaluate(narrow, pairs, **given), r"Bag: its output has the shape \[.*, 9\], expected"),
        (lambda: hatchery.evaluate(bag, "glue_rte", tmp_path, **given), r"Bag: has no method hidden_states\(input_ids"),
        (lambda: hatchery.model(bag, **given).continuation("The"), "continuation: got Bag, a module of your own"),
        (lambda: hatchery.model(bag, **given).hidden_states("The"), "Bag: has no method hidden_states"),
        (lambda: hatchery.model(3), "model: got int, expected a folder, a name on the hub or a torch.nn.Module"),
    ):
        with pytest.raises(hatchery.HatcheryError, match=message) as raised:
            ask()
        assert "\n" not in str(raised.value)

"""Exported causal and hybrid models give our numbers, and `generate` gives our texts."""

import json
import pickle
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hatchery.evaluation.minimal_pairs.scoring import sentence_scores, token_scores
from hatchery.evaluation.opening import open_model
from hatchery.evaluation.runtime import load_pretrained, load_sentence_model
from hatchery.evaluation.written_text import continuation

TOLERANCE = {"atol": 1e-5, "rtol": 0.0}


@pytest.fixture(params=["causal_ltg", "causal_absolute", "causal_elc", "causal_gpt_bert", "causal_roberta"])
def causal(request, hub, pretrained, exported):
    """Our model and its tokenizer, and both as `transformers` loads them from the exported folder."""
    ours, tokenizer = load_pretrained(pretrained(request.param))
    folder = exported(request.param)
    theirs = hub.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)
    return ours.eval(), tokenizer, theirs, hub.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)


@torch.no_grad()
def test_logits_and_loss_are_ours(causal):
    ours, _, theirs, _ = causal
    ids = torch.randint(6, 320, (3, 12), generator=torch.Generator().manual_seed(2))
    output = theirs(ids, labels=ids)
    logits = ours.logits_at(ours.encoder(ids)[-1])
    torch.testing.assert_close(output.logits, logits, **TOLERANCE)
    expected = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    torch.testing.assert_close(output.loss, expected, **TOLERANCE)


def test_generate_goes_on_with_the_most_probable_tokens_as_we_do(causal):
    ours, tokenizer, theirs, their_tokenizer = causal
    beginnings = ["The old dogs", "A", "She likes old houses"]
    # We generate no special tokens except end tokens, and no ids that the tokenizer lacks.
    ends = [index for index in (tokenizer.sep_id, tokenizer.par_id) if index is not None]
    special = [index for index in range(tokenizer.n_special) if index not in ends]
    forbidden = [*special, *range(tokenizer.vocabulary_size, ours.config.vocab_size)]
    options = {"max_new_tokens": 9, "do_sample": False, "suppress_tokens": forbidden, "eos_token_id": ends}
    expected = []
    for beginning in beginnings:
        inputs = their_tokenizer(beginning, return_tensors="pt")
        (ids,) = inputs["input_ids"].tolist()
        assert ids == [tokenizer.cls_id, *tokenizer.encode_sentences([beginning])[0]]
        expected.append(continuation(ours, tokenizer, ids, most_tokens=9))
        found = theirs.generate(**inputs, **options)[0, len(ids) :].tolist()
        assert [index for index in found if index not in ends] == expected[-1]
    together = their_tokenizer(beginnings, return_tensors="pt", padding=True)
    found = theirs.generate(**together, **options)[:, together["input_ids"].shape[1] :]
    for row, ids in zip(found.tolist(), expected, strict=True):
        assert row[: len(ids)] == ids


@pytest.mark.parametrize(
    "choice",
    [{"num_beams": 1}, {"num_beams": 3, "num_return_sequences": 2}, {"cache_implementation": "static"}],
)
def test_what_is_kept_of_earlier_tokens_changes_no_text(causal, choice):
    *_, theirs, their_tokenizer = causal
    together = their_tokenizer(["The old dogs", "A", "She likes old houses"], return_tensors="pt", padding=True)
    options = {"max_new_tokens": 9, "do_sample": False, "return_dict_in_generate": True, "output_scores": True}
    kept = theirs.generate(**together, **options, **choice, use_cache=True)
    choice = {key: value for key, value in choice.items() if key != "cache_implementation"}
    anew = theirs.generate(**together, **options, **choice, use_cache=False)
    assert torch.equal(kept.sequences, anew.sequences)
    assert anew.past_key_values is None
    assert kept.past_key_values.get_seq_length() == kept.sequences.shape[1] - 1
    for found, expected in zip(kept.scores, anew.scores, strict=True):
        torch.testing.assert_close(found, expected, **TOLERANCE)


@torch.no_grad()
def test_a_loop_over_past_key_values_gives_the_logits_of_the_whole_text(hub, causal):
    *_, theirs, their_tokenizer = causal
    texts = their_tokenizer(["The old dogs sleep near the house.", "A cat"], return_tensors="pt", padding=True)
    ids, mask = texts["input_ids"], texts["attention_mask"]
    whole = theirs(ids, mask).logits
    caches = (hub.DynamicCache(), hub.StaticCache(config=theirs.config, max_cache_len=20, max_batch_size=2))
    for cache in caches:
        found, before = [], 0
        # The second call has fewer tokens than the cache, the third has more, the fourth has as many as the cache.
        for until in (2, 3, 7, ids.shape[1]):
            output = theirs(ids[:, before:until], mask[:, :until], past_key_values=cache)
            found.append(output.logits)
            before = until
        is_token = mask.bool()
        torch.testing.assert_close(torch.cat(found, dim=1)[is_token], whole[is_token], **TOLERANCE)
    assert ids.shape[1] > 7
    with pytest.raises(ValueError, match=r"attention_mask: got 1 positions, expected \d+: \d+ tokens in past_key_val"):
        theirs(ids[:, -1:], mask[:, -1:], past_key_values=caches[0])


@torch.no_grad()
def test_the_logits_of_some_positions_alone_are_those_of_all(causal):
    *_, theirs, their_tokenizer = causal
    ids = their_tokenizer("The old dogs near the house", return_tensors="pt")["input_ids"]
    whole = theirs(ids).logits
    torch.testing.assert_close(theirs(ids, logits_to_keep=2).logits, whole[:, -2:], **TOLERANCE)
    torch.testing.assert_close(theirs(ids, logits_to_keep=torch.tensor([1, 3])).logits, whole[:, [1, 3]], **TOLERANCE)
    with pytest.raises(ValueError, match=r"labels: got .* and 2 positions with logits"):
        theirs(ids, labels=ids, logits_to_keep=2)


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        ("causal_ltg", "AutoModelForCausalLM"),
        ("hybrid_gpt_bert", "AutoModelForCausalLM"),
        ("hybrid_gpt_bert", "AutoModelForMaskedLM"),
        ("hybrid_gpt_bert", "AutoModel"),
        ("ltg", "AutoModelForSequenceClassification"),
        ("translation", "AutoModelForSeq2SeqLM"),
    ],
)
@torch.no_grad()
def test_loaded_models_are_of_one_class_and_are_pickled(hub, exported, tmp_path, variant, name):
    load = getattr(hub, name).from_pretrained
    model, again = (load(exported(variant), trust_remote_code=True).eval() for _ in range(2))
    assert type(model) is type(again) and getattr(sys.modules[type(model).__module__], type(model).__name__)
    for parameter in again.parameters():
        parameter.zero_()
    torch.save(model, tmp_path / "model.pt")
    for copied in (pickle.loads(pickle.dumps(model)), torch.load(tmp_path / "model.pt", weights_only=False)):
        assert type(copied) is type(model) and copied.config.to_dict() == model.config.to_dict()
        assert {key: value.tolist() for key, value in copied.state_dict().items()} == {
            key: value.tolist() for key, value in model.state_dict().items()
        }


@torch.no_grad()
@pytest.mark.parametrize("name", ["sdpa", "eager"])
@pytest.mark.parametrize("variant", ["causal_ltg", "hybrid_roberta"])
def test_attention_has_both_names_and_is_the_same(hub, pretrained, exported, variant, name):
    ours, _ = load_pretrained(pretrained(variant))
    load = hub.AutoModelForCausalLM.from_pretrained
    model = load(exported(variant), trust_remote_code=True, attn_implementation=name).eval()
    assert model.config._attn_implementation == name
    ids = torch.randint(6, 320, (2, 9), generator=torch.Generator().manual_seed(4))
    expected = ours.eval().logits_at(ours.encoder(ids, causal=True)[-1])
    torch.testing.assert_close(model(ids).logits, expected, **TOLERANCE)
    # Rows of probabilities sum to 1, and a token does not attend to later tokens.
    for probabilities in model(ids, output_attentions=True).attentions:
        torch.testing.assert_close(probabilities.sum(-1), torch.ones(2, 3, 9), **TOLERANCE)
        assert not probabilities.triu(1).any()


def test_the_card_shows_how_to_generate(exported):
    folder = exported("causal_ltg")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert 'pipeline_tag: "text-generation"' in card and "AutoModelForCausalLM.from_pretrained(folder" in card
    assert "fill-mask" not in card and "AutoModelForMaskedLM" not in card
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["HatcheryLtgBertForCausalLM"]
    heads = ("CausalLM", "SequenceClassification", "TokenClassification", "QuestionAnswering", "MultipleChoice")
    assert set(config["auto_map"]) == {"AutoConfig", "AutoModel", *(f"AutoModelFor{head}" for head in heads)}


@torch.no_grad()
def test_a_classifier_reads_the_last_token_on_whichever_side_the_padding_is(hub, causal, exported, request):
    ours, _, _, their_tokenizer = causal
    folder = exported(request.node.callspec.params["causal"])
    load = hub.AutoModelForSequenceClassification.from_pretrained
    model = load(folder, trust_remote_code=True, num_labels=3).eval()
    texts = ["The old dogs", "A", "She likes old houses"]
    alone = [ours.encoder(their_tokenizer(text, return_tensors="pt")["input_ids"])[-1][0, -1] for text in texts]
    expected = model.classifier(torch.stack(alone))
    for side in ("left", "right"):
        their_tokenizer.padding_side = side
        together = their_tokenizer(texts, return_tensors="pt", padding=True)
        torch.testing.assert_close(model(**together).logits, expected, **TOLERANCE)
    whole = their_tokenizer(texts[0], return_tensors="pt")["input_ids"]
    torch.testing.assert_close(model(whole).logits, expected[:1], **TOLERANCE)


@torch.no_grad()
def test_a_model_that_has_learned_that_a_paragraph_ends_says_so_and_writes_nothing_in_its_place(pretrained):
    model, tokenizer = load_pretrained(pretrained("causal_ltg"))
    beginning = [tokenizer.cls_id, *tokenizer.encode_sentences(["The old dogs"])[0]]
    assert continuation(model.eval(), tokenizer, beginning)
    (bias,) = (bias for bias in model.parameters() if bias.shape == (model.config.vocab_size,))
    bias[tokenizer.par_id] += 100
    assert continuation(model, tokenizer, beginning) == []
    assert continuation(model, tokenizer, beginning, np.random.Generator(np.random.Philox(1))) == []


def test_drawn_text_is_the_same_every_time_and_ends_with_the_text(causal):
    ours, tokenizer, _, _ = causal
    drawn = [
        continuation(ours, tokenizer, [tokenizer.cls_id], np.random.Generator(np.random.Philox(seed)), 30)
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(index >= tokenizer.n_special for ids in drawn for index in ids)


@torch.no_grad()
@pytest.mark.parametrize("variant", ["hybrid_ltg", "hybrid_gpt_bert", "hybrid_roberta"])
def test_each_class_attends_as_it_is_called(hub, pretrained, exported, variant):
    ours, _ = load_pretrained(pretrained(variant))
    folder = exported(variant)
    assert {"AutoModelForMaskedLM", "AutoModelForCausalLM"} <= json.loads((folder / "config.json").read_text())[
        "auto_map"
    ].keys()
    ids = torch.randint(6, 320, (3, 12), generator=torch.Generator().manual_seed(2))
    found = []
    for name, causal in (("AutoModelForMaskedLM", False), ("AutoModelForCausalLM", True)):
        model = getattr(hub, name).from_pretrained(folder, trust_remote_code=True)
        found.append(model(ids).logits)
        torch.testing.assert_close(found[-1], ours.eval().logits_at(ours.encoder(ids, causal=causal)[-1]), **TOLERANCE)
    assert not torch.allclose(*found)
    bare = hub.AutoModel.from_pretrained(folder, trust_remote_code=True)
    torch.testing.assert_close(bare(ids).last_hidden_state, ours.encoder(ids)[-1], **TOLERANCE)


SENTENCES = ["The old dogs near the house sleep.", "A cat chases the dogs."]


@torch.no_grad()
@pytest.mark.parametrize(
    ("variant", "frame"), [("hybrid_gpt_bert", ("[CLS]", "[SEP]")), ("hybrid_of_blocks", ("[CLS]", ""))]
)
def test_the_backends_of_babylm_give_the_sums_of_our_scorer(hub, pretrained, exported, variant, frame):
    """An exported hybrid is scored with `mntp` and `causal` as in docs/papers/babylm-2026.md, "Scored tokens"."""
    folder = exported(variant)
    tokenizer = hub.AutoTokenizer.from_pretrained(folder)
    # A model that was trained without end tokens reads none in direct evaluations, either.
    assert bool(open_model(folder).tokenizer.end_ids) == bool(frame[1])
    masked, causal = (
        getattr(hub, name).from_pretrained(folder, trust_remote_code=True).eval()
        for name in ("AutoModelForMaskedLM", "AutoModelForCausalLM")
    )
    special = set(tokenizer.all_special_ids)
    sums = {"mntp": [], "left_to_right": []}
    for sentence in SENTENCES:
        ids = tokenizer(sentence, return_tensors="pt").input_ids
        tokens = tokenizer.convert_ids_to_tokens(ids[0])
        assert tokens[0] == frame[0] and (tokens[-1] == frame[1]) == bool(frame[1])
        scored = [place for place, token in enumerate(ids[0].tolist()) if token not in special]
        copies = ids.repeat(len(scored), 1)
        copies[range(len(scored)), scored] = tokenizer.mask_token_id
        for way, logits in (
            ("mntp", masked(copies).logits[range(len(scored)), [place - 1 for place in scored]]),
            ("left_to_right", causal(ids).logits[0, [place - 1 for place in scored]]),
        ):
            sums[way].append(float(logits.log_softmax(-1)[range(len(scored)), ids[0, scored]].double().sum()))
    for way, expected in sums.items():
        model = load_sentence_model(pretrained(variant), torch.device("cpu"), way)
        ours = sentence_scores(token_scores(model, model.encode(SENTENCES), way))
        assert ours == pytest.approx(expected, abs=2e-4)

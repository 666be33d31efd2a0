"""Exported causal models, and those that are both."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from hatchery.evaluation.filled_sentences import continuation
from hatchery.evaluation.runtime import load_pretrained

TOLERANCE = {"atol": 1e-5, "rtol": 0.0}


@pytest.fixture(params=["causal_ltg", "causal_absolute", "causal_elc", "causal_roberta"])
def causal(request, hub, pretrained, exported):
    """Our model with its tokenizer, and what `transformers` makes of the exported folder."""
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
    # We write no special token but those that end, and no id that the tokenizer does not have.
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


@pytest.mark.parametrize("choice", [{"num_beams": 1}, {"num_beams": 3, "num_return_sequences": 2}])
def test_what_is_kept_of_earlier_tokens_changes_no_text(causal, choice):
    *_, theirs, their_tokenizer = causal
    together = their_tokenizer(["The old dogs", "A", "She likes old houses"], return_tensors="pt", padding=True)
    options = {"max_new_tokens": 9, "do_sample": False, "return_dict_in_generate": True, "output_scores": True}
    kept, anew = (theirs.generate(**together, **options, **choice, use_cache=use) for use in (True, False))
    assert torch.equal(kept.sequences, anew.sequences)
    assert anew.past_key_values is None
    assert kept.past_key_values.get_seq_length() == kept.sequences.shape[1] - 1
    for found, expected in zip(kept.scores, anew.scores, strict=True):
        torch.testing.assert_close(found, expected, **TOLERANCE)


@torch.no_grad()
def test_with_earlier_tokens_kept_the_whole_text_is_still_asked_for(causal):
    *_, theirs, their_tokenizer = causal
    ids = their_tokenizer("The old dogs", return_tensors="pt")["input_ids"]
    first = theirs(ids[:, :-1], use_cache=True)
    torch.testing.assert_close(
        theirs(ids, past_key_values=first.past_key_values).logits, theirs(ids).logits[:, -1:], **TOLERANCE
    )
    with pytest.raises(ValueError, match="input_ids: got 1 tokens, and past_key_values hold"):
        theirs(ids[:, -1:], past_key_values=first.past_key_values)


def test_the_card_shows_how_to_generate(exported):
    folder = exported("causal_ltg")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert 'pipeline_tag: "text-generation"' in card and "AutoModelForCausalLM.from_pretrained(folder" in card
    assert "fill-mask" not in card and "AutoModelForMaskedLM" not in card
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["HatcheryLtgBertForCausalLM"]
    classifier = "AutoModelForSequenceClassification"
    assert set(config["auto_map"]) == {"AutoConfig", "AutoModel", "AutoModelForCausalLM", classifier}


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
@pytest.mark.parametrize("variant", ["hybrid_ltg", "hybrid_roberta"])
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


def test_the_card_says_where_a_hidden_token_is_predicted_and_its_example_runs(hub, exported, monkeypatch, capsys):
    folder = exported("hybrid_ltg")
    card = (folder / "README.md").read_text()
    assert "what it says of a hidden token stands at the position before it" in " ".join(card.split())
    code = card.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(folder)
    exec(compile(code, "card", "exec"), {})
    assert capsys.readouterr().out.strip()

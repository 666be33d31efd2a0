"""Interfaces that other tools need: attention probabilities, input embeddings, task heads, gradient checkpointing."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from hatchery.modeling.heads.task_model import HeadContext
from hatchery.modeling.heads.word_classifiers import ExtractiveOptions, ExtractiveSpan, TokenClassifier, WordOptions
from hatchery.modeling.layers import MultiHeadAttention

TOLERANCE = {"atol": 1e-5, "rtol": 0.0}
CHOSEN = ("bnc_layout_with_pair_head", "elc_weighted_output", "absolute_post_norm_gelu", "gpt_bert", "roberta_tied")
some_variants = pytest.mark.parametrize("variant", CHOSEN, indirect=True)


def probabilities_of(block, hidden, inputs):
    """Return the attention probabilities of an attention block, computed from its scores."""
    states = hidden if block.pre_layer_norm is None else block.pre_layer_norm(hidden)
    if isinstance(block, MultiHeadAttention):
        scores = block.queries(states) @ block.keys_and_values(states)[0].transpose(2, 3) * block.scale
    elif block.is_relative:
        scores = block.scores(states, inputs.relative_embedding, inputs.positions)
    else:
        query, key = block.query_key(states, inputs)
        scores = query @ key.transpose(2, 3) * block.scale
    mask = inputs.mask[:, None, None] if inputs.mask.dim() == 2 else inputs.mask[:, None]
    return scores.masked_fill(~mask, float("-inf")).softmax(-1)


@pytest.mark.parametrize(
    ("variant", "kind"), [*((name, "MaskedLM") for name in CHOSEN), ("causal_elc", "CausalLM")], indirect=["variant"]
)
@torch.no_grad()
def test_attentions_are_the_probabilities_of_every_layer_and_change_no_logit(load, ours, padded_batch, kind):
    ids, mask = padded_batch(ours)
    model, expected = load(f"AutoModelFor{kind}"), []
    for layer in ours.encoder.layers:
        layer.attention.register_forward_pre_hook(lambda *call: expected.append(probabilities_of(call[0], *call[1])))
    ours.encoder(ids, mask)
    output = model(ids, attention_mask=mask, output_attentions=True)
    assert len(output.attentions) == len(expected) == len(ours.encoder.layers)
    for found, wanted in zip(output.attentions, expected, strict=True):
        torch.testing.assert_close(found, wanted, **TOLERANCE)
    quick = model(ids, attention_mask=mask)
    torch.testing.assert_close(output.logits, quick.logits, **TOLERANCE)
    assert quick.attentions is None


@torch.no_grad()
def test_attentions_of_a_text_that_grows_are_those_of_the_whole(hub, exported):
    model = hub.AutoModelForCausalLM.from_pretrained(exported("causal_ltg"), trust_remote_code=True)
    ids = torch.arange(10, 18)[None]
    start = model(ids[:, :6], use_cache=True)
    rest = model(ids[:, 6:], past_key_values=start.past_key_values, output_attentions=True).attentions
    for found, whole in zip(rest, model(ids, output_attentions=True).attentions, strict=True):
        torch.testing.assert_close(found, whole[:, :, 6:], **TOLERANCE)


@torch.no_grad()
def test_attentions_of_a_translation_are_those_of_both_sides_and_between_them(hub, exported):
    model = hub.AutoModelForSeq2SeqLM.from_pretrained(exported("translation_deeper_decoder"), trust_remote_code=True)
    ids, target = torch.arange(8, 20).view(2, 6), torch.arange(9, 17).view(2, 4)
    mask = torch.arange(6) < torch.tensor([6, 4])[:, None]
    given = {"attention_mask": mask, "decoder_input_ids": target}
    output = model(ids, **given, output_attentions=True)
    assert (len(output.encoder_attentions), len(output.decoder_attentions), len(output.cross_attentions)) == (2, 3, 3)
    for kept in (*output.encoder_attentions, *output.decoder_attentions, *output.cross_attentions):
        torch.testing.assert_close(kept.sum(-1), torch.ones(kept.shape[:3]), **TOLERANCE)
    assert not any(kept[1, :, :, 4:].any() for kept in (*output.encoder_attentions, *output.cross_attentions))
    assert not any(kept.triu(1).any() for kept in output.decoder_attentions)
    torch.testing.assert_close(output.logits, model(ids, **given).logits, **TOLERANCE)
    vectors = model.get_input_embeddings()(ids)
    torch.testing.assert_close(model(inputs_embeds=vectors, **given).logits, output.logits, **TOLERANCE)


@some_variants
def test_rows_of_the_word_embedding_are_as_good_as_ids(load, ours, padded_batch):
    ids, mask = padded_batch(ours)
    model = load("AutoModelForMaskedLM")
    vectors = model.get_input_embeddings()(ids).detach().requires_grad_()
    found = model(inputs_embeds=vectors, attention_mask=mask, labels=ids.where(mask, -100))
    torch.testing.assert_close(found.logits, model(ids, attention_mask=mask).logits, **TOLERANCE)
    found.loss.backward()
    assert vectors.grad.abs().sum(-1).bool().equal(mask), "the gradient reaches every token, and no padding"
    whole = model(inputs_embeds=vectors[:1]).logits
    torch.testing.assert_close(whole, model(ids[:1]).logits, **TOLERANCE)
    for given in ({}, {"input_ids": ids, "inputs_embeds": vectors}):
        with pytest.raises(ValueError, match="input_ids, inputs_embeds: expected exactly one of these"):
            model(**given)


@some_variants
@torch.no_grad()
def test_what_means_nothing_is_passed_over_and_other_positions_are_refused(load, ours, padded_batch, variant):
    ids, mask = padded_batch(ours)
    model = load("AutoModelForMaskedLM")
    expected = model(ids, attention_mask=mask).logits
    counted = mask.cumsum(1) - 1 + (2 if variant == "roberta_tied" else 0)
    given = {"attention_mask": mask, "token_type_ids": torch.ones_like(ids)}
    assert torch.equal(model(ids, position_ids=counted, **given).logits, expected)
    if ours.config.position_limit is None:
        assert torch.equal(model(ids, position_ids=counted * 0, **given).logits, expected)
    else:
        with pytest.raises(ValueError, match="position_ids: expected None or consecutive numbers"):
            model(ids, position_ids=counted * 2, **given)


@some_variants
@torch.no_grad()
def test_tokens_answers_and_choices_have_our_heads(load, ours, padded_batch):
    ids, mask = padded_batch(ours)
    context = HeadContext(3, 0.0, 1, 3)
    model = load("AutoModelForTokenClassification", num_labels=3)
    words = TokenClassifier(ours.encoder, context, WordOptions()).eval()
    words.head.load_state_dict(model.classifier.state_dict())
    labels = (ids % 3).where(mask, -100)
    output = model(ids, attention_mask=mask, labels=labels)
    scores = words(ids, mask)
    torch.testing.assert_close(output.logits[mask], scores[mask], **TOLERANCE)
    torch.testing.assert_close(output.loss, F.cross_entropy(scores[mask], labels[mask]), **TOLERANCE)

    model = load("AutoModelForQuestionAnswering")
    answers = ExtractiveSpan(ours.encoder, context, ExtractiveOptions()).eval()
    answers.head.load_state_dict(model.qa_outputs.state_dict())
    last = ids.shape[1] - 1
    starts, ends = torch.tensor([1, last, last + 1]), torch.tensor([2, last, 40])
    output = model(ids, attention_mask=mask, start_positions=starts, end_positions=ends)
    scores = answers(ids, mask)
    torch.testing.assert_close(output.start_logits[mask], scores[..., 0][mask], **TOLERANCE)
    torch.testing.assert_close(output.end_logits[mask], scores[..., 1][mask], **TOLERANCE)
    inside = zip((output.start_logits, output.end_logits), (starts, ends), strict=True)
    expected = sum(F.cross_entropy(logits[:2], wanted[:2]) for logits, wanted in inside) / 2
    torch.testing.assert_close(output.loss, expected, msg="the third answer was cut off")

    model = load("AutoModelForMultipleChoice")
    one, other = model(ids[:, None], attention_mask=mask[:, None]).logits.flatten().view(3, 1), ids.flip(0)
    both = model(
        torch.stack([ids, other], 1),
        attention_mask=torch.stack([mask, mask.flip(0)], 1),
        labels=torch.tensor([0, 1, 1]),
    )
    torch.testing.assert_close(both.logits, torch.cat([one, one.flip(0)], 1), **TOLERANCE)
    torch.testing.assert_close(both.loss, F.cross_entropy(both.logits, torch.tensor([0, 1, 1])))


@pytest.mark.parametrize("variant", ["ltg", "roberta_tied"], indirect=True)
@torch.no_grad()
def test_a_classifier_reads_the_first_token_on_whichever_side_the_padding_is(load, ours, padded_batch):
    ids, mask = padded_batch(ours)
    model = load("AutoModelForSequenceClassification", num_labels=3)
    shifts = (~mask).sum(1).tolist()
    left, seen = (
        torch.stack([row.roll(shift) for row, shift in zip(rows, shifts, strict=True)]) for rows in (ids, mask)
    )
    torch.testing.assert_close(
        model(left, attention_mask=seen).logits, model(ids, attention_mask=mask).logits, **TOLERANCE
    )


def gradients(model, *given, **named):
    torch.manual_seed(4)
    model(*given, **named).loss.backward()
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}
    model.zero_grad()
    return found


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        ("elc_zero", "AutoModelForMaskedLM"),
        ("gpt_bert", "AutoModelForMaskedLM"),
        ("causal_roberta", "AutoModelForCausalLM"),
        ("translation", "AutoModelForSeq2SeqLM"),
    ],
    indirect=["variant"],
)
def test_recomputed_layers_have_the_same_gradients(load, name):
    model = load(name).train()
    ids = torch.randint(7, 50, (3, 12), generator=torch.Generator().manual_seed(1))
    expected = gradients(model, ids, labels=ids)
    runs = []
    layer = model.layers_to_recompute[-1]
    layer.feed_forward.register_forward_pre_hook(lambda *_: runs.append(1))
    for options in (None, {"use_reentrant": True}):
        model.gradient_checkpointing_enable(options)
        assert model.is_gradient_checkpointing
        runs.clear()
        found = gradients(model, ids, labels=ids)
        assert len(runs) == 2, "once forward, once for the gradients"
        assert found.keys() == expected.keys()
        for key, gradient in expected.items():
            torch.testing.assert_close(found[key], gradient, atol=1e-6, rtol=1e-5, msg=partial("{}: {}".format, key))
    model._set_gradient_checkpointing(every_n_layers=2)
    recomputed = ["forward" in vars(layer) for layer in model.layers_to_recompute]
    assert recomputed == [index % 2 == 0 for index in range(len(recomputed))]
    model.gradient_checkpointing_disable()
    runs.clear()
    gradients(model, ids, labels=ids)
    assert len(runs) == 1

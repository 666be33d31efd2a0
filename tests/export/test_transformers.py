"""Exported folders in `transformers`: the same numbers as ours, and the behaviour that users of the library expect."""

import importlib
import sys

import numpy as np
import pytest
import torch

from hatchery.evaluation.runtime import load_pretrained
from hatchery.modeling.families import family_of
from hatchery.modeling.heads.sequence_classifier import SequenceClassifier, SequenceOptions
from hatchery.modeling.heads.task_model import HeadContext

TOLERANCE = {"atol": 1e-5, "rtol": 0.0}


@torch.no_grad()
def test_auto_model_gives_our_hidden_states(load, ours, padded_batch):
    ids, mask = padded_batch(ours)
    model = load("AutoModel")
    output = model(ids, attention_mask=mask.long(), output_hidden_states=True)
    states = ours.encoder(ids, mask)
    assert len(output.hidden_states) == len(states)
    for found, expected in zip(output.hidden_states, states, strict=True):
        torch.testing.assert_close(found, expected, **TOLERANCE)
    torch.testing.assert_close(output.last_hidden_state, states[-1], **TOLERANCE)
    assert model(ids, attention_mask=mask.long()).hidden_states is None
    model.config.output_hidden_states = True
    assert len(model(ids, attention_mask=mask.long()).hidden_states) == len(states)
    model.config.output_hidden_states = False
    torch.testing.assert_close(model(ids).last_hidden_state, ours.encoder(ids)[-1], **TOLERANCE)


@torch.no_grad()
def test_the_masked_language_model_gives_our_logits_and_loss(load, ours, padded_batch):
    ids, mask = padded_batch(ours)
    labels = ids.where(mask & (torch.arange(12) % 3 == 1), -100)
    output = load("AutoModelForMaskedLM")(ids, attention_mask=mask.long(), labels=labels)
    torch.testing.assert_close(output.logits, ours.logits_at(ours.encoder(ids, mask)[-1]), **TOLERANCE)
    result = ours(ids, mask, labels)
    torch.testing.assert_close(output.loss, result.loss_sum / result.n_labelled, **TOLERANCE)


@torch.no_grad()
def test_loading_leaves_no_parameter_out_and_starts_none_anew(load, ours):
    model, report = load("AutoModelForMaskedLM", output_loading_info=True)
    assert not any(report.values())
    found = {name.removeprefix("model."): p for name, p in model.named_parameters()}
    expected = dict(ours.named_parameters())
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


CLASSES = (
    "ForMaskedLM",
    "ForCausalLM",
    "Model",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)


@torch.no_grad()
def test_classes_that_are_imported_directly_keep_all_weights(hub, exported, ours, variant, monkeypatch):
    """Some versions initialise every module of these classes again, and protect only weights set by their own
    functions."""
    folder = exported(variant)
    (path,) = folder.glob("modeling_*.py")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, path.stem, raising=False)
    module = importlib.import_module(path.stem)
    expected = {
        name.split(".", 1)[1]: tensor for name, tensor in ours.named_parameters() if name.startswith("encoder.")
    }
    for end in CLASSES:
        model = getattr(module, f"{family_of(ours.config).exported.classes}{end}").from_pretrained(folder)
        encoder = model.encoder if end == "Model" else model.model.encoder
        assert all(torch.equal(tensor, expected[name]) for name, tensor in encoder.named_parameters())
        for part in encoder.modules():
            for tensor in part.parameters(recurse=False):
                tensor._is_hf_initialized = True
            if isinstance(part, torch.nn.ParameterList):
                model._init_weights(part)
        assert all(torch.equal(tensor, expected[name]) for name, tensor in encoder.named_parameters())


@torch.no_grad()
def test_the_classifier_gives_our_logits_with_the_same_head(load, ours, padded_batch):
    ids, mask = padded_batch(ours)
    model, report = load("AutoModelForSequenceClassification", num_labels=3, output_loading_info=True)
    names = {"classifier.linear.weight", "classifier.linear.bias", "classifier.output.weight", "classifier.output.bias"}
    assert set(report["missing_keys"]) == names, "only the head is fresh"
    assert not report["unexpected_keys"], "the head of the language model is passed over in silence"
    classifier = SequenceClassifier(ours.encoder, HeadContext(3, 0.0, 1, 3), SequenceOptions())
    classifier.head.load_state_dict(model.classifier.state_dict())
    classifier.eval()
    output = model(ids, attention_mask=mask.long())
    torch.testing.assert_close(output.logits, classifier(ids, mask), **TOLERANCE)
    # The first sequence has no padding, so it has the same scores without a mask.
    torch.testing.assert_close(model(ids[:1]).logits, output.logits[:1], **TOLERANCE)
    assert float(model.classifier.output.weight.std()) > 0


@torch.no_grad()
def test_a_grown_vocabulary_keeps_the_old_logits_and_survives_saving(load, ours, padded_batch, tmp_path):
    ids, mask = padded_batch(ours)
    model = load("AutoModelForMaskedLM")
    before = model(ids, attention_mask=mask).logits
    model.resize_token_embeddings(350)
    ids[0, 3] = 349
    changed = model(ids, attention_mask=mask).logits
    assert changed.shape == (3, 12, 350)
    assert any(name.startswith("vocabulary") for name, _ in ours.head.named_parameters())
    for name, old in ours.head.named_parameters():
        if name.startswith("vocabulary"):
            added = model.head.get_parameter(name)[len(old) :]
            expected = np.mean(old.tolist(), axis=0) if old.ndim > 1 else min(old.tolist())
            np.testing.assert_allclose(added, np.broadcast_to(expected, added.shape), atol=1e-6)
    torch.testing.assert_close(changed[1:, :, : before.shape[-1]], before[1:], **TOLERANCE)
    model.save_pretrained(tmp_path)
    torch.testing.assert_close(load("AutoModelForMaskedLM", tmp_path)(ids, attention_mask=mask).logits, changed)
    model.resize_token_embeddings(330)
    ids[0, 3] = 9
    assert model(ids, attention_mask=mask).logits.shape == (3, 12, 330)


@torch.no_grad()
def test_half_precision_weights_compute(hub, load, ours, padded_batch):
    ids, mask = padded_batch(ours)
    expected = ours.logits_at(ours.encoder(ids, mask)[-1])
    option = "torch_dtype" if hub.__version__.startswith("4.") else "dtype"
    for dtype, share in ((torch.bfloat16, 0.1), (torch.float16, 0.02)):
        model = load("AutoModelForMaskedLM", **{option: dtype})
        assert model.dtype == dtype
        error = (model(ids, attention_mask=mask).logits - expected).abs().max()
        assert error < share * expected.abs().max()


def test_training_mode_drops_and_evaluation_mode_does_not(load, ours, padded_batch):
    ids, mask = padded_batch(ours)
    model = load("AutoModelForMaskedLM")
    assert not model.training, "from_pretrained gives a model ready for use"
    assert torch.equal(model(ids, attention_mask=mask).logits, model(ids, attention_mask=mask).logits)
    model.train()
    output = model(ids, attention_mask=mask, labels=ids)
    assert not torch.equal(output.logits, model(ids, attention_mask=mask).logits)
    output.loss.backward()
    without = {name for name, p in model.named_parameters() if p.grad is None or not bool(p.grad.any())}
    # The first layer has one producer, so its weight has no gradient; the pair head is not used in this loss.
    unused = ("layer_weights.0", "pair_head", "token_type")
    assert not {name for name in without if not any(part in name for part in unused)}


def test_tuples_come_where_no_dictionary_is_wanted(load, ours, padded_batch):
    ids, mask = padded_batch(ours)
    for name in ("AutoModel", "AutoModelForMaskedLM", "AutoModelForSequenceClassification"):
        model = load(name)
        first, *rest = model(ids, attention_mask=mask, return_dict=False)
        assert torch.equal(first, model(ids, attention_mask=mask)[0]) and not rest


def test_a_model_from_a_configuration_alone_starts_near_the_uniform_loss(hub, load, ours, padded_batch):
    ids, mask = padded_batch(ours)
    config = load("AutoConfig")
    model = hub.AutoModelForMaskedLM.from_config(config, trust_remote_code=True)
    for _ in range(2):
        loss = float(model(ids, attention_mask=mask, labels=ids).loss.detach())
        assert 5.0 < loss < 7.0  # log 340 is 5.8
        # Some versions call this for every module, including norms without parameters.
        for module in model.modules():
            model._init_weights(module)
    vectors = {name: p for name, p in model.named_parameters() if p.ndim == 1 and "layer_weights" not in name}
    assert not [name for name, vector in vectors.items() if not bool((vector == start_of(name)).all())]
    # Matrices begin with a normal distribution of variance 2 / (5 * 24), truncated at two deviations: a factor 0.8796.
    words = model.get_input_embeddings().weight.detach()
    assert float(words.std()) == pytest.approx(0.8796 * (2 / 120) ** 0.5, rel=0.05)
    assert float(words.abs().max()) <= 2 * (2 / 120) ** 0.5 + 1e-6


def start_of(name: str) -> float:
    """Return the value with which the entries of a vector begin: gains and scales 1, half of the values, biases 0."""
    if "value_residual_scale" in name:
        return 0.5
    return float(name.endswith("norm.weight") or "scale" in name)


@pytest.mark.parametrize("variant", ["ltg", "roberta_tied"], indirect=True)
def test_the_tokenizer_asks_for_no_code_and_gives_our_ids_in_a_frame(hub, exported, pretrained, variant, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it asked whether to run code"))
    _, tokenizer = load_pretrained(pretrained(variant))
    theirs = hub.AutoTokenizer.from_pretrained(exported(variant), trust_remote_code=False)
    for text in ("The old dogs sleep.", "A  cat, near the house!", "naïve — 12"):
        (ids,) = tokenizer.encode_sentences([text])
        assert theirs(text)["input_ids"] == [tokenizer.cls_id, *ids, tokenizer.sep_id]
    assert (theirs.mask_token_id, theirs.pad_token_id) == (tokenizer.mask_id, tokenizer.pad_id)
    pair = theirs("The dogs", "sleep", return_tensors="pt", padding=True)
    assert set(pair) == {"input_ids", "attention_mask"}
    assert int((pair["input_ids"] == tokenizer.sep_id).sum()) == (2 if variant == "ltg" else 3)


@pytest.mark.parametrize("variant", ["elc_zero", "roberta_untied_projected"], indirect=True)
def test_the_fill_mask_pipeline_gives_the_most_probable_subwords(hub, exported, pretrained, variant):
    model, tokenizer = load_pretrained(pretrained(variant))
    fill = hub.pipeline("fill-mask", model=str(exported(variant)), trust_remote_code=True)
    found = fill(f"The old dogs{fill.tokenizer.mask_token} near the house.", top_k=5)
    ids = fill.tokenizer(f"The old dogs{fill.tokenizer.mask_token} near the house.", return_tensors="pt")["input_ids"]
    position = int((ids[0] == tokenizer.mask_id).nonzero())
    with torch.no_grad():
        logits = model.eval().logits_at(model.encoder(ids)[-1])[0, position]
    expected = logits.softmax(-1).topk(5)
    assert [entry["token"] for entry in found] == expected.indices.tolist()
    assert [entry["score"] for entry in found] == pytest.approx(expected.values.tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("n_labels", "problem_type", "labels"),
    [
        (3, "single_label_classification", torch.tensor([0, 2, 1])),
        (3, "multi_label_classification", torch.tensor([[0.0, 1, 1], [0, 0, 0], [1, 0, 0]])),
        (1, "regression", torch.tensor([0.5, -1.0, 2.0])),
        (2, "regression", torch.tensor([[0.5, 1.0], [-1.0, 0.0], [2.0, 2.0]])),
    ],
)
@pytest.mark.parametrize("variant", ["ltg"], indirect=True)
def test_every_problem_type_has_its_loss(load, ours, padded_batch, n_labels, problem_type, labels):
    ids, mask = padded_batch(ours)
    options = {"problem_type": problem_type} if (n_labels, problem_type) == (2, "regression") else {}
    model = load("AutoModelForSequenceClassification", num_labels=n_labels, **options)
    output = model(ids, attention_mask=mask, labels=labels)
    logits = output.logits.double()
    expected = {
        "single_label_classification": lambda: -logits.log_softmax(-1)[torch.arange(3), labels].mean(),
        "multi_label_classification": lambda: (
            -(labels * logits.sigmoid().log() + (1 - labels) * (1 - logits.sigmoid()).log()).mean()
        ),
        "regression": lambda: (logits.view(labels.shape) - labels).square().mean(),
    }[problem_type]()
    assert float(output.loss.detach()) == pytest.approx(float(expected.detach()), abs=1e-5)
    assert model.config.problem_type == problem_type


@pytest.mark.parametrize("variant", ["ltg"], indirect=True)
def test_the_dropout_of_a_fresh_head_is_that_of_the_model_unless_it_is_set(load):
    for options, expected in (({"hidden_dropout_prob": 0.2}, 0.2), ({"classifier_dropout": 0.3}, 0.3)):
        model = load("AutoModelForSequenceClassification", **options)
        assert model.classifier.dropout.probability == expected


@pytest.mark.parametrize("variant", ["bnc_layout_with_pair_head"], indirect=True)
@torch.no_grad()
def test_the_sentence_pair_head_is_kept(load, ours, padded_batch):
    ids, mask = padded_batch(ours)
    expected = ours.pair_head(ours.encoder(ids, mask)[-1][:, 0])
    found = load("AutoModelForMaskedLM").sentence_pair_logits(ids, mask)
    torch.testing.assert_close(found, expected, **TOLERANCE)


@pytest.mark.parametrize("variant", ["ltg"], indirect=True)
def test_pairs_are_judged_by_models_with_such_a_head_alone(load, ours, padded_batch):
    with pytest.raises(Exception, match="the model has no sentence-pair head"):
        load("AutoModelForMaskedLM").sentence_pair_logits(*padded_batch(ours))


@pytest.mark.parametrize("variant", ["ltg", "roberta_tied"], indirect=True)
def test_the_base_model_can_be_frozen_apart_from_the_head(load):
    model = load("AutoModelForSequenceClassification")
    model.base_model.requires_grad_(False)
    assert {name.partition(".")[0] for name, p in model.named_parameters() if p.requires_grad} == {"classifier"}

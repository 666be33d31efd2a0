"""Properties of every registered head, on every kind of encoder, with every pooling and transform.

Every head also learns a small task by its own loss, better than the best prediction that ignores the input.
"""

import numpy as np
import pytest
import torch
from torch import nn

from hatchery.errors import ConfigError, ModelError
from hatchery.modeling.count_distributions import entropy
from hatchery.modeling.heads.registry import HEADS, build_task_model
from hatchery.modeling.heads.sequence_classifier import POOLINGS
from hatchery.modeling.heads.targets import IMPOSSIBLE_SCORE
from hatchery.modeling.heads.task_model import TRANSFORMS, HeadContext
from hatchery.modeling.norm_and_dropout import Dropout
from hatchery.modeling.output_bias import marginal_bias, set_output_bias_

ALL_ENCODERS = ("ltg", "elc", "gpt_bert", "modern", "roberta")


def options_of(name, transform, pooling):
    declared = HEADS[name].options.__dataclass_fields__
    chosen = {"transform": transform, "pooling": pooling, "n_positions": 20}
    return {key: value for key, value in chosen.items() if key in declared}


def variants():
    """Every head with every pooling and transform that it accepts."""
    seen = {}
    for name in HEADS:
        for transform in TRANSFORMS:
            for pooling in POOLINGS:
                options = options_of(name, transform, pooling)
                seen[(name, *sorted(options.items()))] = (name, options)
    return list(seen.values())


@pytest.mark.parametrize(("name", "options"), variants())
def test_shapes_and_gradients(make_head, cases, name, options):
    if name == "multiple_choice":
        options = {**options, "independent_choices": True}  # a softmax is invariant to a shift of all scores
    model, case = make_head(name, encoder_mode="trained", **options), cases[name]
    scores = model(**case.inputs)
    assert tuple(scores.shape) == case.scores and scores.dtype == torch.float32
    assert bool(torch.isfinite(scores).all())
    assert tuple(model.predictions(scores).shape) == case.predictions
    loss = model.loss(scores, case.labels)
    loss.mean.backward()
    torch.testing.assert_close(loss.mean, loss.loss_sum / int(loss.n_labelled))
    for parameter_name, parameter in model.named_parameters():
        # The wrapper's norm removes a constant that is added to all channels, so this bias has no gradient.
        if parameter_name == "pooling.position_weights.bias" and options.get("transform") == "ltg_wrapper":
            continue
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, parameter_name


@pytest.mark.parametrize("encoder", ALL_ENCODERS)
@pytest.mark.parametrize(
    ("name", "pooling"),
    [(n, p) for n in HEADS for p in POOLINGS if p == "first_token" or n == "sequence_classification"],
)
def test_more_padding_changes_no_score(make_head, cases, encoder, name, pooling):
    model, case = make_head(name, encoder, **options_of(name, "ltg_wrapper", pooling)).eval(), cases[name]
    scores, longer = model(**case.inputs), model(**case.padded(5).inputs)
    if name == "token_classification":
        assert not scores[~case.inputs["attention_mask"]].any() and not longer[:, scores.shape[1] :].any()
        longer = longer[:, : scores.shape[1]]
    if name == "extractive_span":
        assert (longer[:, scores.shape[1] :] == IMPOSSIBLE_SCORE).all()
        torch.testing.assert_close(model.predictions(longer), model.predictions(scores))
        longer = longer[:, : scores.shape[1]]
    torch.testing.assert_close(longer, scores, atol=2e-6, rtol=0)
    torch.testing.assert_close(model.predictions(longer), model.predictions(scores), atol=2e-6, rtol=0)


@pytest.mark.parametrize("name", HEADS)
def test_fresh_weights_depend_on_the_seed_alone(make_head, name):
    torch.manual_seed(1)
    first = make_head(name)
    torch.manual_seed(2)
    again, other = make_head(name), make_head(name, seed=6)
    fresh = {key for key, _ in first.named_parameters() if not key.startswith("encoder.")}
    assert len(fresh) == len(first.fresh_parameters())
    states = [model.state_dict() for model in (first, again, other)]
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    matrices = [key for key in fresh if states[0][key].ndim == 2]
    assert matrices and not any(torch.equal(states[0][key], states[2][key]) for key in matrices)
    # No two tensors share a stream of random numbers.
    firsts = [float(states[0][key].flatten()[0]) for key in matrices]
    assert len(set(firsts)) == len(firsts)


@pytest.mark.parametrize("name", HEADS)
def test_dropout_is_that_of_the_protocol_and_can_be_set(make_head, cases, name):
    model = make_head(name, dropout=0.25, encoder_mode="trained")
    found = {child.probability for child in model.modules() if isinstance(child, Dropout)}
    assert found == {0.25}
    torch.manual_seed(0)
    noisy = [model(**cases[name].inputs) for _ in range(2)]
    assert not torch.equal(*noisy)
    model.set_dropout(0.0)
    assert torch.equal(model(**cases[name].inputs), model(**cases[name].inputs))
    with pytest.raises(ModelError, match="dropout"):
        model.set_dropout(1.0)


@pytest.mark.parametrize("name", HEADS)
def test_a_frozen_encoder_is_left_as_it_was(make_head, cases, name):
    model = make_head(name, dropout=0.25, encoder_mode="frozen")
    model.encoder.set_dropout(0.1)
    model.set_dropout(0.5)
    assert {child.probability for child in model.encoder.modules() if isinstance(child, Dropout)} == {0.1}
    model.train()
    assert model.head.training and not any(child.training for child in model.encoder.modules())
    model.loss(model(**cases[name].inputs), cases[name].labels).mean.backward()
    assert all(parameter.grad is None for parameter in model.encoder.parameters())
    assert all(parameter.grad is not None for parameter in model.fresh_parameters())
    noisy = make_head(name, encoder_mode="frozen_with_dropout").train()
    assert noisy.encoder.training and not any(parameter.requires_grad for parameter in noisy.encoder.parameters())


@pytest.mark.parametrize("name", HEADS)
def test_the_output_layer_takes_a_prior(make_head, cases, name):
    model = make_head(name).eval()
    before = model(**cases[name].inputs)
    assert isinstance(model.output_layer, nn.Linear)
    with torch.no_grad():
        model.output_layer.bias.add_(0.75)
    after = model(**cases[name].inputs)
    # Skip the scores of missing choices and of padding, which are constants.
    shifted = (after - before)[before.abs() < 1e6]
    expected = torch.full_like(shifted, 0.75).where(shifted.abs() > 0.1, 0.0)
    torch.testing.assert_close(shifted, expected, atol=1e-5, rtol=0)
    assert float((shifted > 0.1).float().mean()) > 0.5


@pytest.mark.parametrize("name", HEADS)
def test_a_prior_over_the_labels_is_where_an_uninformed_head_starts(make_head, cases, name):
    """With zero output weights, the first loss is the entropy of the label frequencies (regression: the variance)."""
    model, case = make_head(name).eval(), cases[name]
    if model.target.link is None:
        assert name in ("multiple_choice", "extractive_span")
        return
    outputs = model.output_layer.out_features
    labels = case.labels.numpy()
    set_output_bias_(model.output_layer, marginal_bias(model.target.link, labels, outputs, smoothing=1e-6))
    torch.nn.init.zeros_(model.output_layer.weight)
    loss = float(model.loss(model(**case.inputs), case.labels).mean.detach())
    if name == "regression":
        assert loss == pytest.approx(labels.var(), rel=1e-5)
    elif name == "span_classification":
        shares = labels.mean(axis=0)
        assert loss == pytest.approx(np.mean([entropy(np.array([p, 1 - p])) for p in shares]), rel=1e-4)
    else:
        counts = np.unique(labels[labels >= 0], return_counts=True)[1]
        assert loss == pytest.approx(entropy(counts / counts.sum()), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in HEADS if name != "multiple_choice"])
def test_the_traced_graph_computes_the_same(make_head, cases, name):
    """The model and its loss are traced as one graph, which cannot branch on values, as on a GPU.

    Multiple choice is left out, because it counts the existing choices.
    """
    model, case = make_head(name).eval(), cases[name]
    scores = torch.compile(model, backend="eager", fullgraph=True)(**case.inputs)
    torch.testing.assert_close(scores, model(**case.inputs), atol=1e-5, rtol=0)
    loss = torch.compile(model.loss, backend="eager", fullgraph=True)(scores, case.labels)
    torch.testing.assert_close(loss.loss_sum, model.loss(scores, case.labels).loss_sum)


@pytest.mark.parametrize("name", HEADS)
def test_scores_and_losses_are_in_full_precision_under_autocast(make_head, cases, name):
    model, case = make_head(name).eval(), cases[name]
    exact = model(**case.inputs)
    with torch.autocast("cpu", torch.bfloat16):
        scores = model(**case.inputs)
        loss = model.loss(scores, case.labels)
    assert scores.dtype == loss.loss_sum.dtype == torch.float32
    torch.testing.assert_close(scores, exact, atol=0.1, rtol=0.05)


@pytest.mark.parametrize(
    ("name", "n_labels", "options", "message"),
    [
        ("sequence_clasification", 2, {}, "head: got 'sequence_clasification'"),
        ("regression", 2, {}, r"head\.regression: got n_labels 2"),
        ("sequence_classification", 2, {"pooling": "last"}, r"head\.sequence_classification\.pooling"),
    ],
)
def test_wrong_settings_are_named_by_their_key(make_encoder, name, n_labels, options, message):
    with pytest.raises(ConfigError, match=message):
        build_task_model(name, make_encoder(), HeadContext(n_labels, 0.1, 1, 1), options)


@pytest.mark.parametrize(
    ("name", "n_labels", "options", "message"),
    [
        ("sequence_classification", 0, {}, "n_labels"),
        ("sequence_classification", 2, {"pooling": "position_linear", "n_positions": 0}, "n_positions"),
        ("extractive_span", None, {"max_span_length": 0}, "max_span_length"),
        ("span_classification", 2, {"n_spans": 0}, "n_spans"),
        ("span_classification", 2, {"probe_size": 30}, "pooling_heads"),
    ],
)
def test_impossible_sizes_are_named(make_encoder, name, n_labels, options, message):
    with pytest.raises(ModelError, match=message):
        build_task_model(name, make_encoder(), HeadContext(n_labels, 0.1, 1, 1), options)


N, LENGTH, STEPS = 48, 10, 60


def toy_inputs(seed):
    """Random words with one mark, token 7, at a random position between [CLS] (2) and the last token (3)."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(10, 20, (N, LENGTH), generator=generator)
    place = torch.randint(1, LENGTH - 1, (N,), generator=generator)
    ids[torch.arange(N), place] = 7
    ids[:, 0], ids[:, -1] = 2, 3
    return ids, place


def toy_task(name, seed):
    """Inputs and labels of a task whose labels follow from the inputs."""
    ids, place = toy_inputs(seed)
    marked = torch.arange(N) % 2 == 0
    without = ids.where(ids != 7, 8)
    some = ids.where(marked.unsqueeze(1), without)
    match name:
        case "sequence_classification":
            return {"input_ids": some}, marked.long()
        case "regression":
            return {"input_ids": some}, marked.float() * 4 + 0.5
        case "multiple_choice":
            first = ids.where(marked.unsqueeze(1), without)
            second = without.where(marked.unsqueeze(1), ids)
            return {"input_ids": torch.stack([first, second], 1)}, (~marked).long()
        case "marked_words_classification":
            # Only the mark determines which word the label is about.
            asked, rows = place % (LENGTH - 2) + 1, torch.arange(N)
            spans = torch.stack([torch.stack([word, word + 1], 1) for word in (asked, place)], 1)
            return {"input_ids": ids, "spans": spans}, (ids[rows, asked] >= 15).long()
        case "word_classification":
            asked, rows = place % (LENGTH - 2) + 1, torch.arange(N)
            spans = torch.stack([asked, asked + 1], 1).unsqueeze(1)
            return {"input_ids": ids, "spans": spans, "sentences": rows}, (ids[rows, asked] >= 15).long()
        case "token_classification":
            return {"input_ids": ids}, (ids % 3).where(ids >= 7, -100)
        case "extractive_span":
            return {"input_ids": ids}, torch.stack([place, place + 1], 1)
        case "span_classification":
            spans = torch.stack([torch.ones(N), torch.full((N,), LENGTH // 2)], 1).long()
            inside = (place < LENGTH // 2).long()
            labels = torch.stack([inside, 1 - inside, torch.zeros(N)], 1).long()
            return {"input_ids": ids, "spans": spans.unsqueeze(1), "sentences": torch.arange(N)}, labels
    raise AssertionError(f"no toy task for {name}")


def train(model, inputs, labels):
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=5e-3)
    model.train()
    for _ in range(STEPS):
        optimizer.zero_grad()
        model.loss(model(**inputs), labels).mean.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    return model.eval()


@pytest.mark.parametrize("name", HEADS)
def test_every_head_learns_its_task(make_head, name):
    options = {"probe_size": 32, "encoder_mode": "trained"} if name == "span_classification" else {}
    if HEADS[name].options.__dataclass_fields__.keys() >= {"n_positions"}:
        options |= {"n_positions": LENGTH}
    model = train(make_head(name, **options), *toy_task(name, 0))
    inputs, labels = toy_task(name, 1)  # new rows of the same task
    with torch.no_grad():
        predictions = model.predictions(model(**inputs))
    if name == "regression":
        error, blind = (predictions - labels).square().mean(), (labels - labels.mean()).square().mean()
        assert error < 0.25 * blind
        return
    if name == "extractive_span":
        assert (predictions == labels).all(dim=1).float().mean() > 0.5  # chance is 1 in 8
        return
    labelled = labels != -100
    accuracy = (predictions.long() == labels)[labelled].float().mean()
    counts = labels[labelled].unique(return_counts=True)[1]
    blind = 2 / 3 if name == "span_classification" else float(counts.max() / counts.sum())
    assert accuracy > blind + 0.2


@pytest.mark.parametrize(
    ("encoder", "transform", "pooling"),
    [
        ("ltg", "ltg_code", "mean"),
        ("ltg", "roberta", "first_token"),
        ("ltg", "none", "position_linear"),
        ("causal", "ltg_wrapper", "last_token"),
    ],
)
def test_other_classifiers_learn_too(make_head, encoder, transform, pooling):
    options = {"transform": transform, "pooling": pooling, "n_positions": LENGTH}
    model = train(make_head("sequence_classification", encoder, **options), *toy_task("sequence_classification", 0))
    inputs, labels = toy_task("sequence_classification", 1)
    assert (model.predictions(model(**inputs)) == labels).float().mean() > 0.75


def test_a_frozen_probe_learns_from_the_layers_and_moves_its_weights(make_head):
    model = make_head("span_classification", probe_size=32)
    before = {name: value.clone() for name, value in model.encoder.state_dict().items()}
    train(model, *toy_task("span_classification", 0))
    assert all(torch.equal(value, before[name]) for name, value in model.encoder.state_dict().items())
    assert (model.layer_weights() - 1 / 3).abs().max() > 1e-3
    inputs, labels = toy_task("span_classification", 1)
    assert (model.predictions(model(**inputs)).long() == labels).float().mean() > 2 / 3 + 0.1

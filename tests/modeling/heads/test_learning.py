"""Every head learns a small task by its own loss, better than the best answer without looking at the input."""

import pytest
import torch

from hatchery.modeling.heads.registry import HEADS

N, LENGTH, STEPS = 48, 10, 60


def toy_inputs(seed):
    """Sequences of random words with one mark, token 7, at a random place behind [CLS] (2) and before the end (3)."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(10, 20, (N, LENGTH), generator=generator)
    place = torch.randint(1, LENGTH - 1, (N,), generator=generator)
    ids[torch.arange(N), place] = 7
    ids[:, 0], ids[:, -1] = 2, 3
    return ids, place


def toy_task(name, seed):
    """Inputs and labels of a task that the input decides."""
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
            # Only the mark tells which of the words is asked about.
            asked, rows = place % (LENGTH - 2) + 1, torch.arange(N)
            spans = torch.stack([torch.stack([word, word + 1], 1) for word in (asked, place)], 1)
            return {"input_ids": ids, "spans": spans}, (ids[rows, asked] >= 15).long()
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
    inputs, labels = toy_task(name, 1)  # fresh rows of the same task
    with torch.no_grad():
        predictions = model.predictions(model(**inputs))
    if name == "regression":
        error, blind = (predictions - labels).square().mean(), (labels - labels.mean()).square().mean()
        assert error < 0.25 * blind
        return
    if name == "extractive_span":
        assert (predictions == labels).all(dim=1).float().mean() > 0.5  # 1 in 8 by chance
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

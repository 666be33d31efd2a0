"""Random mask rates: the weights of the bound, the batches, and refused keys."""

import itertools
import math

import numpy as np
import pytest
import torch

from hatchery.errors import ConfigError
from hatchery.evaluation.basis import asked_of
from hatchery.modeling.language_model import LanguageModelOutput
from hatchery.objectives.mask_rates import MASKABLE, WEIGHTS, MaskRates, TokenPreference
from hatchery.objectives.special_ids import SpecialIds
from hatchery.objectives.token_preferences import chances, frequency_preferences
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.objectives import objective_of, objective_settings
from hatchery.training.objectives.masked import MaskedSettings

DIFFUSION = {
    "kind": "subword",
    "random_probability": 0.0,
    "keep_probability": 0.0,
    "short_probability": 0.0,
    "rates": {"weights": "diffusion"},
}
LENGTH = 3
# Joint probabilities of all texts of three words from a vocabulary of three words.
JOINT = np.random.default_rng(5).dirichlet(np.full(3**LENGTH, 0.4)).reshape(3, 3, 3)


def conditional(text: tuple[int, ...], hidden: tuple[int, ...], position: int) -> float:
    """Return the probability of the word at a masked position, given the visible words."""
    index = tuple(slice(None) if place in hidden else text[place] for place in range(LENGTH))
    seen = JOINT[index]
    right = tuple(
        text[place] if place == position else slice(None) if place in hidden else text[place] for place in range(LENGTH)
    )
    return float(np.sum(JOINT[right]) / np.sum(seen))


@pytest.mark.parametrize("shape", ["uniform", "cosine"])
def test_the_weighted_loss_of_an_exact_three_word_model_is_the_likelihood_of_the_text(shape: str) -> None:
    rates = MaskRates(shape=shape, weights="diffusion")
    steps = 20_000
    drawn = [rates.at((step + 0.5) / steps) for step in range(steps)]
    rate, weight = np.array(drawn).T
    text, bound = (2, 0, 1), 0.0
    for size in range(1, LENGTH + 1):
        for hidden in itertools.combinations(range(LENGTH), size):
            surprisal = -sum(math.log(conditional(text, hidden, place)) for place in hidden)
            bound += surprisal * float(np.mean(weight * rate**size * (1 - rate) ** (LENGTH - size)))
    assert bound == pytest.approx(-math.log(JOINT[text]), rel=1e-4)


@pytest.mark.parametrize(("shape", "mean"), [("uniform", 0.5), ("cosine", 1 - 2 / math.pi)])
def test_the_mean_share_is_that_of_the_draws(shape: str, mean: float) -> None:
    rates = MaskRates(shape=shape, lowest=0.1, highest=0.6)
    generator = np.random.default_rng(0)
    found = np.mean([rates.draw(generator).rate for _ in range(20_000)])
    assert rates.mean == pytest.approx(0.1 + 0.5 * mean)
    # Plans count labels with this mean.
    assert MaskedSettings(kind="subword", rates=rates).mask_rate(0.3) == pytest.approx(0.1 + 0.5 * mean)
    assert found == pytest.approx(rates.mean, abs=0.005)


class Least:
    """A generator that returns the smallest number."""

    def random(self) -> float:
        return 0.0


def test_weights_of_a_part_of_the_shares_and_the_largest_share_by_hand() -> None:
    part = {"lowest": 0.1, "highest": 0.6, "weights": "diffusion"}
    # At 0.5: a rate of 0.1 + 0.5 x 0.5 with slope 0.5; with the cosine, 0.1 + 0.5 x 0.29289 with slope 0.5 x 1.11072.
    assert MaskRates(**part).at(0.5) == pytest.approx((0.35, 0.5 / 0.35))
    assert MaskRates(**part, shape="cosine").at(0.5) == pytest.approx((0.246447, 0.555360 / 0.246447), rel=1e-5)
    assert MaskRates(lowest=0.1).at(0.5).weight == 1
    assert MaskRates(**part).draw(Least()) == pytest.approx((0.6, 0.5 / 0.6))


def test_labels_that_are_fewer_weigh_more_and_held_out_text_has_all(make_collection) -> None:
    text = make_collection([[30] * 4], vocab_size=300)
    whole, fewer = (
        objective_of(objective_settings({**DIFFUSION, "labelled_share": share}, "objective")) for share in (1.0, 0.25)
    )
    batches = [one.examples(text, 32).batch(3, 1, range(2)) for one in (whole, fewer)]
    assert torch.allclose(batches[1][WEIGHTS], 4 * batches[0][WEIGHTS])
    held_out = type(text)(text.documents, text.vocabulary_size, text.special, "dev")
    labels = [one.examples(held_out, 32).batch(3, 1, range(2))["labels"] for one in (whole, fewer)]
    assert torch.equal(*labels)
    assert fewer.settings.labelled_share_at(0.4) == pytest.approx(0.1)


def test_a_batch_of_diffusion_is_divided_by_its_maskable_tokens(make_collection) -> None:
    objective = objective_of(objective_settings(DIFFUSION, "objective"))
    examples = objective.examples(make_collection([[30] * 4], vocab_size=300), 32)
    batch = examples.batch(3, 1, np.arange(len(examples)))
    maskable = (batch["input_ids"] == 4) | (batch["input_ids"] >= 6)
    assert batch[MASKABLE].tolist() == maskable.sum(dim=1).tolist()
    assert examples.counted(batch) == (int(maskable.sum()),)
    labelled = batch["labels"] != UNLABELLED
    # With uniform rates, the weight of a label is 1 / rate, about the ratio of maskable to labelled tokens.
    rates = 1 / batch[WEIGHTS][:, 1].double()
    assert ((rates > 0) & (rates <= 1)).all()
    assert (labelled.sum(dim=1) / batch[MASKABLE]).numpy() == pytest.approx(rates.numpy(), abs=0.35)
    positions = labelled.flatten().nonzero().squeeze(1)
    logits = torch.randn(len(positions), 300, generator=torch.Generator().manual_seed(0))
    targets = batch["labels"].flatten()[positions]
    (term,) = objective.terms(LanguageModelOutput(logits, targets, positions), batch)
    expected = sum(
        float(batch[WEIGHTS].flatten()[place]) * -float(torch.log_softmax(row, dim=-1)[target])
        for place, row, target in zip(positions.tolist(), logits, targets.tolist(), strict=True)
    )
    assert float(term.loss_sum) == pytest.approx(expected, rel=1e-5)
    right = logits.argmax(dim=1) == targets
    logits[:3] = torch.nn.functional.one_hot(targets[:3], 300) * 99.0
    (term,) = objective.terms(LanguageModelOutput(logits, targets, positions), batch)
    weights = batch[WEIGHTS].flatten()[positions]
    assert float(term.sums[0]) == pytest.approx(float(weights[:3].sum() + weights[3:][right[3:]].sum()))
    held_out = objective.held_out_terms(LanguageModelOutput(logits, targets, positions), batch)
    assert held_out.counted is not None and int(held_out.counted) == int(maskable.sum())


def test_the_bound_is_asked_for_something_else_than_a_likelihood() -> None:
    bound, constant = objective_settings(DIFFUSION, "objective"), MaskedSettings()
    causal = objective_settings({"task": "causal"}, "objective")
    assert "0 to 100 %, bound of masked diffusion" in asked_of(bound)
    for part, shares in (({"lowest": 0.1}, "10 to 100 %"), ({"highest": 0.9}, "0 to 90 %")):
        asked = asked_of(objective_settings({**DIFFUSION, "rates": {"weights": "diffusion", **part}}, "objective"))
        assert shares in asked and "bound" not in asked
    assert len({asked_of(bound), asked_of(constant), asked_of(causal)}) == 3
    # Keys that only affect training do not change the evaluation of held-out text.
    fewer = objective_settings(
        {"labelled_share": 0.5, "kind": "subword", "preference": {"by": "frequency"}}, "objective"
    )
    assert asked_of(fewer) == asked_of(MaskedSettings(kind="subword"))


def test_a_share_of_the_hidden_tokens_is_labelled_and_all_stay_hidden(make_collection) -> None:
    text = make_collection([[60] * 40], vocab_size=300)
    common = {"kind": "subword", "random_probability": 0.0, "keep_probability": 0.0, "mask_probability": 0.5}
    whole, fewer = (
        objective_of(objective_settings({**common, "labelled_share": share}, "objective"))
        .examples(text, 64)
        .batch(0, 0, range(30))
        for share in (1.0, 0.25)
    )
    assert torch.equal(whole["input_ids"], fewer["input_ids"])
    kept = fewer["labels"] != UNLABELLED
    assert torch.equal(fewer["labels"][kept], whole["labels"][kept])
    assert int(kept.sum()) / int((whole["labels"] != UNLABELLED).sum()) == pytest.approx(0.25, abs=0.04)


def test_chances_keep_their_mean_and_clip_at_one() -> None:
    # By hand: of the budget of 2, the first token would get 1.6 by its weight of 8 / 10, so it gets 1, and two equal
    # tokens share the other 1.
    assert chances(np.array([8.0, 1.0, 1.0]), 2 / 3).tolist() == [1.0, 0.5, 0.5]
    # Two tokens would get 1.33 each and get 1 each, so 1 of the budget of 3 remains.
    assert chances(np.array([8.0, 8.0, 1.0, 1.0]), 3 / 4).tolist() == [1.0, 1.0, 0.5, 0.5]
    assert chances(np.array([2.0, 1.0, 1.0]), 0.25) == pytest.approx([0.375, 0.1875, 0.1875])
    assert chances(np.array([]), 0.15).tolist() == []


def test_rare_subwords_are_hidden_more_often(make_collection) -> None:
    text = make_collection([[50]] * 200, vocab_size=300)
    for document in text.documents:
        document.ids[document.ids > 40] = 7
    settings = {"kind": "subword", "preference": {"by": "frequency"}, "segments": "documents", "short_probability": 0.0}
    examples = objective_of(objective_settings(settings, "objective")).examples(text, 64)
    batch = examples.batch(0, 0, range(len(examples)))
    labels = batch["labels"]
    shown = batch["input_ids"][labels != UNLABELLED]
    # Of the 1,500 hidden tokens, a tenth stays visible; few random tokens equal the token that they replace.
    assert float((shown == 4).double().mean()) == pytest.approx(0.8, abs=0.04)
    assert float((shown == labels[labels != UNLABELLED]).double().mean()) == pytest.approx(0.1, abs=0.03)
    ids = np.concatenate([document.ids for document in text.documents])
    counts = np.bincount(ids, minlength=300)
    found = np.bincount(labels[labels != UNLABELLED].numpy(), minlength=300)
    rare = np.arange(300) != 7
    assert found.sum() / len(ids) == pytest.approx(0.15, abs=0.01)
    shares = found[rare].sum() / counts[rare].sum(), found[7] / counts[7]
    expected = frequency_preferences(counts, 0.5)
    assert shares[0] > 2 * shares[1]
    assert expected[7] == pytest.approx(1 / math.sqrt(counts[7] + 1))


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({**DIFFUSION, "mask_probability": 0.3}, "mask_probability"),
        ({**DIFFUSION, "kind": "span"}, "kind"),
        ({**DIFFUSION, "keep_probability": 0.1}, "keep_probability"),
        ({**DIFFUSION, "preference": {"by": "frequency"}}, "preference"),
        ({"kind": "subword", "labelled_share": 0.5, "preference": {"by": "loss"}}, "labelled_share"),
        ({"kind": "subword", "preference": {"by": "frequency", "memory": 0.5}}, "memory"),
        ({"kind": "subword", "preference": {"by": "frequency", "interval_steps": 100}}, "interval_steps"),
        ({"rates": {"lowest": 0.5, "highest": 0.5}}, "highest"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(values: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        objective_settings(values, "objective")


def test_a_preference_changes_training_text_alone(make_collection) -> None:
    text = make_collection([[50] * 20], vocab_size=300)
    held_out = type(text)(text.documents, text.vocabulary_size, text.special, "dev")
    plain = objective_of(MaskedSettings(kind="subword")).examples(held_out, 64).batch(0, 0, range(5))
    settings = MaskedSettings(kind="subword", preference=TokenPreference(by="loss"))
    found = objective_of(settings).examples(held_out, 64).batch(0, 0, range(5))
    assert {name: values.tolist() for name, values in plain.items()} == {
        name: values.tolist() for name, values in found.items()
    }
    assert SpecialIds.of(text.special).mask == 4

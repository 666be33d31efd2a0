"""An ensemble averages its members' probabilities, checked by hand, in every evaluation that reads logits."""

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import hatchery
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.asked_model import AskedModel
from hatchery.evaluation.ensembles import ensemble_of
from hatchery.evaluation.filled_sentences import filled
from hatchery.evaluation.opening import open_model
from hatchery.evaluation.pretrained import ModelOfUser, OurModel
from hatchery.evaluation.runtime import load_pretrained
from hatchery.modeling.mean_probabilities import mean_probabilities
from hatchery.modeling.store import save_model
from hatchery.tokenization.special_tokens import UNLABELLED

SENTENCES = ["The old dogs sleep .", "She likes a cat ."]
OBJECTIVES = {False: {"task": "masked"}, True: {"task": "causal"}}


@pytest.fixture(scope="module", params=[False, True], ids=["masked", "causal"])
def members(request: pytest.FixtureRequest, make_model_manifest: Callable[..., Path]) -> tuple[bool, list[Path]]:
    """Return whether the models are causal, and three folders with models of different weights."""
    causal: bool = request.param
    first = make_model_manifest(causal=causal, objective=OBJECTIVES[causal]).parent
    folders = []
    for number in range(3):
        folder = first.parent / f"{first.name}_{number}"
        folder.mkdir()
        network, _ = load_pretrained(first / "manifest.json")
        generator = torch.Generator().manual_seed(number)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
        shutil.copy(first / "tokenizer.json", folder)
        settings = {"stage": "pretrain", "stage_version": 1, "objective": OBJECTIVES[causal]}
        with stage_run(folder / "manifest.json", settings) as run:
            for path in [*save_model(folder, network), folder / "tokenizer.json"]:
                run.add_output(path)
        folders.append(folder)
    return causal, folders


def by_hand(folders: list[Path], sentence: str, causal: bool) -> float:
    """Return the score of a sentence: logarithms of mean probabilities, one token at a time."""
    models = [load_pretrained(folder / "manifest.json") for folder in folders]
    tokenizer, total = models[0][1], 0.0
    (tokens,) = tokenizer.encode_sentences([sentence])
    for place, token in enumerate(tokens):
        ids = [tokenizer.cls_id, *tokens, *([] if causal else tokenizer.end_ids)]
        if causal:
            ids, asked = ids[: place + 1], place
        else:
            ids[place + 1], asked = tokenizer.mask_id, place + 1
        with torch.no_grad():
            found = [
                network.eval().logits_at(network.encoder(torch.tensor([ids]), causal=causal)[-1][0, asked])
                for network, _ in models
            ]
        total += math.log(np.mean([float(logits.double().softmax(-1)[token]) for logits in found]))
    return total


def test_sentences_have_the_scores_of_mean_probabilities(members: tuple[bool, list[Path]]) -> None:
    causal, folders = members
    found = hatchery.model(folders).scores(SENTENCES)["score"].to_list()
    assert found == pytest.approx([by_hand(folders, sentence, causal) for sentence in SENTENCES], rel=1e-5)
    one = hatchery.model(folders[0]).scores(SENTENCES)["score"].to_list()
    assert found != pytest.approx(one, rel=1e-3)
    assert hatchery.model([folders[0]] * 2).scores(SENTENCES)["score"].to_list() == pytest.approx(one, rel=1e-5)


def test_the_page_shows_gaps_of_a_masked_ensemble_and_nothing_of_a_causal_one(members: tuple[bool, list[Path]]) -> None:
    causal, folders = members
    found = filled(AskedModel(open_model(folders)), SENTENCES)
    assert found.task == ("continue" if causal else "fill") and bool(found.examples) is not causal


def test_pairs_and_held_out_text_are_asked_of_an_ensemble(members: tuple[bool, list[Path]]) -> None:
    causal, folders = members
    pairs = [(SENTENCES[0], SENTENCES[1]), (SENTENCES[1], SENTENCES[0])]
    result = hatchery.evaluate(folders, pairs, device="cpu")
    assert result.model == " + ".join(map(str, folders))
    opened = open_model(folders)
    assert isinstance(opened, ModelOfUser) and opened.objective is not None
    # The loss of a padded batch, as perplexity computes it. Masked models also read from left to right here.
    asked = opened.asked(torch.device("cpu"))
    (ids,) = opened.tokenizer.encode_sentences([SENTENCES[0]])
    inputs = torch.tensor([[opened.tokenizer.cls_id, *ids, 3, 3]] * 2)
    labels = inputs.roll(-1, 1)
    labels[:, -3:] = UNLABELLED
    batch = {"input_ids": inputs, "labels": labels, "causal": torch.tensor([True, causal])}
    batch["attention_mask"] = torch.arange(inputs.shape[1]).expand(inputs.shape) < inputs.shape[1] - 2
    with torch.inference_mode():
        parts = list(asked.labelled_logits(batch))
    expected = [
        torch.log_softmax(member.network.eval()(**batch).logits.double(), dim=-1)
        for member in (open_model(folder) for folder in folders)
        if isinstance(member, OurModel)
    ]
    mean = torch.stack(expected).exp().mean(dim=0)
    loss = -mean[torch.arange(len(mean)), labels[labels != UNLABELLED]].log()
    found = torch.cat([F.cross_entropy(logits, wanted, reduction="none") for logits, wanted in parts])
    torch.testing.assert_close(found.double(), loss.detach(), rtol=1e-5, atol=1e-6)


def test_probabilities_are_averaged_and_not_their_logarithms() -> None:
    first, second = torch.tensor([[0.9, 0.1]]).log(), torch.tensor([[0.3, 0.7]]).log() + 5
    assert mean_probabilities([first, second]).exp().tolist() == [pytest.approx([0.6, 0.4])]
    # A member whose vocabulary lacks the last row gives this row probability 0.
    assert mean_probabilities([first, torch.zeros(1, 3)]).exp().tolist() == [
        pytest.approx([(0.9 + 1 / 3) / 2, (0.1 + 1 / 3) / 2, 1 / 6])
    ]


def test_members_of_different_masks_have_no_common_objective(make_model_manifest: Callable[..., Path]) -> None:
    one, other = (
        make_model_manifest(objective={"task": "masked", "kind": kind}).parent for kind in ("subword", "span")
    )
    assert [open_model([one, second]).objective is None for second in (one, other)] == [False, True]
    # A member's masks may be unknown (an exported model); the ensemble then has no objective.
    known = open_model(one)
    assert isinstance(known, OurModel) and known.objective is not None
    unknown = replace(known, objective=None)
    assert ensemble_of([known, known]).objective == known.objective
    assert ensemble_of([known, unknown]).objective is ensemble_of([unknown, known]).objective is None


def test_what_makes_no_ensemble_is_refused(
    members: tuple[bool, list[Path]], make_model_manifest: Callable[..., Path]
) -> None:
    causal, folders = members
    with pytest.raises(ConfigError, match="model: got an ensemble of 1, expected at least two models"):
        open_model(folders[:1])
    other = make_model_manifest(causal=not causal, objective=OBJECTIVES[not causal]).parent
    with pytest.raises(ConfigError, match="expected one objective for all members"):
        open_model([folders[0], other])
    one, two = (open_model(folder) for folder in folders[:2])
    assert isinstance(one, OurModel) and isinstance(two, OurModel)
    backend = SimpleNamespace(get_vocab=lambda: {**one.tokenizer.backend.get_vocab(), "more": 999})
    with pytest.raises(ConfigError, match="the tokenizer differs from the tokenizer of"):
        ensemble_of([one, replace(two, tokenizer=SimpleNamespace(backend=backend, vocabulary_size=9))])  # type: ignore[arg-type]
    with pytest.raises(EvaluationError, match="hidden"):
        open_model(folders).encoder()

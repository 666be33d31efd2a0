"""An ensemble predicts its members' mean probabilities, works without their files, and sums their words."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hatchery
from hatchery.analysis.pretrained_run import pretrained_run
from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.opening import open_model
from hatchery.modeling.store import load_language_model
from hatchery.training import ensemble

Train = Callable[..., Manifest]
SENTENCE = "The old dogs sleep ."


def probabilities_by_hand(made: Manifest, ids: list[int], place: int) -> np.ndarray:
    """Return the probabilities at one position, computed with the network alone."""
    network = load_language_model(made.folder).eval()
    with torch.no_grad():
        states = network.encoder(torch.tensor([ids]))[-1][0, place]
        return network.logits_at(states).double().softmax(-1).numpy()


def test_an_ensemble_predicts_the_mean_of_its_members_and_stays_without_them(train_here: Train) -> None:
    members = [train_here(f"member_{seed}", steps=3, seed=seed) for seed in (1, 2)]
    start = {"take": "weights"}
    members.append(train_here("member_3", steps=2, seed=3, initial=members[1].path, initialise_from=start))
    chosen: dict[str, Any] = {"steps": 0, "ensemble": True, "members": [made.path for made in members]}
    joined = train_here("joined", **chosen)
    assert [joined.inputs[name] for name in ("member", "member_2", "member_3")] == [made.digest for made in members]
    # The third member also counts the words of the second, because it started from the second member's weights.
    first, second, third = (made.measures["words"] for made in members)
    assert joined.measures["words"] == first + second + (second + third)
    assert joined.measures["parameters"] == 3 * members[0].measures["parameters"]
    facts, alone = pretrained_run(joined).facts, [pretrained_run(made).facts for made in members]
    assert facts["words"] == joined.measures["words"] and facts["steps"] == 0
    assert facts["seconds"] == pytest.approx(sum(of["seconds"] for of in alone))

    tokenizer = open_model(members[0].folder).tokenizer  # type: ignore[union-attr]
    (tokens,) = tokenizer.encode_sentences([SENTENCE])
    expected = 0.0
    for place, token in enumerate(tokens, 1):
        ids = [tokenizer.cls_id, *tokens, *tokenizer.end_ids]
        ids[place] = tokenizer.mask_id
        expected += np.log(np.mean([probabilities_by_hand(made, ids, place)[token] for made in members]))
    one = hatchery.model(members[0].folder).scores([SENTENCE])["score"][0]
    for made in members:
        shutil.rmtree(made.folder)
    found = hatchery.model(joined.folder).scores([SENTENCE])["score"][0]
    assert found == pytest.approx(expected, rel=1e-5) and found != pytest.approx(one, rel=1e-6)
    with pytest.raises(EvaluationError, match="hidden_states"):
        open_model(joined.folder).encoder()


def test_an_ensemble_of_ensembles_and_one_of_another_vocabulary_are_refused(train_here: Train) -> None:
    members = [train_here(f"member_{seed}", steps=0, seed=seed).path for seed in (1, 2)]
    joined = train_here("joined", steps=0, ensemble=True, members=members).path
    with pytest.raises(ConfigError, match="this model is an ensemble, expected a single model; name the members"):
        train_here("nested", steps=0, ensemble=True, members=[joined, members[0]])
    with pytest.raises(ConfigError, match="this model is an ensemble"):
        train_here("taught", steps=2, teachers=[joined], distillation={"weight": 0.5})
    with pytest.raises(ConfigError, match="members: got 1, expected at least two members with the setting `ensemble`"):
        train_here("single", steps=0, ensemble=True, members=members[:1])
    with pytest.raises(
        ConfigError,
        match="members: got 2, expected at least two members with the setting `ensemble`, or no members without",
    ):
        train_here("unasked", steps=0, members=members)
    assert read_manifest(joined).settings["ensemble"] is True


def test_words_of_a_member_that_continues_a_model_with_unknown_words_are_unknown(tmp_path: Path) -> None:
    for name, measures, words in (
        ("alone", {"words": 50}, 50),
        ("continued", {"words": 50, "words_seen": 150, "initial_model": {}}, 150),
        ("unknown", {"words": 50, "initial_model": {}}, None),
    ):
        with stage_run(tmp_path / name / "manifest.json", {"stage": "pretrain"}) as run:
            run.measures |= measures
        assert ensemble._facts(read_manifest(tmp_path / name / "manifest.json"), "words") == words


@pytest.mark.parametrize(("words", "expected"), [((50, 70), 120), ((50, None), None)])
def test_words_of_an_ensemble_are_unknown_if_those_of_a_member_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[int | None, ...], expected: int | None
) -> None:
    # The members have 1 and 2 weights.
    networks = iter([torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(2, 1, bias=False)])
    monkeypatch.setattr(ensemble, "load_language_model", lambda folder: next(networks))
    monkeypatch.setattr(ensemble, "save_model", lambda folder, network: [])
    members = [tmp_path / str(number) / "manifest.json" for number in range(2)]
    for path, count in zip(members, words, strict=True):
        with stage_run(path, {"stage": "pretrain"}) as run:
            run.measures |= {} if count is None else {"words": count}
    with stage_run(tmp_path / "joined" / "manifest.json", {"stage": "pretrain"}) as run:
        run.measures["words"] = None
        ensemble.save_members(run, tmp_path / "joined", members)
        assert (run.measures["words"], run.measures["parameters"], run.measures["members"]) == (expected, 3, 2)

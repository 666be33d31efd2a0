"""Evaluations frame and mask their inputs with the tokenizer's special tokens, here RoBERTa's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from hatchery.artifacts.manifests import stage_run
from hatchery.evaluation.finetuning.encoding import encode_texts
from hatchery.evaluation.minimal_pairs.items import minimal_pair
from hatchery.evaluation.minimal_pairs.score_suite import candidate_scores
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel
from hatchery.evaluation.runtime import load_pretrained
from hatchery.evaluation.tasks.example import Example
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import save_model
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.tokenizer_file import Tokenizer

CLS, PAD, SEP, UNKNOWN, MASK = range(5)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def pretrained(
    tmp_path_factory: pytest.TempPathFactory, small_model: Callable[[int], LanguageModel]
) -> tuple[LanguageModel, Tokenizer]:
    """Write a small model with RoBERTa's special tokens as pretraining writes it, and load it."""
    folder: Path = tmp_path_factory.mktemp("roberta")
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=list(SPECIAL_SETS["roberta"].order),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(["the old dogs sleep", "a cat chases dogs"] * 9, trainer)
    with stage_run(folder / "manifest.json", {"stage": "pretrain"}) as run:
        backend.save(str(run.add_output(folder / "tokenizer.json")))
        for path in save_model(folder, small_model(backend.get_vocab_size())):
            run.add_output(path)
    return load_pretrained(folder / "manifest.json")


def test_inputs_of_a_classifier_are_framed_with_the_ids_of_the_tokenizer(
    pretrained: tuple[LanguageModel, Tokenizer],
) -> None:
    _, tokenizer = pretrained
    first, second = tokenizer.encode_sentences(["the old dogs", "<mask> sleeps"])
    assert min(second) >= tokenizer.n_special, "letters of a special token are letters"
    examples = [Example((("the old dogs", "<mask> sleeps"),), 0), Example((("the old dogs",),), 1)]
    encoded = encode_texts(examples, tokenizer, max_length=64)
    ids = encoded.batch(np.array([0])).inputs["input_ids"][0]
    assert ids.tolist() == [CLS, *first, SEP, SEP, *second, SEP]
    assert encoded.truncated == 0
    shortened = encode_texts(examples, tokenizer, max_length=8)
    assert shortened.lengths.tolist() == [8, min(8, len(first) + 2)]
    assert shortened.batch(np.array([0])).inputs["input_ids"][0].tolist().count(SEP) == 3


def test_sentences_are_framed_and_masked_with_the_ids_of_the_tokenizer(
    pretrained: tuple[LanguageModel, Tokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = pretrained
    seen: list[torch.Tensor] = []
    hidden_at = model.encoder.hidden_at

    def remembered(input_ids: torch.Tensor, *rest: Any, **options: Any) -> torch.Tensor:
        seen.append(input_ids.clone())
        return hidden_at(input_ids, *rest, **options)

    monkeypatch.setattr(model.encoder, "hidden_at", remembered)
    pairs = [minimal_pair("agreement", "agreement", "0", "the dogs sleep", "the dogs sleeps")]
    scored = candidate_scores(pairs, HatcheryModel(model, tokenizer, CPU), "auto", 512)
    assert scored.scores.shape == (1, 2)
    assert scored.rows == scored.tokens.sum() == sum(len(batch) for batch in seen)
    for batch in seen:
        assert (batch[:, 0] == CLS).all() and (batch[:, -1] == SEP).all()
        assert ((batch == MASK).sum(dim=1) == 1).all()
        assert (batch[:, 1:-1] >= MASK).all()

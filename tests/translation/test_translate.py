"""From text to text: what the search is given of a sentence."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.translation.settings import SearchSettings
from hatchery.translation.translate import Hypothesis, translate

SENTENCES = ["the old dogs near the house sleep", "a cat", "she likes old houses"]


@pytest.mark.parametrize("longest", [4, 6, 100])
def test_a_source_has_at_most_so_many_tokens_with_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    joint = {"kind": "bpe", "vocabulary_size": 40, "special_tokens": "roberta", "pre_tokenizer": "metaspace"}
    train(iter(SENTENCES * 5), TokenizerSettings(**joint)).save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path / "tokenizer.json")
    read: list[list[int]] = []

    def search(model: Any, ids: Tensor, mask: Tensor, *_: Any) -> list[list[Hypothesis]]:
        read.extend(row[kept].tolist() for row, kept in zip(ids, mask, strict=True))
        return [[Hypothesis([], 0.0)] for _ in ids]

    monkeypatch.setattr("hatchery.translation.translate.beam_search", search)
    translate(None, tokenizer, SENTENCES, SearchSettings(), longest, torch.device("cpu"))  # type: ignore[arg-type]
    whole = tokenizer.encode_sentences(SENTENCES)
    assert max(map(len, whole)) > 6
    assert sorted(read) == sorted([*ids[: longest - 1], tokenizer.sep_id] for ids in whole)

"""Beam search against exhaustive search, translation of texts, and the pairs of a test set in both directions."""

import itertools
import math
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import Tensor

from hatchery.artifacts.manifests import stage_run
from hatchery.errors import CorpusError
from hatchery.evaluation.translation import read_pairs
from hatchery.evaluation.translation_settings import HeldOutPairs
from hatchery.modeling.encoder_decoder.config import EncoderDecoderConfig
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.language_model import initialise_
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.translation.settings import SearchSettings
from hatchery.translation.translate import Hypothesis, batches_by_length, beam_search, translate

START, PAD, END = 0, 1, 2


def model_of(vocabulary: int, seed: int, normalisation: str = "pre_norm") -> TranslationModel:
    config = EncoderDecoderConfig(
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        vocab_size=vocabulary,
        normalisation=normalisation,  # type: ignore[arg-type]
    )
    model = TranslationModel(config)
    initialise_(model, seed)  # type: ignore[arg-type]
    with torch.no_grad():
        # Peaked predictions, so that beams differ in score.
        model.head.vocabulary_weight.mul_(3)  # type: ignore[union-attr]
    return model.eval()


def sources(vocabulary: int, lengths: list[int], seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.full((len(lengths), max(lengths) + 1), PAD)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(END + 1, vocabulary, (length,), generator=generator)
        ids[row, length] = END
    return ids, ids != PAD


def log_probability(model: TranslationModel, source: Tensor, target: list[int]) -> float:
    """Return the log-probability of a translation with its end token, from one pass without a cache."""
    reads = torch.tensor([[START, *target]])
    with torch.no_grad():
        logits = model.logits_at(model.decode(reads, model.begin(source[None], None)))[0]
    steps = logits.log_softmax(dim=-1)
    return float(sum(steps[position, token] for position, token in enumerate([*target, END])))


def plain_beam_search(
    model: TranslationModel, source: Tensor, beam: int, longest: int, tokens: list[int]
) -> Hypothesis:
    """Search the best translation of one sentence, without batch, cache and early stopping."""
    open_ones: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[Hypothesis] = []
    for length in range(1, longest + 1):
        candidates = []
        for _, prefix in open_ones:
            finished.append(Hypothesis(prefix, log_probability(model, source, prefix) / length))
            reads = torch.tensor([[START, *prefix]])
            with torch.no_grad():
                logits = model.logits_at(model.decode(reads, model.begin(source[None], None)))[0]
            steps = logits.log_softmax(dim=-1)
            so_far = float(sum(steps[position, token] for position, token in enumerate(prefix)))
            candidates += [(so_far + float(steps[-1, token]), [*prefix, token]) for token in tokens]
        open_ones = sorted(candidates, key=lambda found: -found[0])[:beam]
    return max(finished, key=lambda found: found.score)


@pytest.mark.parametrize("seed", range(4))
def test_a_beam_as_wide_as_the_vocabulary_allows_finds_the_best_of_all_translations(seed: int) -> None:
    model, (ids, mask) = model_of(6, seed), sources(6, [1, 3], seed)
    # Targets have at most two or four tokens including the end, of three words.
    limits = SearchSettings(beam=27, length_factor=1.0, extra_length=1)
    found = beam_search(model, ids, mask, limits)
    for row, length in enumerate((1, 3)):
        source = ids[row, : length + 1]
        every = [list(words) for count in range(length + 1) for words in itertools.product((3, 4, 5), repeat=count)]
        scored = [(log_probability(model, source, words) / (len(words) + 1), words) for words in every]
        score, words = max(scored)
        assert found[row][0].ids == words
        assert found[row][0].score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("normalisation", ["pre_norm", "post_norm"])
def test_a_batch_of_five_beams_equals_a_plain_search_of_each_sentence(normalisation: str) -> None:
    model, lengths = model_of(12, 1, normalisation), [5, 2, 7, 1]
    ids, mask = sources(12, lengths)
    limits = SearchSettings(beam=5, length_factor=1.0, extra_length=2)
    found = beam_search(model, ids, mask, limits)
    for row, length in enumerate(lengths):
        expected = plain_beam_search(model, ids[row, : length + 1], 5, limits.longest(length), list(range(3, 12)))
        assert found[row][0].ids == expected.ids
        assert found[row][0].score == pytest.approx(expected.score, abs=1e-5)


def test_a_search_goes_on_as_long_as_a_longer_translation_may_become_the_best() -> None:
    # First, the end token is more probable than a word, but all later words are certain: log 0.3 / 4 is above log 0.6.
    word, ends = [0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]
    steps = torch.tensor([[0.0, 0.0, 0.6, 0.3, 0.1], word, word, ends]).log()
    model: Any = MagicMock(config=model_of(5, 0).config)
    model.logits_at.side_effect = steps[:, None]
    limits = SearchSettings(beam=1, length_factor=1.0, extra_length=1)
    ((best,),) = beam_search(model, *sources(5, [3]), limits)
    assert best == ([3, 3, 3], pytest.approx(math.log(0.3) / 4))


def test_a_sentence_has_the_same_translation_alone_and_in_any_batch() -> None:
    model, lengths = model_of(12, 2), [4, 9, 2]
    ids, mask = sources(12, lengths)
    together = beam_search(model, ids, mask, SearchSettings())
    for row, length in enumerate(lengths):
        alone = beam_search(
            model, ids[row : row + 1, : length + 1], mask[row : row + 1, : length + 1], SearchSettings()
        )
        assert alone[0][0].ids == together[row][0].ids


def test_forbidden_tokens_are_never_written_and_no_translation_is_longer_than_allowed() -> None:
    model = model_of(12, 3)
    ids, mask = sources(12, [6, 6])
    limits = SearchSettings(beam=4, length_factor=0.5, extra_length=1)
    for hypotheses in beam_search(model, ids, mask, limits, never=(5, 6)):
        assert len(hypotheses) == 4
        for found in hypotheses:
            assert not {START, PAD, END, 5, 6} & set(found.ids)
            assert len(found.ids) + 1 <= limits.longest(6) == 4
    # Half a token of 0.5 * 5 = 2.5 tokens is not allowed, and the end token always is.
    assert limits.longest(5) == 3 and SearchSettings(length_factor=0.5, extra_length=0).longest(1) == 1


SENTENCES = ["the old dogs near the house sleep", "a cat", "she likes old houses"]


@pytest.mark.parametrize("longest", [4, 6, 100])
def test_a_source_has_at_most_so_many_tokens_with_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    joint = {"kind": "bpe", "vocabulary_size": 40, "special_tokens": "roberta", "pre_tokenizer": "metaspace"}
    train(iter(SENTENCES * 5), TokenizerSettings(**joint)).save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path / "tokenizer.json")
    read: list[list[int]] = []

    def search(model: Any, ids: Tensor, mask: Tensor, limits: Any, never: tuple[int, ...]) -> list[list[Hypothesis]]:
        # Start, padding and mask tokens must not be generated; end and unknown tokens may be.
        assert sorted(tokenizer.tokens[index] for index in never) == ["<mask>", "<pad>", "<s>"]
        read.extend(row[kept].tolist() for row, kept in zip(ids, mask, strict=True))
        # The second best translation is empty.
        return [
            [Hypothesis(row[kept].tolist()[:-1], 0.0), Hypothesis([], -1.0)]
            for row, kept in zip(ids, mask, strict=True)
        ]

    monkeypatch.setattr("hatchery.translation.translate.beam_search", search)
    found = translate(None, tokenizer, SENTENCES, SearchSettings(), longest, torch.device("cpu"))  # type: ignore[arg-type]
    # Each sentence gets its own source back, although batches are ordered by length.
    assert all(sentence.startswith(text) for sentence, text in zip(SENTENCES, found, strict=True)) and all(found)
    assert (found == SENTENCES) == (longest == 100)
    whole = tokenizer.encode_sentences(SENTENCES)
    assert max(map(len, whole)) > 6
    assert sorted(read) == sorted([*ids[: longest - 1], tokenizer.sep_id] for ids in whole)


def test_a_batch_has_at_most_its_tokens_with_padding_and_a_longer_row_is_one() -> None:
    # Rows of 2 and 3 tokens need 3 x 2 tokens with padding. Rows of 3, 4 and 4 would need 12, rows of 4 and 4 need 8.
    assert batches_by_length([4, 2, 9, 3, 4], 8) == [[1, 3], [0, 4], [2]]


TEST = HeldOutPairs(corpus="mine")


def corpus_of(folder: Path, splits: dict[str, list[str]]) -> Path:
    output = folder / "manifest.json"
    with stage_run(output, {"stage": "convert_corpus", "stage_version": 1}, {}) as run:
        for split, texts in splits.items():
            names = [f"{split}/{index}" for index in range(len(texts))]
            table = pa.table({"doc_id": names, "source": ["mine"] * len(texts), "text": texts})
            pq.write_table(table, run.add_output(folder / f"{split}-00000-of-00001.parquet"))
    return output


@pytest.mark.parametrize(
    ("direction", "expected"), [("forward", (["Eins", "Zwei"], ["One", "Two"])), ("backward", (["One"], ["Eins"]))]
)
def test_the_direction_says_which_side_is_the_source(
    tmp_path: Path, direction: str, expected: tuple[list[str], list[str]]
) -> None:
    pairs = ["Eins\nOne", "Zwei\nTwo"][: len(expected[0])]
    texts = {"dev": ["Drei\nThree"], "test": pairs, "train": ["Vier\nFour"]}
    assert read_pairs(corpus_of(tmp_path, texts), TEST, direction) == expected


@pytest.mark.parametrize("texts", [["A story.\nWith\n\nparagraphs."], ["Eins\nOne", "alone"], []])
def test_a_corpus_without_pairs_is_refused(tmp_path: Path, texts: list[str]) -> None:
    expected = r"the split 'test' contains no sentence pairs; expected a corpus whose sources have the reader parallel"
    with pytest.raises(CorpusError, match=expected):
        read_pairs(corpus_of(tmp_path, {"test": texts}), TEST, "forward")


def test_a_split_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="has no split 'test'; there are: dev"):
        read_pairs(corpus_of(tmp_path, {"dev": ["Eins\nOne"]}), TEST, "forward")

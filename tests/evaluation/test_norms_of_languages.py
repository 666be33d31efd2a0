"""Ages of acquisition in Dutch and Mandarin: norms in the layout of BabyLM's English files and in other layouts."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from hatchery.errors import EvaluationError
from hatchery.evaluation.opening import open_model
from hatchery.evaluation.surprisal.age_of_acquisition import added_pieces, surprisals_behind
from hatchery.evaluation.surprisal.measure_acquisition import read_norms
from hatchery.evaluation.surprisal.settings import AcquisitionSettings
from hatchery.raw.registration import RawSource, open_source, register_source
from hatchery.typed import keys_of

FILES = ("cdi_human.csv", "cdi_childes.json")


def source(folder: Path, children: str, contexts: dict[str, list[str]]) -> RawSource:
    (folder / "raw").mkdir()
    (folder / "raw" / FILES[0]).write_text(children, encoding="utf-8")
    named = {word: [{"context": context} for context in own] for word, own in contexts.items()}
    (folder / "raw" / FILES[1]).write_text(json.dumps(named, ensure_ascii=False), encoding="utf-8")
    register_source("norms", folder / "raw", folder / "norms.json")
    return open_source(folder / "norms.json")


def test_words_of_one_character_are_words_of_mandarin(tmp_path: Path) -> None:
    norms = source(tmp_path, "word,16,17\n猫,0.1,0.5\n妈妈,0.4,0.9\n", {"猫": ["我看见"], "妈妈": ["这是"]})
    mandarin = read_norms(norms, AcquisitionSettings(spaces=False), *FILES)
    assert mandarin == ({"猫": {16: 0.1, 17: 0.5}, "妈妈": {16: 0.4, 17: 0.9}}, {"猫": ["我看见"], "妈妈": ["这是"]})
    assert list(read_norms(norms, AcquisitionSettings(), *FILES)[1]) == ["妈妈"]


@pytest.mark.parametrize(
    ("children", "contexts", "message"),
    [
        (
            "word,16,17\npoes,0.1,0.5\nhond,0.1,0.2\n",
            {"cat": ["the"]},
            "cdi_human.csv: none of the 2 words in this file has a context in cdi_childes.json, expected equal "
            "spellings: the files begin with 'poes' and 'cat'",
        ),
    ],
)
def test_norms_of_another_layout_are_one_message(
    tmp_path: Path, children: str, contexts: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(EvaluationError) as caught:
        read_norms(source(tmp_path, children, contexts), AcquisitionSettings(), *FILES)
    assert message in str(caught.value)


def test_pieces_of_a_word_are_counted_without_a_space_where_there_is_none() -> None:
    alphabet = {letter: index for index, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    backend = Tokenizer(models.BPE(alphabet, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    # Pieces are the word's bytes, and the byte of the space before the word.
    assert [added_pieces(backend, "猫", spaces) for spaces in (False, True)] == [3, 4]
    assert [added_pieces(backend, "poes", spaces) for spaces in (False, True)] == [4, 5]
    # A word that the tokenizer merges with the text before it counts as one piece.
    joined = SimpleNamespace(encode=lambda text, add_special_tokens: SimpleNamespace(ids=[7]))
    assert added_pieces(joined, "poes") == 1


@pytest.mark.parametrize(("spaces", "text"), [(False, "我看见猫"), (True, "我看见 猫")])
def test_a_word_is_joined_to_its_context_without_a_space_where_there_is_none(spaces: bool, text: str) -> None:
    """The expected surprisal is the sum over the word's bytes, from the logits of the library transformers."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    alphabet = {"<s>": 0} | {letter: index for index, letter in enumerate(letters, start=1)}
    backend = Tokenizer(models.BPE(alphabet, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="<s>")
    torch.manual_seed(3)
    config = transformers.GPT2Config(
        vocab_size=257, n_embd=32, n_layer=2, n_head=2, n_positions=64, bos_token_id=0, eos_token_id=0
    )
    network = transformers.GPT2LMHeadModel(config).eval()
    model = open_model(network, tokenizer).asked(torch.device("cpu"), "auto", template=True)
    (found,) = surprisals_behind(model, [("我看见", "猫")], "auto", None, spaces)
    before, ids = backend.encode("我看见").ids, backend.encode(text).ids
    with torch.no_grad():
        # The tokenizer has no template, so no token precedes the text.
        log_probabilities = network(torch.tensor([ids])).logits[0, :-1].log_softmax(-1)
    each = log_probabilities[range(len(ids) - 1), ids[1:]]
    # Only the word's three bytes count; the space before the word belongs to the context.
    assert ids[: len(before)] == before and len(ids) - len(before) == 3 + spaces
    assert found == pytest.approx(-float(each[-3:].sum()), abs=1e-4)


def test_settings_leave_the_key_out_at_its_default() -> None:
    assert "spaces" not in keys_of(AcquisitionSettings())
    assert keys_of(AcquisitionSettings(spaces=False))["spaces"] is False

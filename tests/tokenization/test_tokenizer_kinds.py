"""Every kind of tokenizer of the papers, loaded by our reader: word starts, round trips, encoding into shards."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.runner import run_stage
from hatchery.tokenization.encoder import WordStarts
from hatchery.tokenization.special_tokens import SPECIAL_SETS, TEXT_MARKERS
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.token_shards import TokenShards
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer

LINES = ["the old dogs don't see 12 cats.", "a cat's cats, dogs and (old) houses", "do dogs do it? they can't 19"] * 9
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,?!()[]{}#@'\"<>_-ABCDEFGHIJKLMNOPQRSTUVWXYZé"


def prefix_wordpiece(pre_tokenizer: pre_tokenizers.PreTokenizer | None = None) -> Backend:
    """A WordPiece as for the BNC: `@@` inside pre-tokens, no decoder, no post-processor; only known characters."""
    words = ["the", "old", "dog", "@@s", "do", "n't", "'s", "cat", "they"]
    entries = [*SPECIAL_SETS["bnc"].order, *LETTERS, *(f"@@{letter}" for letter in LETTERS), *words]
    model = models.WordPiece(
        {entry: index for index, entry in enumerate(dict.fromkeys(entries))},
        unk_token="[UNK]",
        continuing_subword_prefix="@@",
        max_input_chars_per_word=100,
    )
    backend = Backend(model)
    isolated = pre_tokenizers.Split(Regex(r"n't(?!\w)|'s(?!\w)|\.+|#+|\d|[^\w\s]"), "isolated")
    backend.pre_tokenizer = pre_tokenizer or pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), isolated])
    backend.normalizer = normalizers.NFC()
    return backend


def byte_bpe(special: str, prefix_space: bool) -> Backend:
    backend = Backend(models.BPE(unk_token=None))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=list(SPECIAL_SETS[special].order),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(LINES, trainer)
    return backend


def roberta_bpe() -> Backend:
    """A BPE as in the reduced-vocabulary study: byte-level without a prefix space, framed by <s> and </s>."""
    backend = byte_bpe("roberta", prefix_space=False)
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return backend


def unigram() -> Backend:
    """A Unigram as SentencePiece's: `▁` replaces spaces and is inserted at the beginning."""
    backend = Backend(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120,
        special_tokens=list(SPECIAL_SETS["babylm"].order),
        unk_token="[UNK]",
        initial_alphabet=sorted(LETTERS),
        show_progress=False,
    )
    backend.train_from_iterator(LINES, trainer)
    return backend


MAKERS: dict[str, Callable[[], Backend]] = {
    "prefix_wordpiece": prefix_wordpiece,
    "prefix_on_white_space": lambda: prefix_wordpiece(pre_tokenizers.WhitespaceSplit()),
    "byte_bpe": lambda: byte_bpe("babylm", prefix_space=True),
    "bare_byte_bpe": lambda: byte_bpe("babylm", prefix_space=False),
    "roberta_bpe": roberta_bpe,
    "unigram": unigram,
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("kinds")
    for name, make in MAKERS.items():
        backend = make()
        # The library's models that are made from a vocabulary do not have special tokens yet.
        special = next(s for s in SPECIAL_SETS.values() if all(backend.token_to_id(t) == i for t, i in s.ids.items()))
        backend.add_special_tokens(list(special.order))
        backend.save(str(folder / f"{name}.json"))
    return {name: folder / f"{name}.json" for name in MAKERS}


@pytest.fixture(scope="module")
def kinds(paths: dict[str, Path]) -> dict[str, Tokenizer]:
    return {name: load_tokenizer(path) for name, path in paths.items()}


def spelled(tokenizer: Tokenizer, text: str) -> list[str]:
    (ids,) = tokenizer.encode_sentences([text])
    return [tokenizer.tokens[index] for index in ids]


def word_groups(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the tokens of each word, joined by a bar."""
    (ids,) = tokenizer.encode_sentences([text])
    starts = WordStarts(tokenizer)(np.array(ids), np.array([0]), [text])
    parts = np.split(np.array(ids), np.flatnonzero(starts)[1:])
    return ["|".join(tokenizer.tokens[index] for index in part) for part in parts]


@pytest.mark.parametrize(
    ("kind", "special", "ids"),
    [
        ("prefix_wordpiece", "bnc", [0, 1, 2, 3, 4, 5, None]),
        ("byte_bpe", "babylm", [0, 1, 2, 3, 4, 5, 6]),
        ("roberta_bpe", "roberta", [3, 0, 2, 1, 4, None, None]),
        ("unigram", "babylm", [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_ids_by_role_are_those_of_the_set_in_the_file(
    kinds: dict[str, Tokenizer], kind: str, special: str, ids: list[int | None]
) -> None:
    tokenizer = kinds[kind]
    assert tokenizer.special is SPECIAL_SETS[special]
    assert tokenizer.n_special == len(SPECIAL_SETS[special].order)
    names = ("unknown_id", "cls_id", "sep_id", "pad_id", "mask_id", "par_id", "tab_id")
    assert [getattr(tokenizer, name) for name in names] == ids
    assert tokenizer.tokens[: tokenizer.n_special] == list(SPECIAL_SETS[special].order)


def test_with_a_continuation_prefix_every_pre_token_is_a_word(kinds: dict[str, Tokenizer]) -> None:
    assert word_groups(kinds["prefix_wordpiece"], "the dogs don't see 12.") == [
        *("the", "dog|@@s", "do", "n't", "s|@@e|@@e", "1", "2", ".")
    ]
    assert word_groups(kinds["prefix_wordpiece"], "the ж[UNK] cat") == ["the", "[UNK]", "[UNK]", "cat"]


@pytest.mark.parametrize("kind", ["byte_bpe", "bare_byte_bpe", "roberta_bpe", "unigram"])
def test_with_marked_spaces_words_stand_between_white_space(kinds: dict[str, Tokenizer], kind: str) -> None:
    groups = word_groups(kinds[kind], "the  dogs don't see12 12.")
    joined = [re.sub("[|Ġ▁]", "", group) for group in groups]
    assert joined == ["the", "dogs", "don't", "see12", "12."]


@pytest.mark.parametrize("kind", ["byte_bpe", "bare_byte_bpe", "unigram"])
def test_a_spelled_out_special_token_ends_the_word_before_and_begins_another_behind(
    kinds: dict[str, Tokenizer], kind: str
) -> None:
    groups = [re.sub("[|Ġ▁]", "", group) for group in word_groups(kinds[kind], "[TAB]the dogs[PAR]do it")]
    assert groups == ["[TAB]", "the", "dogs", "[PAR]", "do", "it"]


def test_unknown_text_inside_a_word_does_not_begin_one(kinds: dict[str, Tokenizer]) -> None:
    groups = word_groups(kinds["unigram"], "the doжs жs ж [UNK]a")
    assert [re.sub("[|▁]", "", group) for group in groups] == ["the", "do[UNK]s", "[UNK]s", "[UNK]", "[UNK]", "a"]


def known_text(**options: Any) -> st.SearchStrategy[str]:
    return st.text(st.sampled_from(LETTERS + "   "), **options)


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
@example(" a")
@example("<mask>")
def test_byte_level_without_a_prefix_space_comes_back_exactly(paths: dict[str, Path], text: str) -> None:
    for kind in ("bare_byte_bpe", "roberta_bpe"):
        tokenizer = load_tokenizer(paths[kind], recognise=())
        (ids,) = tokenizer.encode_sentences([text])
        assert all(index >= tokenizer.n_special for index in ids)
        assert tokenizer.decode(ids) == text


@given(text=known_text(max_size=40).map(str.lstrip))
def test_metaspace_text_without_unknown_characters_comes_back(paths: dict[str, Path], text: str) -> None:
    tokenizer = load_tokenizer(paths["unigram"], recognise=())
    (ids,) = tokenizer.encode_sentences([text])
    assert all(index >= tokenizer.n_special for index in ids)
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", ["prefix_wordpiece", "prefix_on_white_space"])
@given(text=known_text(max_size=40))
def test_pre_tokens_come_back_from_a_continuation_prefix(paths: dict[str, Path], kind: str, text: str) -> None:
    tokenizer = load_tokenizer(paths[kind], recognise=())

    def pre_tokens(of: str) -> list[str]:
        assert tokenizer.backend.pre_tokenizer is not None
        return [piece for piece, _ in tokenizer.backend.pre_tokenizer.pre_tokenize_str(of)]

    # A pre-token that begins with the prefix cannot be distinguished from a continuation.
    assume(not any(piece.startswith("@@") for piece in pre_tokens(text)))
    (ids,) = tokenizer.encode_sentences([text])
    assert all(index >= tokenizer.n_special for index in ids)
    assert pre_tokens(tokenizer.decode(ids)) == pre_tokens(text)
    starts = WordStarts(tokenizer)(np.array(ids, dtype=int), np.zeros(min(len(ids), 1), dtype=int), [text])
    assert starts.sum() == len(pre_tokens(text))


@pytest.mark.parametrize("kind", list(MAKERS))
def test_no_text_can_spell_a_token_that_is_not_recognised(paths: dict[str, Path], kind: str) -> None:
    tokenizer = load_tokenizer(paths[kind], recognise=TEXT_MARKERS)
    marked = {tokenizer.special.ids[name] for name in TEXT_MARKERS if name in tokenizer.special.ids}
    text = " ".join(tokenizer.special.order) + " ".join(f" [{name}]" for name in "abc") + "[MASK]x<mask>"
    (ids,) = tokenizer.encode_sentences([text])
    assert {index for index in ids if index < tokenizer.n_special} == marked


@pytest.mark.parametrize("kind", list(MAKERS))
def test_the_letters_of_hidden_special_tokens_do_not_change_what_ordinary_text_becomes(
    paths: dict[str, Path], kinds: dict[str, Tokenizer], kind: str
) -> None:
    careful = load_tokenizer(paths[kind], recognise=())
    assert careful.encode_sentences(LINES) == kinds[kind].encode_sentences(LINES)
    assert careful.tokens == kinds[kind].tokens


def encode(small: Any, tokenizer: Path, text: str, folder: Path) -> Path:
    with stage_run(folder / "tokenizer" / "manifest.json", {"stage": "train_tokenizer"}) as run:
        run.add_output(folder / "tokenizer" / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    corpus = small.write_corpus(folder / "corpus", {"train": [text]})
    run_stage(
        encode_corpus,
        {},
        folder / "out" / "manifest.json",
        corpus=corpus,
        tokenizer=folder / "tokenizer" / "manifest.json",
    )
    return folder / "out" / "manifest.json"


@pytest.mark.parametrize(
    ("kind", "expected", "words"),
    [
        ("prefix_wordpiece", "the dog@@s [UNK].[PAR]do[T@@A@@B][PAR]", 8),
        ("bare_byte_bpe", "theĠdogsĠ[UNK].[PAR]do[TAB][PAR]", 5),
        ("roberta_bpe", "theĠdogsĠ[UNK].do[TAB]", 4),
        ("unigram", "▁the▁dogs▁[UNK]▁.[PAR]▁do[TAB][PAR]", 5),
    ],
)
def test_paragraphs_and_markers_are_encoded_where_the_set_has_them(
    small: Any, paths: dict[str, Path], tmp_path: Path, kind: str, expected: str, words: int
) -> None:
    manifest = encode(small, paths[kind], "the dogs [UNK].\n\ndo[TAB]", tmp_path)
    shards = TokenShards.open(manifest, "train")
    tokenizer = load_tokenizer(paths[kind])
    document = shards.document(0)
    assert "".join(tokenizer.tokens[index] for index in document.ids) == expected.replace(" ", "")
    assert shards.special is tokenizer.special
    recorded = read_manifest(manifest).measures
    assert recorded["special_tokens"]["order"] == list(tokenizer.special.order)
    assert recorded["special_tokens"]["pad"] == tokenizer.pad_id
    assert recorded["special_tokens"]["paragraph"] == tokenizer.par_id
    counts = recorded["splits"]["train"]
    assert counts["words"] == words
    assert counts["unknown"] == int((document.ids == tokenizer.unknown_id).sum())
    assert counts["unknown_rate"] == round(counts["unknown"] / counts["subwords"], 6)


def test_a_published_file_without_a_decoder_still_gives_text(
    paths: dict[str, Path], kinds: dict[str, Tokenizer]
) -> None:
    assert json.loads(paths["prefix_wordpiece"].read_text("utf-8"))["decoder"] is None
    (ids,) = kinds["prefix_wordpiece"].encode_sentences(["The dogs can't."])
    assert kinds["prefix_wordpiece"].decode(ids) == "The dogs ca n't ."

import json
import os
import string
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import TokenizationError
from hatchery.runner import run_stage
from hatchery.tokenization.documents import ANY_SPECIAL_TOKEN
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.tokenization.token_shards import TokenShards
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer, use_threads
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings

texts = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: not ANY_SPECIAL_TOKEN.search(text))


@pytest.fixture
def published(golden_directory: Path) -> Path:
    return golden_directory / "tokenizers/ltg_bert_babylm_10m.json"


@pytest.fixture
def definition(tokenizer_manifests: dict[str, Path]) -> dict[str, Any]:
    return json.loads((tokenizer_manifests["wordpiece"].parent / "tokenizer.json").read_text("utf-8"))


def save(definition: dict[str, Any], folder: Path) -> Path:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(definition), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe"])
@given(text=texts)
@example("Straßenbahnhaltestelle " + "漢字" * 100)
def test_any_text_is_known_and_comes_back_with_its_prefix_space(
    tokenizers: dict[str, Tokenizer], kind: str, text: str
) -> None:
    tokenizer = tokenizers[kind]
    (ids,) = tokenizer.encode_sentences([text])
    assert tokenizer.unknown_id not in ids
    assert tokenizer.decode(ids) == (text if text.startswith(" ") or not text else " " + text)


def test_an_observed_alphabet_loses_what_the_corpus_lacked(tokenizers: dict[str, Tokenizer]) -> None:
    assert tokenizers["observed"].unknown_id in tokenizers["observed"].encode_sentences(["ж"])[0]
    assert tokenizers["wordpiece"].unknown_id not in tokenizers["wordpiece"].encode_sentences(["ж"])[0]


def test_digits_are_single_tokens_unless_they_are_left_together(tokenizers: dict[str, Tokenizer]) -> None:
    def pieces(kind: str) -> list[str]:
        return [tokenizers[kind].tokens[index] for index in tokenizers[kind].encode_sentences(["1984"])[0]]

    assert pieces("wordpiece") == ["Ġ", "1", "9", "8", "4"]
    assert pieces("byte_bpe") == ["Ġ1984"]


def test_a_pair_is_framed_by_cls_and_sep_in_transformers(tokenizer_manifests: dict[str, Path]) -> None:
    transformers = pytest.importorskip("transformers")
    path = tokenizer_manifests["wordpiece"].parent / "tokenizer.json"
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))
    ours = load_tokenizer(path)
    first, second = ours.encode_sentences(["bati ko", "selmar"])
    encoded = fast("bati ko", "selmar", return_token_type_ids=True)
    assert encoded["input_ids"] == [ours.cls_id, *first, ours.sep_id, *second, ours.sep_id]
    assert encoded["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert fast("bati ko")["input_ids"] == [ours.cls_id, *first, ours.sep_id]


def test_the_published_tokenizer_gives_the_ids_measured_on_the_authors_model(
    published: Path, golden_directory: Path
) -> None:
    tokenizer = load_tokenizer(published)
    assert tokenizer.vocabulary_size == 4096
    records = [json.loads(line) for line in (golden_directory / "blimp/pll_vocab4096.jsonl").open(encoding="utf-8")]
    assert len(records) == 20
    for quality in ("good", "bad"):
        ids = tokenizer.encode_sentences([record[f"sentence_{quality}"] for record in records])
        assert ids == [record[f"ids_{quality}"] for record in records]
        assert [[tokenizer.tokens[index] for index in row] for row in ids] == [r[f"tokens_{quality}"] for r in records]


def test_the_published_tokenizer_behaves_as_its_reference_says(published: Path) -> None:
    tokenizer = load_tokenizer(published)
    greeting, cannot, year, tab = tokenizer.encode_sentences(["Hello world.[PAR]", "can't won't", "in 2001", "\t"])
    assert greeting[-1] == tokenizer.par_id
    assert cannot[1] == cannot[3], "both words end in the token 't"
    assert [tokenizer.tokens[index] for index in year[1:]] == ["Ġ", "2", "0", "0", "1"]
    assert tokenizer.decode(greeting, skip_special_tokens=True) == " Hello world."
    assert tokenizer.unknown_id in tab, "the published alphabet lacks bytes"
    assert tokenizer.unknown_id in load_tokenizer(published, recognise=()).encode_sentences(["\t"])[0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from(string.ascii_letters + string.digits + " .,:;!?'()-"), max_size=60))
def test_ordinary_text_comes_back_from_the_published_tokenizer(published: Path, text: str) -> None:
    tokenizer = load_tokenizer(published, recognise=())
    (ids,) = tokenizer.encode_sentences([text])
    assert all(index >= tokenizer.n_special for index in ids)
    assert tokenizer.decode(ids) == (text if text.startswith(" ") or not text else " " + text)


def test_the_published_tokenizer_encodes_a_corpus(small: SimpleNamespace, published: Path, tmp_path: Path) -> None:
    with stage_run(tmp_path / "tokenizer" / "manifest.json", {"stage": "train_tokenizer"}) as run:
        run.add_output(tmp_path / "tokenizer" / "tokenizer.json").write_bytes(published.read_bytes())
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["[TAB] Hello world.\nIt isn't 1984.\n\nYes."]})
    output = tmp_path / "tokens" / "manifest.json"
    run_stage(
        encode_corpus,
        {},
        output,
        corpus=corpus,
        tokenizer=tmp_path / "tokenizer" / "manifest.json",
    )
    document = TokenShards.open(output, "train").document(0)
    parts = np.split(document.ids, np.flatnonzero(document.word_starts)[1:])
    assert [load_tokenizer(published).decode(part.tolist()) for part in parts] == [
        *("[TAB]", " Hello", " world.", " It", " isn't", " 1984.", "[PAR]", " Yes.", "[PAR]")
    ]


def test_truncation_and_padding_in_the_file_are_switched_off(definition: dict[str, Any], tmp_path: Path) -> None:
    definition["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    padding = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 3, "pad_type_id": 0, "pad_token": "[PAD]"}
    definition["padding"] = {"strategy": {"Fixed": 50}, **padding}
    tokenizer = load_tokenizer(save(definition, tmp_path))
    assert 4 < len(tokenizer.encode_sentences(["ba ti ko run sel"])[0]) < 50


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        ({"kind": "wordpiece"}, " "),
        ({"kind": "bpe", "special_tokens": "roberta", "pre_tokenizer": "metaspace"}, ""),
        ({"kind": "wordpiece", "pre_tokenizer": "ltg_bnc", "continuing_subword_prefix": "##"}, ""),
    ],
)
def test_a_file_without_a_decoder_gives_its_words_back(kind: dict[str, Any], prefix: str, tmp_path: Path) -> None:
    text = "the old dogs do n't sleep ."
    backend = train([text] * 9, TokenizerSettings(**{"vocabulary_size": 320, "allow_smaller": True, **kind}))
    path = save({**json.loads(backend.to_str()), "decoder": None}, tmp_path)
    tokenizer = load_tokenizer(path)
    (ids,) = tokenizer.encode_sentences([text])
    assert tokenizer.decode(ids) == prefix + text


def test_one_thread_is_no_parallelism(monkeypatch: pytest.MonkeyPatch) -> None:
    for threads, parallel in ((2, "true"), (1, "false")):
        for name in ("RAYON_NUM_THREADS", "TOKENIZERS_PARALLELISM"):
            monkeypatch.setenv(name, "")
        use_threads(threads)
        assert (os.environ["RAYON_NUM_THREADS"], os.environ["TOKENIZERS_PARALLELISM"]) == (str(threads), parallel)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d["added_tokens"].pop(2), r"the special token \[SEP\] is missing"),
        (
            lambda d: d["model"]["vocab"].update({"[PAD]": 4, "[MASK]": 3}),
            r"special token \[PAD\] has id 4, expected id 3",
        ),
        (lambda d: d["model"]["vocab"].update(zebra=9999), "gaps or repetitions"),
        (lambda d: d["added_tokens"].clear(), "has none of the known sets of special tokens: babylm, bnc, roberta"),
        (lambda d: d["model"]["vocab"].pop("[TAB]"), r"the special token \[TAB\] "),
        (lambda d: d["model"].update(continuing_subword_prefix="@@"), "'@@' and ByteLevel exclude each other"),
        (
            lambda d: d["pre_tokenizer"]["pretokenizers"].append({"type": "Metaspace", "replacement": "_"}),
            "ByteLevel and Metaspace exclude each other",
        ),
        (lambda d: d.update(pre_tokenizer={"type": "Whitespace"}), "does not mark word starts"),
        (lambda d: d["model"].update(unk_token="<unk>"), r"unk_token is '<unk>', expected '\[UNK\]'"),
        (lambda d: d["model"].update(end_of_word_suffix="</w>"), "an end_of_word_suffix is not supported"),
        (lambda d: d["model"].update(type="Surprise"), "the model 'Surprise' is unknown"),
        (lambda d: d.pop("model"), r"not a tokenizer: a key is missing or has a wrong type \(KeyError: 'model'\)"),
    ],
)
def test_a_file_that_breaks_a_promise_is_refused_by_name(
    definition: dict[str, Any], tmp_path: Path, damage: Any, message: str
) -> None:
    damage(definition)
    if message.startswith("the special token [PAD]"):
        definition["added_tokens"][3]["id"], definition["added_tokens"][4]["id"] = 4, 3
    path = save(definition, tmp_path)
    with pytest.raises(TokenizationError, match=message) as caught:
        load_tokenizer(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"{}"])
def test_a_file_that_is_no_tokenizer_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(TokenizationError, match=r"tokenizer\.json: "):
        load_tokenizer(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenizationError, match=r"absent\.json: the tokenizer is missing"):
        load_tokenizer(tmp_path / "absent.json")


NAMES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


@pytest.mark.parametrize("name", SPECIAL_SETS)
def test_the_files_beside_a_tokenizer_agree_with_it(
    small: SimpleNamespace, corpus: Path, tmp_path: Path, name: str
) -> None:
    manifest = tmp_path / "manifest.json"
    size = 300 if name == "gpt_bert" else None
    changes = {"vocabulary_size": size} if size else {}
    run_stage(
        train_tokenizer,
        small.tokenizer_settings(kind="byte_bpe", special_tokens=name, **changes),
        manifest,
        corpus=[corpus],
    )
    assert {path.name for path in read_manifest(manifest).files()} == set(NAMES)
    backend = Backend.from_file(str(tmp_path / "tokenizer.json"))
    config, roles = (json.loads((tmp_path / file).read_text("utf-8")) for file in NAMES[1:])
    special = SPECIAL_SETS[name]
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert isinstance(config["model_max_length"], int)
    # Without this setting, version 4 of `transformers` adds token types, which our models do not accept.
    assert config["model_input_names"] == ["input_ids", "attention_mask"]
    assert config["clean_up_tokenization_spaces"] is False, "a decoded text keeps the spaces before its marks"
    assert {key: config[key] for key in roles} == roles
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert loaded.special == special and loaded.tokens[: loaded.n_special] == list(special.order)
    assert backend.token_to_id(roles["mask_token"]) == special.ids[special.mask]
    assert roles["cls_token"] == backend.encode("").tokens[0]
    ending = backend.encode("").tokens[1:]
    assert ending == ([] if name == "gpt_bert" else [roles["sep_token"]])
    named = {token for value in roles.values() for token in ([value] if isinstance(value, str) else value)}
    assert named == set(special.order)
    added = {int(index): token for index, token in config["added_tokens_decoder"].items()}
    assert {index: token["content"] for index, token in added.items()} == dict(enumerate(special.order))
    for token in json.loads(backend.to_str())["added_tokens"]:
        assert added[token.pop("id")] == token


def test_only_roberta_names_begin_and_end_and_only_the_others_have_more_tokens(
    small: SimpleNamespace, corpus: Path, tmp_path: Path
) -> None:
    found = {}
    for name in SPECIAL_SETS:
        settings = small.tokenizer_settings(kind="byte_bpe", special_tokens=name)
        run_stage(train_tokenizer, settings, tmp_path / name / "manifest.json", corpus=[corpus])
        found[name] = json.loads((tmp_path / name / NAMES[2]).read_text("utf-8"))
    assert (found["roberta"]["bos_token"], found["roberta"]["eos_token"]) == ("<s>", "</s>")
    assert "additional_special_tokens" not in found["roberta"]
    assert found["bnc"]["additional_special_tokens"] == ["[PAR]"]
    assert found["babylm"]["additional_special_tokens"] == ["[PAR]", "[TAB]"]

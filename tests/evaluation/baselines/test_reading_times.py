"""Words of running texts: surprisal, entropy and word boundaries against the logits, in the stage and in Python."""

import copy
import json
import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
import torch
from baseline_cases import build as build_model

import hatchery
from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.loading import BaselineTokenizer
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.reading_times import passages as passages_module
from hatchery.evaluation.reading_times.passages import passage_words
from hatchery.evaluation.reading_times.settings import ReadingTableSettings
from hatchery.evaluation.reading_times.table import Passage
from hatchery.evaluation.settings import BaselineSettings
from hatchery.evaluation.stages.measure_reading_times import gain_rows, measure_reading_times
from hatchery.experiment.project import Project
from hatchery.runner import run_stage
from hatchery.typed import build

CPU = torch.device("cpu")
SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")
READ = {
    "en": ["The", "dog's", "old", "house", "sleeps."],
    "zh": ["黒猫", "が", "眠る"],
    "hi": ["कुत्ता", "सोता", "है"],
}


@pytest.fixture(scope="module")
def causal():
    """Return a causal model with one token per byte and BOS `<s>` (id 0)."""
    return build_model("gpt2", positions=64)


def asked(tokenizer, network, architecture="causal"):
    its = BaselineTokenizer(tokenizer, architecture, "made")
    return BaselineModel(network, its, BaselineSettings(architecture), CPU)


def passages(texts=READ) -> list[Passage]:
    return [
        Passage(item, tuple(float(1 + place) for place in range(len(words))), tuple(words), (None,) * len(words))
        for item, words in texts.items()
    ]


def words_of(model, texts=READ, **keys) -> pl.DataFrame:
    return passage_words(model, passages(texts), build(ReadingTableSettings, keys))


@torch.no_grad()
def log_probabilities(network, ids: list[int]) -> np.ndarray:
    """Return the distribution after each id, as float64 [T, V]."""
    return network(torch.tensor([ids])).logits[0].double().log_softmax(-1).numpy()


def pieces(tokenizer, words: list[str], joined_by: str = " ") -> list[list[int]]:
    """Return each word's ids, with the space before the word. A token is one byte, so no token spans two words."""
    texts = [words[0], *(f"{joined_by}{word}" for word in words[1:])]
    return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]


@pytest.mark.parametrize("joined_by", [" ", ""])
def test_the_surprisal_of_a_word_is_that_of_its_tokens_after_bos_and_all_words_before(causal, joined_by) -> None:
    tokenizer, network = causal
    found = words_of(asked(tokenizer, network), joined_by=joined_by)
    for item, words in READ.items():
        its = pieces(tokenizer, words, joined_by)
        ids = [token for piece in its for token in piece]
        logs = log_probabilities(network, [tokenizer.bos_token_id, *ids])
        nats = [-logs[place, token] for place, token in enumerate(ids)]
        ends = np.cumsum([0, *map(len, its)])
        expected = [sum(nats[start:end]) for start, end in pairwise(ends)]
        rows = found.filter(item=item)
        assert rows["surprisal"].to_list() == pytest.approx(expected, rel=1e-5)
        assert rows["word"].to_list() == words and rows["tokens"].to_list() == [len(piece) for piece in its]
    assert found["entropy"].null_count() == len(found)
    model = asked(tokenizer, network)
    model.leading_blank = True
    assert words_of(model, joined_by=joined_by)["tokens"][0] == len("The") + 1


@pytest.mark.parametrize("margin", [0, 8])
def test_a_word_of_a_long_text_is_read_after_as_many_tokens_as_the_window_holds(causal, margin) -> None:
    tokenizer, network = causal
    words = [f"word{number:02d}" for number in range(30)]
    found = words_of(asked(tokenizer, network), {"1": words}, window_margin=margin)
    its = pieces(tokenizer, words)
    ids = [token for piece in its for token in piece]
    # BOS takes one of the 64 positions.
    window = 64 - max(margin, 1)
    ends = np.cumsum([0, *map(len, its)]).tolist()
    for place, value in enumerate(found["surprisal"]):
        start, end = ends[place], ends[place + 1]
        begin = max(0, end - window)
        logs = log_probabilities(network, [tokenizer.bos_token_id, *ids[begin:end]])
        expected = -sum(logs[at - begin, ids[at]] for at in range(start, end))
        assert value == pytest.approx(expected, rel=1e-5)
    assert len(found) == 30 and ends[-1] > 3 * window


def test_a_word_longer_than_the_window_is_scored_whole(causal) -> None:
    tokenizer, network = causal
    words = ["a", "b" * 100, "c"]
    found = words_of(asked(tokenizer, network), {"1": words}, window_margin=8)
    assert found["tokens"].to_list() == [1, 101, 2]
    # The window holds 64 - 8 tokens. Each part of the word has half of this number, and the other half is context.
    ids = [token for piece in pieces(tokenizer, words) for token in piece]
    expected = 0.0
    for start in range(1, 102, 28):
        end = min(start + 28, 102)
        begin = max(0, end - 56)
        logs = log_probabilities(network, [tokenizer.bos_token_id, *ids[begin:end]])
        expected -= sum(logs[at - begin, ids[at]] for at in range(start, end))
    assert found["surprisal"][1] == pytest.approx(expected, rel=1e-5)
    assert len(words_of(asked(tokenizer, network), {"1": words}, window_margin=62)) == 3
    message = "window_margin: got 63, expected at most 62: the model reads at most 64 tokens"
    with pytest.raises(ConfigError, match=message):
        words_of(asked(tokenizer, network), {"1": words}, window_margin=63)


def test_many_passages_are_scored_in_parts(causal, monkeypatch) -> None:
    texts = {str(number): ["a", "b" * number] for number in range(1, 6)}
    whole = words_of(asked(*causal), texts)
    monkeypatch.setattr(passages_module, "PASSAGES_AT_ONCE", 2)
    parts = words_of(asked(*causal), texts)
    assert parts["item"].to_list() == [item for item in texts for _ in range(2)]
    assert parts["surprisal"].to_list() == pytest.approx(whole["surprisal"].to_list(), rel=1e-5)


def test_without_a_token_that_begins_texts_the_first_token_counts_0(causal) -> None:
    tokenizer, network = copy.deepcopy(causal[0]), causal[1]
    tokenizer.bos_token = None
    found = words_of(asked(tokenizer, network), {"1": ["dog", "sees"], "2": ["x", "y"]})
    logs = log_probabilities(network, tokenizer("dog sees", add_special_tokens=False)["input_ids"])
    ids = tokenizer("dog sees", add_special_tokens=False)["input_ids"]
    assert found["surprisal"][0] == pytest.approx(-logs[0, ids[1]] - logs[1, ids[2]], rel=1e-5)
    assert found["surprisal"][2] == 0.0, "a text whose first word is one token"
    one = words_of(asked(tokenizer, network), {"1": ["x"]})
    assert one["surprisal"].to_list() == [0.0]


def test_the_entropy_is_that_of_the_first_token_of_a_word(causal, monkeypatch) -> None:
    tokenizer, network = causal
    # The distributions of two positions are computed at once.
    monkeypatch.setattr(passages_module, "LOGITS_AT_ONCE", 2 * len(tokenizer))
    found = words_of(asked(tokenizer, network), {"1": READ["en"]}, of_model=["surprisal", "entropy"])
    its = pieces(tokenizer, READ["en"])
    logs = log_probabilities(network, [tokenizer.bos_token_id, *(token for piece in its for token in piece)])
    begins = np.cumsum([0, *map(len, its)])[:-1]
    expected = [-float((np.exp(logs[place]) * logs[place]).sum()) for place in begins]
    assert found["entropy"].to_list() == pytest.approx(expected, rel=1e-6)
    assert all(0 < value < math.log(logs.shape[1]) for value in expected)


@pytest.mark.parametrize("blank", [False, True])
def test_corrected_boundaries_move_the_end_of_a_word_into_the_word(causal, blank) -> None:
    """p(word) = p(tokens) p(blank or end after it) / p(blank or end before it) (Pimentel and Meister, 2024)."""
    tokenizer, network = causal
    model = asked(tokenizer, network)
    model.leading_blank = blank
    found = words_of(model, {"1": READ["en"]}, word_boundaries="corrected")
    vocabulary = tokenizer.get_vocab()
    ends = [number for token, number in vocabulary.items() if token[0] in "ĠĊĉ" or token in SPECIAL]
    assert len(ends) == 3 + 5
    its = pieces(tokenizer, [" " * blank + READ["en"][0], *READ["en"][1:]])
    ids = [token for piece in its for token in piece]
    logs = log_probabilities(network, [tokenizer.bos_token_id, *ids])
    after = [math.log(np.exp(logs[place, ends]).sum()) for place in range(len(logs))]
    start = 0
    for number, (value, piece) in enumerate(zip(found["surprisal"], its, strict=True)):
        end = start + len(piece)
        nats = -sum(logs[place, ids[place]] for place in range(start, end))
        # Without a leading space, the first word does not begin with a boundary.
        expected = nats - after[end] + (after[start] if number or blank else 0.0)
        assert value == pytest.approx(expected, rel=1e-5)
        start = end


@pytest.mark.parametrize("keys", [{"of_model": ["entropy"]}, {"word_boundaries": "corrected"}])
def test_masked_models_have_surprisals_and_no_entropy(keys) -> None:
    tokenizer, network = build_model("bert")
    model = asked(tokenizer, network, "masked")
    found = words_of(model, {"1": ["the", "dog", "sleep"]})
    assert all(value > 0 for value in found["surprisal"])
    with pytest.raises(ConfigError, match="needs scoring from left to right, but this model is scored by pll"):
        words_of(model, {"1": ["the", "dog"]}, **keys)
    with pytest.raises(EvaluationError, match="item 1: becomes 40 tokens, expected at most 30 for a masked model"):
        words_of(model, {"1": ["dog"] * 40})


def test_later_pieces_of_a_word_are_masked_if_scoring_within_words() -> None:
    tokenizer, network = build_model("bert")
    found = words_of(asked(tokenizer, network, "masked"), {"1": ["dog", "unhappily"]}, scoring="pll_within_word_l2r")
    ids = tokenizer("dog unhappily")["input_ids"]
    assert len(ids) == 2 + 1 + 3
    expected = 0.0
    for at in (2, 3, 4):
        masked = torch.tensor([[*ids[:at], *[tokenizer.mask_token_id] * (5 - at), ids[5]]])
        with torch.no_grad():
            expected -= float(network(masked).logits[0, at].log_softmax(-1)[ids[at]])
    assert found["surprisal"][1] == pytest.approx(expected, rel=1e-5)


def frame(readers: int = 5) -> pl.DataFrame:
    words = ["The", "old", "dog", "sees", "an", "house", "near", "the", "cat", "and", "dogs", "sleep", "well", "."]
    rows = []
    for reader in range(readers):
        for item in range(4):
            for place in range(1, 13):
                word = words[(place * 7 + item * 3) % len(words)]
                time = 200 + 20 * len(word) + 9 * math.sin(place * 3.3 * (reader + 1) + item)
                rows.append({"participant": f"p{reader}", "item": item, "position": place, "word": word, "rt": time})
    return pl.DataFrame(rows)


@pytest.mark.parametrize("random_effects", ["none", "intercepts", "slopes"])
def test_python_gives_the_numbers_of_the_stage(make_source, manifest_of, stored, tmp_path, random_effects) -> None:
    content = frame().write_csv()
    source = make_source({"times.csv": content})
    told = {"stage": "measure_reading_times", "stage_version": 1, "name": "mine", "random_effects": random_effects}
    manifest = tmp_path / "out" / "manifest.json"
    inputs = {"model": manifest_of("gpt2"), "source": source.manifest}
    run_stage(measure_reading_times, told, manifest, runtime={"device": "cpu"}, **inputs)
    made = read_manifest(manifest)
    shuffled = frame().sample(fraction=1.0, shuffle=True, seed=1)
    keys = {"device": "cpu", "architecture": "causal", "random_effects": random_effects}
    found = hatchery.reading(stored("gpt2"), shuffled, **keys)
    scores = pl.read_csv(made.file("scores.csv"))
    assert found.tables["scores.csv"]["gain_nats"][0] == pytest.approx(scores["gain_nats"][0], abs=1e-6)
    rows = {row["metric"]: row for row in gain_rows(Evaluated(made, read_manifest(inputs["model"]), "mine"))}
    gain = rows["gain_millinats_per_word"]
    assert gain["value"] == pytest.approx(1000 * scores["gain_nats"][0] / 220) and gain["items"] == 220
    deviation = scores["gain_deviation_nats"][0]
    assert rows["gain_log_likelihood"]["sampling_deviation"] == pytest.approx(deviation)
    assert gain["sampling_deviation"] == pytest.approx(1000 * deviation / 220)
    assert [name for name, row in rows.items() if row["primary"]] == ["gain_millinats_per_word"]
    words = pl.read_parquet(made.file("words.parquet"))
    mean = float(words["surprisal_nats"].mean())
    assert rows["perplexity_of_words"]["value"] == pytest.approx(math.exp(mean))
    assert words.columns == ["item", "position", "word", "surprisal_nats", "entropy_nats", "tokens"]
    assert words.select("item", "position").row(0) == ("0", 1.0) and len(words) == 48
    assert json.loads(manifest.read_text())["measures"]["left_out"]["without_previous_words"] == 20


def test_a_table_and_a_file_of_reading_tables_name_their_columns(stored, tmp_path) -> None:
    named = {"participant": "subid", "item": "itemid", "position": "wordnum", "rt": "firstrun.dur"}
    table = (
        frame(3)
        .rename(named)
        .with_columns(lang=pl.lit("du"), sentnum=pl.col("wordnum") > 6, freq=pl.col("word").str.len_chars() * 0.3)
    )
    # Sentences have six words. Without first and last word, four words remain; only the last two have two previous
    # words.
    table = table.with_columns(pl.col("sentnum").cast(pl.Int64))
    path = tmp_path / "meco.csv"
    table.write_csv(path)
    found = hatchery.reading(stored("gpt2"), path, like="meco_l2_nld", architecture="causal", device="cpu")
    assert found.name == "meco_l2_nld" and found.facts["scoring"] == "left_to_right"
    assert found.tables["scores.csv"]["rows"].to_list() == [3 * 4 * 2 * 2]
    assert found.rows["task"].unique().to_list() == ["meco_l2_nld"]


def test_the_tables_of_meco_are_read_by_one_protocol(repository) -> None:
    project = Project(repository / "config")
    tables = {name: project.reading_table(name) for name in project.names("reading_table") if name.startswith("meco")}
    assert {name: (table.data, table.only["lang"], table.joined_by) for name, table in tables.items()} == {
        "meco_l1_eng": ("meco_l1", "en", " "),
        "meco_l1_nld": ("meco_l1", "du", " "),
        "meco_l1_zho": ("meco_l1", "ch_s", ""),
        "meco_l2_nld": ("meco_l2", "du", " "),
        "meco_l2_zho": ("meco_l2", "ch_s", " "),
    }
    for table in tables.values():
        assert (table.window_margin, table.spillover, table.random_effects) == (8, 2, "slopes")
        assert table.predictors == {"wordnum": 0, "length": 2, "freq": 2} and table.drop_sentence_ends

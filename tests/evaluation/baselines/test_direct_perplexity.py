"""`hatchery.evaluate` with `perplexity` gives the numbers of the stage that measures perplexity."""

import polars as pl
import pytest
from baseline_cases import staged
from perplexity_cases import Text, documents

import hatchery
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.perplexity.measurements import perplexity_rows
from hatchery.evaluation.stages.measure_perplexity import measure_perplexity
from hatchery.modeling.store import save_model

MARKED = [f"[TAB] {text} [SEP]" if index % 3 else text for index, text in enumerate(documents(12))]
"""Documents, some of which contain a marker of document structure, which is one token, and the spelling of another
special token, which is plain text.
"""


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return Text(tmp_path_factory.mktemp("text"), 300, {"train": documents(20), "dev": MARKED})


def perplexity_model(folder, text, small_model, task, segments="documents"):
    size = int(read_manifest(text.tokens).measures["vocabulary_size"])
    settings = {"stage": "pretrain", "stage_version": 1, "objective": {"task": task, "segments": segments}}
    with stage_run(folder / "manifest.json", settings, {"tokenizer": text.tokenizer}) as run:
        for path in save_model(folder, small_model(size, task == "causal")):
            run.add_output(path)
        (folder / "tokenizer.json").write_bytes(text.tokenizer.with_name("tokenizer.json").read_bytes())
        run.add_output(folder / "tokenizer.json")
    return folder / "manifest.json"


@pytest.mark.parametrize("task", ["masked", "causal", "hybrid"])
def test_perplexity_of_texts_is_that_of_the_stage_on_their_tokens(task, text, small_model, tmp_path):
    model = perplexity_model(tmp_path / "model", text, small_model, task)
    with pytest.raises(
        hatchery.HatcheryError, match=r"frequency_bin_nats: got 0\.5, expected null, because the bins are determined"
    ):
        hatchery.evaluate(model, "perplexity", MARKED, frequency_bin_nats=0.5)
    other = Text(tmp_path / "other", 280, {"train": documents(20), "dev": documents(3)})
    with pytest.raises(hatchery.HatcheryError, match="the shards were encoded with another tokenizer than the model"):
        hatchery.evaluate(model, "perplexity", other.tokens.parent, sequence_length=24)
    asked = {"splits": ["dev"], "sequence_length": 24, "pseudo_perplexity_sentences": 3 * (task == "masked")}
    expected = staged(measure_perplexity, tmp_path / "out", model, asked, tokens=text.tokens)
    table = pl.read_csv(expected.file("perplexity.csv"))
    for data in ([*MARKED, " \n"], pl.DataFrame({"text": MARKED}), text.corpus.parent, text.tokens.parent):
        found = hatchery.evaluate(model, "perplexity", data, **asked)
        assert found.tables["perplexity.csv"].to_dicts() == table.to_dicts()
        assert found.facts == expected.measures
    # Without the key `splits`, a corpus is measured on `dev`, and other texts are the split `test`.
    for data, split in ((text.corpus.parent, "dev"), (MARKED, "test")):
        found = hatchery.evaluate(model, "perplexity", data, sequence_length=24)
        assert found.tables["perplexity.csv"].select("split", "loss_nats").rows() == [(split, table["loss_nats"][0])]


@pytest.mark.parametrize(
    ("size", "tokenizer"), [(300, {}), (150, {"pre_tokenizer": "ltg_bnc", "continuing_subword_prefix": "@@"})]
)
def test_words_and_frequencies_of_whole_documents_are_those_of_the_stage(size, tokenizer, small_model, tmp_path):
    """The 120 documents fill three shards. No document is split: each token is predicted once, and words are known."""
    texts = {"train": documents(20)[::-1], "dev": documents(120)}
    text = Text(tmp_path / "text", size, texts, **tokenizer)
    model = perplexity_model(tmp_path / "model", text, small_model, "causal")
    asked = {"splits": ["dev"], "sequence_length": 512, "frequency_bin_nats": 0.5}
    expected = staged(measure_perplexity, tmp_path / "out", model, asked, tokens=text.tokens)
    words = pl.read_csv(expected.file("words.csv")).to_dicts()
    assert words[0]["words"] == sum(len(document.split()) for document in documents(120))
    found = hatchery.evaluate(model, "perplexity", text.tokens.parent, **asked)
    assert found.tables["frequency.csv"].to_dicts() == pl.read_csv(expected.file("frequency.csv")).to_dicts()
    for name, lines in enumerate(documents(120)):
        (tmp_path / f"texts/{name:03d}.txt").parent.mkdir(exist_ok=True)
        (tmp_path / f"texts/{name:03d}.txt").write_text(lines, encoding="utf-8")
    for data in (documents(120), tmp_path / "texts", text.corpus.parent):
        found = hatchery.evaluate(model, "perplexity", data, splits=["dev"], sequence_length=512)
        assert found.tables["words.csv"].to_dicts() == words


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_perplexity_of_a_model_of_others_is_that_of_the_stage(name, made, text, tmp_path):
    asked = {"splits": ["dev"], "sequence_length": 24}
    binned = {**asked, "frequency_bin_nats": 0.5}
    expected = staged(measure_perplexity, tmp_path / "out", made(name), binned, corpus=text.corpus)
    # Without its training text, a model of others has no frequencies, so that frequency.csv has no rows.
    assert pl.read_csv(expected.file("frequency.csv")).is_empty()
    rows = {row["metric"] for row in perplexity_rows(Evaluated(expected, read_manifest(made(name))))}
    assert {"perplexity", "loss_nats"} <= rows
    for data in (MARKED, text.corpus.parent):
        found = hatchery.evaluate(made(name), "perplexity", data, **asked)
        assert found.tables["perplexity.csv"].to_dicts() == pl.read_csv(expected.file("perplexity.csv")).to_dicts()

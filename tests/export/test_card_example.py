"""The example code in the model card runs and prints the same results as the workflow."""

import json
import re
from pathlib import Path

import forked
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stage_command import stage_command

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.evaluation.sentences_file import GAP, SENTENCES_FILE, read_examples, text_of_sentences
from hatchery.evaluation.stages.fill_sentences import fill_sentences
from hatchery.export.stages.export_model import export_model
from hatchery.runner import run_stage
from hatchery.tokenization.special_tokens import SPECIAL_SETS

STAGE = {"stage": "fill_sentences", "stage_version": 1}
SPECIAL = {name for known in SPECIAL_SETS.values() for name in known.order}
TEXT = "She likes old houses, and the dogs.\nA cat near the house chases the dogs.\nThe old dogs near the house sleep."


def corpus_of(folder: Path, text: str) -> Path:
    with stage_run(folder / "manifest.json", {}) as run:
        path = run.folder / "dev-00000-of-00001.parquet"
        pq.write_table(pa.table({"doc_id": ["a"], "source": ["a"], "text": [text]}), path)
        run.add_output(path)
    return folder / "manifest.json"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return corpus_of(tmp_path / "corpus", TEXT)


def example(card: str) -> str:
    return card.split("```python\n")[1].split("```")[0]


@pytest.mark.parametrize("variant", ["ltg", "roberta_tied"], indirect=True)
def test_the_example_says_what_the_model_says_of_a_sentence_masked_as_in_pretraining(
    hub, pretrained, export_settings, corpus, variant, tmp_path, monkeypatch, capsys
):
    filled = tmp_path / "filled" / "manifest.json"
    run_stage(fill_sentences, STAGE, filled, model=pretrained(variant), corpus=corpus)
    examples = read_examples(filled).examples
    assert examples and all(len(each.answers) == 5 for each in examples)
    run_stage(
        export_model,
        export_settings,
        tmp_path / "out" / "manifest.json",
        pretraining=pretrained(variant),
        filled=filled,
    )
    card = (tmp_path / "out" / "README.md").read_text()
    mask = "<mask>" if variant == "roberta_tied" else "[MASK]"
    assert json.dumps(examples[0].given.replace(GAP, mask)) in example(card)
    assert examples[0].original in card.split("## Use")[1]
    assert "sentences of the corpus's development text with one word left out" in card
    monkeypatch.chdir(tmp_path / "out")
    exec(compile(example(card), "card", "exec"), {})
    # Version 4 of `transformers` imports DeepSpeed, which logs to the standard output.
    lines = [line for line in capsys.readouterr().out.splitlines() if "[WARNING]" not in line]
    printed = [line.rsplit(" ", 1) for line in lines]
    assert len(printed) == 5
    printed = [(token, probability) for token, probability in printed if token not in SPECIAL]
    expected = [(guess.text.lstrip("…"), guess.percent) for guess in examples[0].answers]
    for (text, percent), (token, probability) in zip(expected, printed, strict=len(printed) == 5):
        assert text in (token.strip(), "(part of a character)", "(space)")
        assert 100 * float(probability) == pytest.approx(percent, abs=0.051)


@pytest.mark.parametrize("variant", ["ltg"], indirect=True)
def test_the_sentences_are_the_same_bytes_at_every_run(pretrained, corpus, variant, tmp_path):
    digests = set()
    for name in ("one", "two"):
        run_stage(fill_sentences, STAGE, tmp_path / name / "manifest.json", model=pretrained(variant), corpus=corpus)
        digests.add(read_manifest(tmp_path / name / "manifest.json").digest)
    assert len(digests) == 1


def test_a_text_whose_lines_are_paragraphs_has_examples_too(pretrained, corpus, tmp_path):
    paragraphs = corpus_of(tmp_path / "paragraphs", TEXT.replace("\n", " "))
    texts = {}
    for name, text in (("short", corpus), ("long", paragraphs)):
        output = tmp_path / name / "manifest.json"
        run_stage(fill_sentences, STAGE, output, model=pretrained("ltg"), corpus=text)
        assert read_examples(output).examples
        texts[name] = text_of_sentences(output)
    assert texts == {"short": "development text", "long": "development text (the beginnings of longer sentences)"}


def test_the_command_writes_the_sentences(pretrained, corpus, tmp_path):
    output = tmp_path / "filled" / "manifest.json"
    command = stage_command("fill_sentences", STAGE, output, model=pretrained("ltg"), corpus=corpus)
    forked.run(command, check=True, capture_output=True, text=True)
    assert read_manifest(output).measures["sentences"] == len(read_examples(output).examples) > 0
    assert read_manifest(output).file(SENTENCES_FILE).is_file()


def test_the_example_trusts_the_model_s_code_and_asks_for_no_other_and_the_language_is_the_corpus_s(
    pretrained, export_settings, tmp_path
):
    settings = {**export_settings, "languages": ["is", "fo"]}
    run_stage(export_model, settings, tmp_path / "manifest.json", pretraining=pretrained("ltg"))
    card = (tmp_path / "README.md").read_text()
    assert card.startswith('---\nlanguage: ["is", "fo"]\n')
    loaders = re.findall(r"from_pretrained\((.*?)\)", example(card))
    assert sorted(loader.split(", ")[1] for loader in loaders) == ["trust_remote_code=False", "trust_remote_code=True"]


@pytest.mark.parametrize("languages", [[], ["de"]])
def test_a_card_names_no_language_that_nobody_said_and_invents_no_english_text(
    languages, pretrained, export_settings, tmp_path
):
    settings = {**export_settings, "languages": languages}
    run_stage(export_model, settings, tmp_path / "manifest.json", pretraining=pretrained("ltg"))
    card = (tmp_path / "README.md").read_text()
    front = card.split("---")[1]
    assert ("language:" in front) == bool(languages) and '"en"' not in front
    assert "... [MASK] ..." in example(card) and "dogs" not in example(card)

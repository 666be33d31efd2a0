"""The card of a corpus: corpora counted by hand."""

import html
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from browser import BROWSER, measured
from card_cases import TWO_SOURCES, card_settings, described, tokens_of, two_sources_corpus, write_corpus
from huggingface_hub import DatasetCard
from projects import rows_of
from stage_command import stage_command

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.corpora.duplicates import HEADER
from hatchery.rendering.hub_metadata import size_category
from hatchery.sanitize import csv_text
from hatchery.views.cards.content import vocabulary_section
from hatchery.views.cards.measure_corpus import blocks
from hatchery.views.cards.vocabulary import VocabularyFacts

FILES = {"card.html", "card.md", "comparison.csv", "statistics.csv"}
PUBLISHED = """paper,table,corpus,source,split,measure,value,unit,note
P,Table 1,tiny,alpha,train,words,10,count,
P,Table 1,tiny,total,total,subwords,30,count,by hand
"""
RAW_SHA256 = "d7439bee24773bcbfa2d0a97947ee36227b10d1022b1a55847e928965bb6bfde"


@pytest.fixture
def two_sources(tmp_path: Path) -> Path:
    """A corpus with sources alpha and beta, two documents each, and one rejected text."""
    return two_sources_corpus(tmp_path)


@pytest.fixture
def card(two_sources: Path, tmp_path: Path) -> Path:
    (tmp_path / "published.csv").write_text(PUBLISHED, encoding="utf-8")
    tokens = tokens_of(two_sources, tmp_path / "tokens")
    sources = [{"name": "raw", "licence": "CC0", "terms": "any use", "obtain": "made here"}, {"name": "old"}]
    settings = card_settings(description="Two <small> sources.", languages=["de", "fr"], sources=sources)
    return described(two_sources, tmp_path / "card", settings, published=tmp_path / "published.csv", tokens=tokens)


def test_the_manifest_names_every_file_of_the_card(card: Path) -> None:
    manifest = read_manifest(card / "manifest.json")
    manifest.verify()
    assert {output.path.name for output in manifest.outputs} == FILES
    assert set(manifest.inputs) == {"corpus", "published", "tokens"}
    assert manifest.measures["train"]["documents"] == 3


def test_counts_are_those_counted_by_hand(card: Path) -> None:
    rows = {(row["source"], row["split"]): list(row.values())[2:] for row in rows_of(card / "statistics.csv")}
    # documents, sentences, words, characters, pre-tokens, subwords
    assert rows["alpha", "train"] == ["1", "2", "8", "27", "8", "9"]
    assert rows["alpha", "dev"] == ["1", "1", "5", "17", "7", "6"]
    # It|'s|a|cat|,|[UNK]|. and #|So|5|cats
    assert rows["beta", "train"] == ["2", "3", "10", "32", "11", "12"]
    assert rows["(all)", "(all)"] == ["4", "6", "23", "76", "26", "27"]
    assert list(rows)[:3] == [("alpha", "train"), ("alpha", "dev"), ("alpha", "(all)")]


def test_the_vocabulary_is_that_counted_by_hand(card: Path) -> None:
    text = (card / "card.md").read_text(encoding="utf-8")
    # the cat sat the dog ran | run the run
    assert "| alpha | 9 | 6 | 4 | 66.7 |" in text
    # it's a cat | so 5 cats
    assert "| beta | 6 | 6 | 6 | 100.0 |" in text
    assert "| all | 15 | 11 | 8 | 72.7 |" in text
    assert re.search(r"\| all \| the\W+3\W+cat\W+2\W+run\W+2\W", text)


def test_the_card_is_the_hub_s_card_of_a_data_set(card: Path) -> None:
    data = DatasetCard.load(card / "card.md").data
    assert data.to_dict() == {
        "language": ["de", "fr"],
        # The license is unknown if one source has no known licence.
        "license": "unknown",
        "pretty_name": "tiny",
        "size_categories": ["n<1K"],
        "task_categories": ["text-generation", "fill-mask"],
        "tags": ["hatchery"],
    }


@pytest.mark.parametrize(
    ("rows", "category"),
    [
        (999, "n<1K"),
        (1_000, "1K<n<10K"),
        (99_999, "10K<n<100K"),
        (100_000, "100K<n<1M"),
        (10**11, "100B<n<1T"),
        (10**13, "n>1T"),
    ],
)
def test_the_hub_s_category_of_a_size(rows: int, category: str) -> None:
    assert size_category(rows) == category


def test_lengths_are_counted_in_words_per_line_and_per_document(card: Path) -> None:
    text = (card / "card.md").read_text(encoding="utf-8")
    assert "| beta | sentences | 3 | 3.3 | 2 | 6 | 6 |" in text
    assert "| beta | documents | 2 | 5.0 | 4 | 6 | 6 |" in text


def test_published_sizes_stand_beside_ours(card: Path) -> None:
    rows = [tuple(row.values()) for row in rows_of(card / "comparison.csv")]
    assert rows == [
        ("P Table 1", "alpha", "train", "words", "8", "10", "-20.0", ""),
        ("P Table 1", "(all)", "(all)", "subwords", "27", "30", "-10.0", "by hand"),
    ]


def test_the_page_tells_terms_samples_and_what_was_left_out(card: Path, two_sources: Path) -> None:
    page = (card / "card.html").read_text(encoding="utf-8")
    assert "Two &lt;small&gt; sources." in page
    assert "Languages: de, fr." in page
    assert "CC0" in page
    assert re.search(r"old</th>(<td[^>]*>not stated</td>){3}", page)
    assert "alpha: a/1 (train)" in page
    assert "The cat sat .\nThe dog ran !</blockquote>" in page
    assert "alpha: too short" in page
    assert "Subwords are the tokens" in page
    assert "Hm .</blockquote>" in page
    assert read_manifest(two_sources).digest in page
    markdown = (card / "card.md").read_text(encoding="utf-8")
    assert "| train | 3 | 5 | 18 | 59 | 19 | 21 |" in markdown
    assert "| all | 4 | 6 | 23 | 76 | 26 | 27 |" in markdown
    # The Markdown file has no sample texts, so that it has no section with only these texts.
    assert "## Excluded text" in markdown and "## Samples" not in markdown
    # 13 and 10 of 23 words.
    assert "| alpha | 2 | 3 | 13 | 44 | 15 | 15 | 56.5 |" in markdown
    assert "| beta | 2 | 3 | 10 | 32 | 11 | 12 | 43.5 |" in markdown
    assert "| alpha | dev | 1 | 1 | 5 | 17 | 7 | 6 |\n| beta | train | 2 | 3 | 10 | 32 | 11 | 12 |" in markdown
    assert "| P Table 1 | alpha | train | words | 8 | 10 | -20.0 |" in markdown
    assert "| P Table 1 | all | all | subwords | 27 | 30 | -10.0 | by hand |" in markdown
    assert "| alpha | too short | 7 |" in markdown
    assert "| manifest of the tokens | " + read_manifest(card.parent / "tokens/manifest.json").digest in markdown


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_nothing_of_the_card_is_cut_off(card: Path, tmp_path: Path) -> None:
    for width, seen in measured(tmp_path, card / "card.html").items():
        assert seen["cut"] == [] and seen["needed"] <= seen["width"] <= width


def test_the_same_corpus_gives_the_same_bytes(card: Path, two_sources: Path, tmp_path: Path) -> None:
    settings = read_manifest(card / "manifest.json").settings
    given = {"published": tmp_path / "published.csv", "tokens": tmp_path / "tokens" / "manifest.json"}
    again = tmp_path / "again" / "manifest.json"
    subprocess.run(
        stage_command("describe_corpus", settings, again, corpus=two_sources, **given),
        check=True,
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    for name in sorted(FILES | {"manifest.json"}):
        assert (tmp_path / "again" / name).read_bytes() == (card / name).read_bytes(), name


def test_without_published_sizes_and_tokens_the_card_has_no_such_parts(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", [("x", "only", "train", "A b.")])
    described(corpus, tmp_path / "card")
    page = (tmp_path / "card" / "card.html").read_text(encoding="utf-8")
    assert "published sizes" not in page
    assert "Languages: not stated." in page
    assert "terms of the sources are not stated" in page
    assert "No text was excluded." in page
    assert "Size by source" not in page
    assert "| all |" not in (tmp_path / "card" / "card.md").read_text(encoding="utf-8")
    assert "subwords" not in rows_of(tmp_path / "card" / "statistics.csv")[0] and "Subwords" not in page


def test_samples_examples_and_words_are_limited_by_the_settings(tmp_path: Path) -> None:
    texts = {"x": "", "y": " and more text and more text"}
    rejected = [("alpha", "rejected", reason, f"{reason} {n}{text}") for reason, text in texts.items() for n in (1, 2)]
    corpus = write_corpus(tmp_path / "corpus", TWO_SOURCES, samples=rejected)
    # Each source may have five types; the first text of `alpha` has five, and both texts of `beta` have six.
    limits = {"samples_per_source": 1, "sample_characters": 20, "top_words": 1, "max_types": 10}
    folder = described(corpus, tmp_path / "card", card_settings(**limits))
    page, text = ((folder / f"card.{ending}").read_text(encoding="utf-8") for ending in ("html", "md"))
    assert "| alpha (stopped) | 6 | 5 | 4 | 80.0 |" in text and "| beta (stopped) | 6 | 6 | 6 | 100.0 |" in text
    assert re.search(r"\| alpha \| the\W+2\W+\|", text) and "only their first words are counted" in text
    samples = re.findall(r"<blockquote[^>]*>(.*?)</blockquote>", html.unescape(page), re.DOTALL)
    assert samples[:2] == ["x 1", "y 1 and more text …"] and len(samples) == 4
    assert all(len(sample) <= 22 for sample in samples) and any(sample.endswith(" …") for sample in samples)


def test_a_card_says_that_words_are_missing_if_counting_stopped_for_one_of_several_sources() -> None:
    facts = {name: VocabularyFacts(2, 2, 1, [], complete) for name, complete in (("a", True), ("b", False))}
    (note,) = vocabulary_section(facts).prose
    assert note.endswith("only their first words are counted.")


def test_a_corpus_of_sequences_shows_what_was_selected(tmp_path: Path) -> None:
    selections = (
        "selection,source,level,texts,words,counted_words\nc4_spans,c4,span,30,3300,3000\ncbt,cbt,sentence,8,100,90\n"
    )
    corpus = write_corpus(tmp_path / "corpus", [("x", "c4", "train", "A b.")], tables={"selections.csv": selections})
    lines = "R,Table 1,tiny,c4,span,spans,20,count,\nR,Table 1,tiny,total,total,sentences_or_spans,40,count,\n"
    lines += "R,Table 1,tiny,absent,train,words,9,count,\nR,Table 1,tiny,c4,train,words,,,\n"
    lines += "R,Table 1,other,c4,train,words,9,count,\n"
    (tmp_path / "published.csv").write_text(PUBLISHED.splitlines()[0] + "\n" + lines, encoding="utf-8")
    settings = card_settings(corpus="renamed", published_as="tiny")
    described(corpus, tmp_path / "card", settings, published=tmp_path / "published.csv")
    assert [row["ours"] for row in rows_of(tmp_path / "card" / "comparison.csv")] == ["30", "38", "", "2"]
    card = (tmp_path / "card" / "card.md").read_text(encoding="utf-8")
    assert "| c4\\_spans | c4 | span | 30 | 3,300 | 3,000 |" in card
    assert "| R Table 1 | c4 | span | spans | 30 | 20 | +50.0 |" in card
    assert "| R Table 1 | absent | train | words | not measured | 9 |" in card
    assert "| R Table 1 | c4 | train | words | 2 | not printed |" in card


def test_a_corpus_without_any_word_has_a_card(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", [("x", "odd", "train", "..."), ("y", "empty", "train", "")])
    described(corpus, tmp_path / "card")
    assert "There are no samples." not in (tmp_path / "card" / "card.html").read_text(encoding="utf-8")
    assert "| empty | sentences | 0 |" in (tmp_path / "card" / "card.md").read_text(encoding="utf-8")


def test_a_long_document_is_cut_at_line_ends_and_loses_nothing() -> None:
    text = "One two .\n\nThree\nfour five six\n"
    for characters in range(1, 40):
        found = list(blocks(text, characters))
        assert "\n".join(found).rstrip("\n") == text.rstrip("\n")
        assert all(len(block) <= characters + len("four five six\n") for block in found)
    assert len(list(blocks(text, 1))) > 2


def test_the_card_says_how_the_text_was_read_and_what_stands_twice(two_sources: Path, tmp_path: Path) -> None:
    manifest = json.loads(two_sources.read_text())
    write_text(tmp_path / "raw.txt", "raw")
    settings = {"stage": "convert_corpus", "duplicates": "drop_documents"}
    with stage_run(tmp_path / "own" / "manifest.json", settings, {"toy": tmp_path / "raw.txt"}) as run:
        for file in read_manifest(two_sources).outputs:
            (run.folder / file.path.name).write_bytes(file.path.read_bytes())
            run.add_output(run.folder / file.path.name)
        write_text(run.folder / "assumed.csv", "source,assumption,count\nalpha,lines kept as they are,12\n")
        write_text(run.folder / "duplicates.csv", ",".join(HEADER) + "\nalpha,train,9,6,0,5,4,0\n")
        run.add_output(run.folder / "assumed.csv")
        run.add_output(run.folder / "duplicates.csv")
        run.measures.update(manifest["measures"])
    for corpus, told in ((tmp_path / "own" / "manifest.json", True), (two_sources, False)):
        folder = described(corpus, tmp_path / f"card-{told}")
        for name in ("card.html", "card.md"):
            assert ("lines kept as they are" in (folder / name).read_text()) == told
            assert ("Repeated text" in (folder / name).read_text()) == told
        if told:
            rows = [line.replace("|", " ").split() for line in (folder / "card.md").read_text().split("\n")]
            assert ["alpha", "train", "9", "6", "0", "5", "4", "0"] in rows
            assert "Repeated documents were excluded." in (folder / "card.md").read_text()
            # SHA-256 of the three bytes "raw".
            assert ["input", "'toy'", "of", "the", "corpus", RAW_SHA256] in rows


def test_the_card_counts_words_by_the_rule_of_the_corpus(two_sources: Path, tmp_path: Path) -> None:
    premiums = {"alpha": 1.0, "beta": 0.9359664}
    adjusted = card_settings(counting={"word_count": "adjusted", "byte_premiums": premiums})
    made = described(two_sources, tmp_path / "adjusted", adjusted)
    card = (made / "card.md").read_text(encoding="utf-8")
    # Bytes over 5.43 bytes per word: 27 and 21 are 4.97 and 3.87 words. With 5.0823, 20 + 12 bytes are 6.30 words.
    table = card.partition("## Words of budgets and tracks")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines() if row.startswith("|")]
    assert rows[2:] == [
        ["alpha", "train", "1.0", "5"],
        ["alpha", "dev", "1.0", "4"],
        ["beta", "train", "0.9359664", "7"],
    ]
    measures = read_manifest(made / "manifest.json").measures
    assert (measures["word_count"], measures["words_by_rule"]) == ("adjusted", {"train": 12, "dev": 4})
    # Each split begins with a word, although the five bytes of both splits together are less than one word.
    short = write_corpus(tmp_path / "short", [("a", "alpha", "train", "abc"), ("b", "alpha", "dev", "de")])
    made = described(short, tmp_path / "short_card", adjusted)
    assert read_manifest(made / "manifest.json").measures["words_by_rule"] == {"train": 1, "dev": 1}
    made = described(two_sources, tmp_path / "jieba", card_settings(counting={"word_count": "jieba"}))
    # Words by jieba: The cat sat . The dog ran !, and It ' s a cat , [ UNK ] . with # So 5 cats.
    measures = read_manifest(made / "manifest.json").measures
    assert (measures["word_count"], measures["words_by_rule"]) == ("jieba", {"train": 8 + 10 + 4, "dev": 7})


def test_the_card_sums_documents_by_licence(tmp_path: Path) -> None:
    licences = csv_text(
        ("source", "licence", *("documents", "words", "characters")), [("alpha", "", 1, 2, 3), ("beta", "MIT", 4, 5, 6)]
    )
    corpus = write_corpus(tmp_path / "licensed", TWO_SOURCES, tables={"licences.csv": licences})
    card = (described(corpus, tmp_path / "card") / "card.md").read_text(encoding="utf-8")
    found = card.partition("## Licences of the documents")[2].partition("\n## ")[0]
    assert [row.split() for row in found.splitlines() if "|" in row][2:] == [
        ["|", "alpha", "|", "not", "stated", "|", "1", "|", "2", "|", "3", "|"],
        ["|", "beta", "|", "MIT", "|", "4", "|", "5", "|", "6", "|"],
    ]

"""Draws from documents: splits depend on their texts, samples on their names."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from projects import rows_of
from stage_command import given_json, stage_command

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.artifacts.parquet import read_rows
from hatchery.corpora.corpus_writer import CorpusWriter, Splitter, document_row, point
from hatchery.corpora.sampling import NOT_DRAWN, Drawing
from hatchery.corpora.settings import SamplePart, SampleSettings, SplitSettings
from hatchery.corpora.stages.sample_corpus import sample_corpus
from hatchery.errors import ConfigError, CorpusError, ManifestError
from hatchery.typed import build


def splits_of(settings: SplitSettings, texts: Sequence[str], all_points: Sequence[int] = ()) -> list[str]:
    splitter = Splitter(settings, np.array(all_points, dtype=np.uint64))
    return [splitter(point(settings.seed, text)) for text in texts]


def test_shares_are_those_of_the_settings() -> None:
    settings = SplitSettings(development_fraction=0.2, test_fraction=0.1, seed=1)
    splits = splits_of(settings, [f"document-{index}" for index in range(4000)])
    assert splits.count("dev") / 4000 == pytest.approx(0.2, abs=0.03)
    assert splits.count("test") / 4000 == pytest.approx(0.1, abs=0.03)


@given(st.text(max_size=20), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_document_never_leaves_training_when_the_fractions_shrink(name: str, development: float, test: float) -> None:
    assume(development + test < 1)
    (large,) = splits_of(SplitSettings(development, test), [name])
    (small,) = splits_of(SplitSettings(development / 2, 0.0), [name])
    assert small in ("train", "dev")
    assert large != "train" or small == "train"


def test_another_seed_draws_another_split() -> None:
    draws = [splits_of(SplitSettings(0.5, 0.0, seed), list(map(str, range(64)))) for seed in (0, 1)]
    assert draws[0] != draws[1]


def test_fractions_above_1_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="fraction"):
        build(SplitSettings, {"development_fraction": 0.7, "test_fraction": 0.7})


def test_an_exact_number_of_development_documents_is_met_whatever_the_order() -> None:
    settings = SplitSettings(seed=3, development_documents=35)
    names = [f"text-{index}" for index in range(4049)]
    points = [point(3, name) for name in names]
    splits = splits_of(settings, names, points)
    assert splits.count("dev") == 35
    assert splits == splits_of(settings, names, points[::-1])


@pytest.mark.parametrize(
    ("wanted", "points", "most"), [(3, [5, 6], 1), (3, [5, 6, 7], 2), (2, [5, 9, 9], 1), (1, [9, 9], 0), (1, [], 0)]
)
def test_development_documents_that_leave_no_training_text_are_refused(
    wanted: int, points: list[int], most: int
) -> None:
    expected = rf"development_documents: got {wanted}, expected at most {most}, so that one of the {len(points)} doc"
    with pytest.raises(CorpusError, match=expected):
        Splitter(SplitSettings(development_documents=wanted), np.array(points, dtype=np.uint64))
    if most:
        splitter = Splitter(SplitSettings(development_documents=most), np.array(points, dtype=np.uint64))
        assert [splitter(place) for place in points].count("dev") == most


def test_a_fraction_above_zero_gives_the_document_with_the_smallest_draw_at_least() -> None:
    names = [f"text-{index}" for index in range(30)]
    for seed in range(20):
        settings = SplitSettings(development_fraction=0.01, seed=seed)
        points = [point(seed, name) for name in names]
        held_out, by_fraction = (
            [name for name, split in zip(names, splits_of(settings, names, given), strict=True) if split == "dev"]
            for given in (points, ())
        )
        assert held_out == (by_fraction or [min(names, key=lambda name: point(seed, name))])
    none = SplitSettings(development_fraction=0.0)
    assert set(splits_of(none, names, points)) == {"train"}


Rows = list[dict[str, Any]]


def corpus(folder: Path, rows: Rows, documents_per_shard: int = 1000) -> Manifest:
    with (
        stage_run(folder / "manifest.json", {"stage": "convert_corpus", "stage_version": 1}) as run,
        CorpusWriter(run, list(dict.fromkeys(row["source"] for row in rows)), documents_per_shard) as writer,
    ):
        for row in rows:
            writer.write(row)
    return read_manifest(folder / "manifest.json")


def articles(number: int = 120) -> Rows:
    rows = []
    for index in range(number):
        source = "books" if index % 4 == 0 else "wiki"
        split = "dev" if index % 10 == 3 else "test" if index % 20 == 5 else "train"
        rows.append(
            document_row(f"{source}/a/{index:04d}", source, split, f"Nr {index} ü.\n\n" + "word " * (index % 50))
        )
    return rows


def sampled(folder: Path, manifest: Manifest, size_of: Manifest | None = None, **options: Any) -> Manifest:
    with stage_run(folder / "manifest.json", {"stage": "sample_corpus", "stage_version": 1}) as run:
        sample_corpus(build(SampleSettings, options), manifest, size_of, run)
    return read_manifest(folder / "manifest.json")


def documents(manifest: Manifest, splits: Sequence[str] = ("train", "dev", "test")) -> Rows:
    return [row for split in splits for path in manifest.files(".parquet", f"{split}-") for row in read_rows(path)]


def test_documents_are_drawn_until_the_characters_are_reached(tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles())
    sample = sampled(tmp_path / "sample", source, characters=5000)
    found = documents(sample)
    total = sum(len(row["text"]) for row in found)
    assert total >= 5000
    assert total - max(len(row["text"]) for row in found) < 5000
    assert sample.measures["sample"] == {"wanted_characters": 5000, "characters": total, "documents_drawn_from": 120}
    # The sample contains whole documents, unchanged, with their splits and in their order.
    drawn = {row["doc_id"] for row in found}
    assert found == [row for row in documents(source) if row["doc_id"] in drawn]
    assert {row["source"] for row in found} == {"books", "wiki"}


def test_the_last_document_drawn_is_the_one_that_reaches_the_number(tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles())
    smaller = {row["doc_id"]: len(row["text"]) for row in documents(sampled(tmp_path / "a", source, characters=3000))}
    total = sum(smaller.values())
    exact = documents(sampled(tmp_path / "b", source, characters=total))
    assert {row["doc_id"] for row in exact} == set(smaller)
    larger = documents(sampled(tmp_path / "c", source, characters=total + 1))
    assert len(larger) == len(smaller) + 1
    assert {row["doc_id"] for row in larger} > set(smaller)


def test_the_choice_does_not_depend_on_shards_order_or_other_documents(tmp_path: Path) -> None:
    rows = articles()
    whole = sampled(tmp_path / "a", corpus(tmp_path / "one", rows), characters=6000)
    cut = sampled(tmp_path / "b", corpus(tmp_path / "many", rows, documents_per_shard=3), characters=6000)
    assert [(output.path.name, output.sha256) for output in whole.outputs] == [
        (output.path.name, output.sha256) for output in cut.outputs
    ]
    backwards = sampled(tmp_path / "c", corpus(tmp_path / "backwards", rows[::-1]), characters=6000)
    assert {row["doc_id"] for row in documents(backwards)} == {row["doc_id"] for row in documents(whole)}


def test_seeds_draw_different_documents(tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles())
    drawn = [
        {row["doc_id"] for row in documents(sampled(tmp_path / str(seed), source, characters=5000, seed=seed))}
        for seed in range(3)
    ]
    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]


def test_the_size_is_that_of_another_corpus(tmp_path: Path) -> None:
    other = corpus(tmp_path / "other", articles(40))
    source = corpus(tmp_path / "all", articles())
    wanted = sum(other.measures[split]["characters"] for split in ("train", "dev", "test"))
    assert sampled(tmp_path / "a", source, other).measures["sample"]["wanted_characters"] == wanted
    training = sampled(tmp_path / "b", source, other, size_of_splits=["train"])
    assert training.measures["sample"]["wanted_characters"] == other.measures["train"]["characters"]


def test_splits_that_are_not_drawn_from_stay_whole_with_the_same_bytes(tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles())
    samples = [sampled(tmp_path / f"{size}", source, characters=size, drawn_splits=["train"]) for size in (1000, 5000)]
    held_out = [row for row in documents(source) if row["split"] != "train"]
    for size, sample in zip((1000, 5000), samples, strict=True):
        found = documents(sample)
        assert [row for row in found if row["split"] != "train"] == held_out
        training = sum(len(row["text"]) for row in found if row["split"] == "train")
        assert size <= training < size + 250
        assert sample.measures["sample"]["characters"] == training
        assert sample.measures["sample"]["documents_drawn_from"] == len(articles()) - len(held_out)
    small, large = (
        [(output.path.name, output.sha256) for output in sample.outputs if output.path.name.startswith("dev-")]
        for sample in samples
    )
    assert small == large != []
    with pytest.raises(ConfigError, match=r"split: got \{\}, which cannot be combined with `drawn_splits`"):
        build(SampleSettings, {"characters": 9, "drawn_splits": ["train"], "split": {}})


def test_what_is_not_drawn_is_counted_and_shown(tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles())
    sample = sampled(tmp_path / "sample", source, characters=4000)
    drawn = Counter(row["source"] for row in documents(sample))
    everything = Counter(row["source"] for row in documents(source))
    rejected = {row["source"]: (row["reason"], int(row["count"])) for row in rows_of(sample.file("rejected.csv"))}
    assert rejected == {name: (NOT_DRAWN, everything[name] - drawn[name]) for name in everything}
    shown = [row["text"] for row in rows_of(sample.file("samples.csv")) if row["outcome"] == "rejected"]
    assert len(shown) == 10
    assert not {row["text"][:300] for row in documents(sample)} & set(shown)


def test_new_splits_are_drawn_apart_from_the_sample(tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles(600))
    sample = sampled(tmp_path / "a", source, characters=30_000, split={"development_fraction": 0.5, "seed": 0})
    counts = [sample.measures[split]["documents"] for split in ("train", "dev", "test")]
    # If one draw chose the documents and also their splits, all of them would be development documents.
    assert counts[2] == 0
    assert 0.3 < counts[1] / sum(counts) < 0.7
    # The seed of the split changes the splits, but not the drawn documents.
    exact = sampled(tmp_path / "b", source, characters=30_000, split={"development_documents": 7, "seed": 5})
    assert {row["doc_id"] for row in documents(exact)} == {row["doc_id"] for row in documents(sample)}
    assert exact.measures["dev"]["documents"] == 7
    assert exact.measures["train"]["documents"] == sum(counts) - 7


@pytest.mark.parametrize("seed", range(4))
def test_new_splits_hold_out_one_document_at_least(seed: int, tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles())
    split = {"development_fraction": 0.001, "seed": seed}
    sample = sampled(tmp_path / "a", source, characters=1000, split=split)
    assert sample.measures["dev"]["documents"] == 1
    assert sample.measures["train"]["documents"] > 1


def test_a_sample_of_one_document_says_what_to_do(tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles())
    with pytest.raises(CorpusError, match=r"only one document.*draw more characters.*development_fraction to 0"):
        sampled(tmp_path / "a", source, characters=1, split={"development_fraction": 0.05})


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=40), st.integers(1, 700))
def test_documents_are_drawn_until_the_sum_is_reached(documents: list[tuple[int, int]], wanted: int) -> None:
    drawing = Drawing()
    for place, characters in documents:
        drawing.add(place, characters, "s")
    if sum(characters for _, characters in documents) < wanted:
        with pytest.raises(CorpusError, match="fewer than the"):
            drawing.of_size(wanted)
        return
    drawn = drawing.of_size(wanted)
    chosen = [document for document, is_drawn in zip(documents, drawn, strict=True) if is_drawn]
    last = max(place for place, _ in chosen)
    assert chosen == [document for document in documents if document[0] <= last]
    assert sum(characters for _, characters in chosen) >= wanted
    assert sum(characters for place, characters in chosen if place < last) < wanted


def test_of_each_language_as_many_bytes_are_drawn_as_its_adjusted_words_allow(tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles())
    parts = {"dutch": {"sources": ["wiki"], "bytes": 3000}, "english": {"sources": ["books"], "bytes": 1000}}
    sample = sampled(tmp_path / "sample", source, parts=parts)
    found, largest = documents(sample), max(len(row["text"].encode()) for row in documents(source))
    measured = sample.measures["sample"]
    for name, part in parts.items():
        texts = [row["text"].encode() for row in found if row["source"] in part["sources"]]
        assert part["bytes"] - largest < sum(map(len, texts)) == measured["bytes"][name] <= part["bytes"]
    # The documents drawn from a language do not depend on the other languages; unnamed languages are left out.
    alone = sampled(tmp_path / "alone", source, parts={"dutch": parts["dutch"]})
    assert documents(alone) == [row for row in found if row["source"] == "wiki"]
    wrong: list[tuple[type[Exception], str, Any]] = [
        (
            CorpusError,
            r"english has [\d,]+ bytes in 30 documents, fewer than the 999,999 bytes to draw",
            {"bytes": 999_999},
        ),
        (ConfigError, "parts.english.sources: got 'letters', the corpus has documents of: books, wiki", SOME),
    ]
    for error, message, change in wrong:
        with pytest.raises(error, match=message):
            sampled(tmp_path / "wrong", source, parts={"english": parts["english"] | change})


@pytest.mark.parametrize(("wanted", "expected"), [(1, []), (7, ["ж"]), (8, ["ж", "中中"]), (10, ["ж", "中中", "é"])])
def test_a_part_may_have_exactly_its_bytes_and_characters_are_no_bytes(wanted: int, expected: list[str]) -> None:
    """Texts of 2, 6 and 2 bytes, or 1, 2 and 1 characters, in the order of the draw."""
    drawing = Drawing()
    for place, text in enumerate(("ж", "中中", "é")):
        # The documents of the two sources of a part are drawn together.
        drawing.add(place, len(text.encode()), "st"[place % 2])
    parts = {"all": SamplePart(sources=("s", "t"), bytes=wanted)}
    drawn = drawing.of_parts(parts)
    assert [text for text, is_drawn in zip(("ж", "中中", "é"), drawn, strict=True) if is_drawn] == expected
    assert drawing.bytes_of(drawn, parts) == {"all": {"": 0, "ж": 2, "ж中中": 8, "ж中中é": 10}["".join(expected)]}
    with pytest.raises(CorpusError, match="all has 10 bytes in 3 documents, fewer than the 11"):
        drawing.of_parts({"all": SamplePart(sources=("s", "t"), bytes=11)})
    assert drawing.of_size(10).all()


SOME = {"sources": ["letters"]}


def test_a_corpus_that_is_too_small_is_one_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles(10))
    with pytest.raises(CorpusError, match=r"the corpus has [\d,]+ characters in 10 documents, fewer than the 999,999"):
        sampled(tmp_path / "sample", source, characters=999_999)
    assert list((tmp_path / "sample").iterdir()) == []


def test_wrong_sizes_and_inputs_of_another_kind_are_named(tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles(10))
    with pytest.raises(ConfigError, match="characters, size_of: expected exactly one"):
        sampled(tmp_path / "a", source)
    with pytest.raises(ConfigError, match="characters, size_of: expected exactly one"):
        sampled(tmp_path / "a", source, source, characters=5)
    with stage_run(tmp_path / "tokens" / "manifest.json", {"stage": "encode_corpus"}):
        pass
    with pytest.raises(ManifestError, match=r"tokens/manifest\.json: not the manifest of a corpus: .* 'train'"):
        sampled(tmp_path / "a", source, read_manifest(tmp_path / "tokens" / "manifest.json"))
    assert list((tmp_path / "a").iterdir()) == []


def test_the_command_writes_a_sample(tmp_path: Path) -> None:
    source = corpus(tmp_path / "all", articles())
    other = corpus(tmp_path / "other", articles(30))
    output = tmp_path / "sample" / "manifest.json"
    settings = {"stage": "sample_corpus", "stage_version": 1, "seed": 3}
    command = stage_command("sample_corpus", settings, output, corpus=source.path)
    forked.run([*command, given_json({"size_of": other.path})], check=True, capture_output=True)
    sample = read_manifest(output)
    sample.verify()
    assert sample.inputs.keys() == {"corpus", "size of"}
    wrong = forked.run(command, capture_output=True, text=True, check=False)
    assert wrong.returncode == 1
    assert wrong.stderr.splitlines()[-1].startswith("error: characters, size_of: expected exactly one")

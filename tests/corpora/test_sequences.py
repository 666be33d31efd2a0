"""Corpora of sequences: separate levels, exact held-out numbers, quotas, and equal bytes for any shard layout."""

from collections import Counter
from collections.abc import Sequence as Items
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from projects import rows_of

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.artifacts.parquet import ShardWriter, read_rows
from hatchery.corpora.settings import SequenceSettings
from hatchery.corpora.stages.group_sequences import group_sequences
from hatchery.errors import ConfigError, CorpusError, ManifestError
from hatchery.typed import build

ITEMS = pa.schema(
    [
        ("source", pa.string()),
        ("document", pa.string()),
        ("unit", pa.int32()),
        ("text", pa.string()),
        ("n_words", pa.int32()),
        ("n_counted", pa.int32()),
    ]
)


def words(number: int) -> str:
    return " ".join(["w"] * number)


def selection(
    folder: Path,
    rows: Items[dict[str, Any]],
    rows_per_shard: int = 1000,
    counts: str = "",
    samples: str = "",
) -> Manifest:
    with stage_run(folder / "manifest.json", {"stage": "select_text", "stage_version": 1}) as run:
        with ShardWriter(folder, "items", ITEMS, rows_per_shard) as writer:
            for row in rows:
                writer.write(row)
        for path in writer.paths:
            run.add_output(path)
        write_text(run.add_output(folder / "counts.csv"), f"measure,value\n{counts}")
        write_text(run.add_output(folder / "samples.csv"), f"outcome,reason,text\n{samples}")
    return read_manifest(folder / "manifest.json")


def items(name: str, number: int, size: int = 30, unit_size: int = 50) -> list[dict[str, Any]]:
    return [
        {
            "source": name.split("_")[0],
            "document": f"d{index // 7}",
            "unit": index // unit_size,
            "text": f"{name} {index} {words(size - 2)}",
            "n_words": size,
            "n_counted": size - 1,
        }
        for index in range(number)
    ]


def settings(**changes: Any) -> SequenceSettings:
    groups = [
        {"level": "sentence", "selections": ["web_sentences", "books"], "development": 7, "test": 5},
        {"level": "span", "selections": ["web_spans"], "development": 3, "test": 2},
    ]
    return build(SequenceSettings, {"groups": groups, "documents_per_shard": 40, **changes})


@pytest.fixture
def three(tmp_path: Path) -> dict[str, Manifest]:
    return {
        "web_sentences": selection(tmp_path / "web_sentences", items("web_sentences", 200)),
        "books": selection(tmp_path / "books", items("books", 90, size=20)),
        "web_spans": selection(tmp_path / "web_spans", items("web_spans", 40, size=110)),
    }


def made(
    folder: Path, chosen: SequenceSettings, selections: dict[str, Manifest], held_out: Manifest | None = None
) -> Manifest:
    with stage_run(folder / "manifest.json", {"stage": "group_sequences", "stage_version": 1}) as run:
        group_sequences(chosen, selections, held_out, run)
    return read_manifest(folder / "manifest.json")


def documents(manifest: Manifest, split: str) -> list[dict[str, Any]]:
    return [row for path in manifest.files(".parquet", f"{split}-") for row in read_rows(path)]


def test_levels_are_grouped_apart_and_held_out_numbers_are_exact(tmp_path: Path, three: dict[str, Manifest]) -> None:
    corpus = made(tmp_path / "out", settings(), three)
    # 3 sentences of 30 words or 5 of 20 fill a sequence; each span is a sequence.
    assert corpus.measures["levels"] == {
        "sentence": {"texts": 290, "sequences": 67 + 18},
        "span": {"texts": 40, "sequences": 40},
    }
    for split, sentence_level, span_level in (("dev", 7, 3), ("test", 5, 2), ("train", 85 - 12, 40 - 5)):
        sources = Counter(row["source"] == "web_spans" for row in documents(corpus, split))
        assert sources == {False: sentence_level, True: span_level}
    lines = [line for split in ("train", "dev", "test") for row in documents(corpus, split) for line in row_lines(row)]
    texts = [
        row["text"] for manifest in three.values() for path in manifest.files(".parquet") for row in read_rows(path)
    ]
    assert sorted(lines) == sorted(texts)
    train = documents(corpus, "train")
    assert [row["doc_id"] for row in train] == sorted(
        (row["doc_id"] for row in train),
        key=lambda name: (["web_sentences", "books", "web_spans"].index(name.split("/")[0]), name),
    )
    assert list((tmp_path / "out").glob(".grouping*")) == []


def row_lines(row: dict[str, Any]) -> list[str]:
    return row["text"].split("\n")


def test_the_tables_say_what_was_grouped(tmp_path: Path, three: dict[str, Manifest]) -> None:
    corpus = made(tmp_path / "out", settings(), three)
    assert rows_of(corpus.file("selections.csv")) == [
        {
            "selection": name,
            "source": source,
            "level": level,
            "texts": texts,
            "words": all_words,
            "counted_words": counted,
        }
        for name, source, level, texts, all_words, counted in [
            ("web_sentences", "web", "sentence", "200", "6000", "5800"),
            ("books", "books", "sentence", "90", "1800", "1710"),
            ("web_spans", "web", "span", "40", "4400", "4360"),
        ]
    ]
    statistics = rows_of(corpus.file("statistics.csv"))
    assert sum(int(row["words"]) for row in statistics) == 6000 + 1800 + 4400
    assert {row["source"] for row in statistics} == {"web_sentences", "books", "web_spans"}
    assert rows_of(corpus.file("rejected.csv")) == []


def test_held_out_shares_scale_with_the_corpus(tmp_path: Path, three: dict[str, Manifest]) -> None:
    groups = [
        {"level": "sentence", "selections": ["web_sentences", "books"], "development": 0.1, "test": 0.05},
        {"level": "span", "selections": ["web_spans"]},
    ]
    corpus = made(tmp_path / "out", settings(groups=groups), three)
    counts = [corpus.measures[split]["documents"] for split in ("dev", "test", "train")]
    assert counts == [9, 4, 85 + 40 - 13]  # 10 % and 5 % of 85 are 8.5 and 4.25


@pytest.mark.parametrize("reading", ["corrected", "as_published"])
def test_bytes_do_not_depend_on_how_the_selections_are_cut(tmp_path: Path, reading: str) -> None:
    digests = []
    for rows_per_shard in (1000, 7):
        root = tmp_path / str(rows_per_shard)
        cut = {
            name: selection(root / name, items(name, 120, size), rows_per_shard)
            for name, size in (("web_sentences", 25), ("books", 20), ("web_spans", 110))
        }
        corpus = made(root / "out", settings(reading=reading), cut)
        digests.append([(output.path.name, output.sha256) for output in corpus.outputs])
    assert digests[0] == digests[1]


def test_another_seed_holds_out_other_sequences_of_the_same_grouping(
    tmp_path: Path, three: dict[str, Manifest]
) -> None:
    first, second = (made(tmp_path / str(seed), settings(seed=seed), three) for seed in (0, 1))

    def all_texts(corpus: Manifest) -> list[str]:
        return sorted(row["text"] for split in ("train", "dev", "test") for row in documents(corpus, split))

    assert all_texts(first) == all_texts(second)
    assert {row["doc_id"] for row in documents(first, "dev")} != {row["doc_id"] for row in documents(second, "dev")}


def test_the_published_reading_shuffles_within_units_and_tells_what_is_lost(
    tmp_path: Path, three: dict[str, Manifest]
) -> None:
    corpus = made(tmp_path / "out", settings(reading="as_published"), three)
    groups = [{"level": "sentence", "selections": ["web_sentences"]}]
    one = made(
        tmp_path / "one", settings(reading="as_published", groups=groups), {"web_sentences": three["web_sentences"]}
    )
    text = "".join(row["text"] for row in documents(one, "train"))
    numbers = [int(part.split()[0]) for part in text.split("web_sentences ")[1:]]
    # Blocks of 50 units follow one another, each shuffled; the last, partial sequence, with two sentences, is lost.
    assert len(numbers) == 198
    for start in (0, 50, 100):
        assert sorted(numbers[start : start + 50]) == list(range(start, start + 50))
        assert numbers[start : start + 50] != sorted(numbers[start : start + 50])
    # The first sequence of spans is empty, and each level loses its last, partial sequence.
    everything = [row for split in ("train", "dev", "test") for row in documents(corpus, split)]
    assert [row["doc_id"] for row in everything if not row["text"]] == ["web_spans/00000000"]
    lost = {(row["source"], row["reason"]): int(row["count"]) for row in rows_of(corpus.file("rejected.csv"))}
    partial = "in the last, partial sequence"
    kept = sum(row["text"].count("books ") for row in everything)
    assert lost == {("books", partial): 90 - kept, ("web_spans", partial): 1}


def test_seed_level_and_selection_each_draw_other_items(tmp_path: Path) -> None:
    # Of the 40 items of a selection, 20 are drawn, and of the 40 sequences of a level, 8 are held out. An item is a
    # sequence.
    names = ("web_sentences", "books", "web_spans", "wiki")
    chosen = {name: selection(tmp_path / name, items(name, 40, size=110)) for name in names}
    quotas, held_out = [], []
    for seed in (0, 1):
        groups = [
            {"level": level, "selections": list(pair), "quotas": dict.fromkeys(pair, 20), "development": 8}
            for level, pair in (("sentence", names[:2]), ("span", names[2:]))
        ]
        corpus = made(tmp_path / f"out{seed}", settings(groups=groups, seed=seed), chosen)
        rows = [row for split in ("train", "dev") for row in documents(corpus, split)]
        quotas += [{row["text"].split()[1] for row in rows if row["source"] == name} for name in names]
        # The sequences of a level's second selection follow the 20 sequences of the first.
        first = {name: 20 * (names.index(name) % 2) for name in names}
        dev = [(row["source"], first[row["source"]] + int(row["doc_id"][-8:])) for row in documents(corpus, "dev")]
        held_out += [{place for name, place in dev if name in pair} for pair in (names[:2], names[2:])]
    assert {len(quota) for quota in quotas} == {20} and len({frozenset(quota) for quota in quotas}) == 8
    assert {len(places) for places in held_out} == {8} and len({frozenset(places) for places in held_out}) == 4


def test_quotas_are_drawn_at_random_and_grouping_stops_at_the_maximum(
    tmp_path: Path, three: dict[str, Manifest]
) -> None:
    groups = [
        {
            "level": "span",
            "selections": ["books", "web_spans"],
            "quotas": {"books": 25, "web_spans": 30},
            "maximum_sequences": 20,
            "set_aside": 4,
        }
    ]
    corpus = made(tmp_path / "out", settings(groups=groups), {name: three[name] for name in ("books", "web_spans")})
    assert corpus.measures["levels"] == {"span": {"texts": 55, "sequences": 20}}
    assert corpus.measures["train"]["documents"] == 16
    rejected: Counter[str] = Counter()
    for row in rows_of(corpus.file("rejected.csv")):
        rejected[row["reason"]] += int(row["count"])
    # 25 books of 20 words fill 5 sequences, so 15 of the 30 spans are drawn.
    assert rejected == {
        "not drawn for the quota": 65 + 10,
        "after the last sequence that was wanted": 15,
        "set aside": 4,
    }
    indices = [int(line.split()[1]) for row in documents(corpus, "train") for line in row_lines(row)]
    assert max(indices) > 50  # not only the first units of the selection


def test_held_out_sequences_of_another_corpus_are_taken_over(tmp_path: Path, three: dict[str, Manifest]) -> None:
    constrained = made(tmp_path / "constrained", settings(), three)
    free = {"web_windows": selection(tmp_path / "web_windows", items("web_windows", 50, size=110))}
    groups = [{"level": "span", "selections": ["web_windows"], "set_aside": 10}]
    corpus = made(tmp_path / "out", settings(groups=groups), free, constrained)
    for split in ("dev", "test"):
        assert documents(corpus, split) == documents(constrained, split)
    assert corpus.measures["train"]["documents"] == 40
    statistics = {
        (row["source"], row["split"]): int(row["documents"]) for row in rows_of(corpus.file("statistics.csv"))
    }
    assert statistics["web_spans", "dev"] == 3
    with pytest.raises(ConfigError, match="development, test: got a number above 0, expected 0 with held_out_from"):
        made(tmp_path / "x", settings(), three, constrained)
    groups = [{"level": "span", "selections": ["books"]}]
    with pytest.raises(ConfigError, match=r"held_out_from: the selection 'books' is in this corpus and in"):
        made(tmp_path / "y", settings(groups=groups), {"books": three["books"]}, constrained)


def test_too_few_sequences_are_one_clear_error_and_leave_nothing(tmp_path: Path, three: dict[str, Manifest]) -> None:
    groups = [{"level": "span", "selections": ["web_spans"], "development": 30, "test": 10}]
    with pytest.raises(
        CorpusError,
        match=r"level 'span': got 30 \(development\) \+ 10 \(test\) .*of 40 sequences, which leaves no sequence",
    ) as caught:
        made(tmp_path / "out", settings(groups=groups), {"web_spans": three["web_spans"]})
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "out").iterdir()) == []
    groups = [{"level": "span", "selections": ["web_spans"], "quotas": {"web_spans": 41}}]
    with pytest.raises(
        CorpusError, match="selection 'web_spans': got the quota 41, expected at most 40, the number of texts"
    ):
        made(tmp_path / "out", settings(groups=groups), {"web_spans": three["web_spans"]})


def test_selections_of_another_kind_are_named(tmp_path: Path, three: dict[str, Manifest]) -> None:
    shard = three["books"].files(".parquet")[0]
    pq.write_table(pa.table({"text": ["x"]}), shard)
    with stage_run(shard.with_name("manifest.json"), {}) as run:
        run.add_output(shard)
    other = {**three, "books": read_manifest(shard.with_name("manifest.json"))}
    with pytest.raises(
        ManifestError,
        match=r"the file does not contain the items of a text selection .*: the column 'n_counted' is missing",
    ):
        made(tmp_path / "out", settings(), other)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"groups": [{"level": "span", "selections": ["a"]}, {"level": "span", "selections": ["b"]}]},
            "expected each level only once",
        ),
        (
            {"groups": [{"level": "span", "selections": ["a"], "quotas": {"b": 1}}]},
            r"quotas\.b: got the name 'b', expected a selection of the same group: a",
        ),
    ],
)
def test_wrong_settings_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(**changes)


ONE_LEVEL = settings(groups=[{"level": "sentence", "selections": ["books"]}])


def test_what_the_selections_had_left_out_stands_in_the_tables_of_the_corpus(tmp_path: Path) -> None:
    chosen = selection(
        tmp_path / "books",
        items("books", 200),
        counts="documents,9\nout_of_vocabulary,41\ntoo_short,0\naccepted,200\n",
        samples="accepted,,fine words\nrejected,out_of_vocabulary,the zygote divides\n",
    )
    made(tmp_path / "out", ONE_LEVEL, {"books": chosen})
    assert "books,not selected: out of vocabulary,41\n" in (tmp_path / "out" / "rejected.csv").read_text()
    assert "too short" not in (tmp_path / "out" / "rejected.csv").read_text()
    samples = (tmp_path / "out" / "samples.csv").read_text()
    assert "books,rejected,not selected: out of vocabulary,the zygote divides\n" in samples

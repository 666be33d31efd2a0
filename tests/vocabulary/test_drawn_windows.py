"""Windows that a selection draws from documents, blocks of documents and whole corpora."""

from collections import Counter

import pytest
from selection_cases import WORDS, Select, items, json_lines, texts

from hatchery.corpora.raw_texts import RawTextOptions
from hatchery.vocabulary.comparison import windows


def test_windows_are_drawn_without_replacement_from_each_document(select: Select) -> None:
    pages = [" ".join(f"w{page}x{word}" for word in range(40)) for page in range(6)]
    changes = {"level": "windows", "window_words": 8, "stride_words": 3, "windows_per_text": 4, "lower_case": False}
    manifest = select({"p.json.gz": json_lines(pages)}, WORDS, **changes)
    drawn = items(manifest)
    assert Counter(item["document"] for item in drawn) == {f"p.json.gz/{page:08d}": 4 for page in range(6)}
    assert len({item["text"] for item in drawn}) == len(drawn)
    for item in drawn:
        assert item["text"] in list(windows(pages[item["unit"]], 8, 3))
    assert manifest.measures["candidates"] == 6 * 14
    assert manifest.measures["not_drawn"] == 6 * 10
    other = select({"p.json.gz": json_lines(pages)}, WORDS, folder="other", seed=1, **changes)
    assert texts(other) != texts(manifest)
    # Each text has an independent draw.
    places = [
        tuple(item["text"].partition("x")[2].partition(" ")[0] for item in drawn[4 * page :][:4]) for page in range(6)
    ]
    assert len(set(places)) > 1


def test_windows_of_equal_files_are_drawn_apart(select: Select) -> None:
    pages = [" ".join(f"w{page}x{word}" for word in range(40)) for page in range(6)]
    changes = {"level": "windows", "window_words": 8, "stride_words": 3, "windows_per_text": 4}
    drawn = texts(select({f"{name}.json.gz": json_lines(pages) for name in "pq"}, WORDS, **changes))
    assert len(drawn) == 48 and drawn[:24] != drawn[24:]
    # The same holds if all files are one text: 40 of the windows of both files are drawn.
    changes |= {"documents_per_text": None, "windows_per_text": 40}
    one = items(select({f"{name}.json.gz": json_lines(pages) for name in "pq"}, WORDS, folder="one", **changes))
    of_p, of_q = ({item["text"] for item in one if item["document"][0] == name} for name in "pq")
    assert len(of_p) + len(of_q) == 40 and of_p != of_q


def test_a_document_with_fewer_windows_gives_all_it_has(select: Select) -> None:
    changes = {"level": "windows", "window_words": 4, "stride_words": 2, "windows_per_text": 99}
    manifest = select({"p.json.gz": json_lines(["A b c d e"])}, WORDS, **changes)
    assert texts(manifest) == ["a b c d", "c d e", "e"]


@pytest.mark.parametrize("lower_case", [False, True])
def test_drawn_windows_of_known_words_and_without_a_hyperlink_are_counted(select: Select, lower_case: bool) -> None:
    page = "The cat sat on the dog sat on HTTP://cat sat on a a MAT — —"
    changes = {"level": "windows", "window_words": 4, "stride_words": 4, "windows_per_text": 9}
    manifest = select({"p.json.gz": json_lines([page])}, [*WORDS, "http"], **changes, lower_case=lower_case)
    # Only the first and the last window are within the vocabulary: the second has an unknown word, and the third a
    # hyperlink, although `http` is a word. By spaces, each window has four words; the address counts as two words, and
    # dashes do not count.
    assert manifest.measures == {
        "documents": 1,
        "characters": 14 + 1 + 14 + 1 + 19 + 1 + 9,
        "units": 1,
        "candidates": 4,
        "not_drawn": 0,
        "accepted": 4,
        "accepted_words": 16,
        "accepted_counted_words": 4 + 4 + 5 + 2,
        "accepted_characters": 14 + 14 + 19 + 9,
        "accepted_within_vocabulary": 2,
    }


def test_blocks_of_documents_are_joined_before_windows_are_drawn(select: Select) -> None:
    lines = "".join(f"s{index}a s{index}b s{index}c\n" for index in range(5))
    changes = {
        "options": RawTextOptions("sentences"),
        "level": "windows",
        "window_words": 4,
        "stride_words": 4,
        "documents_per_text": 3,
        "windows_per_text": 9,
    }
    manifest = select({"books.txt": lines}, WORDS, **changes)
    assert [(item["document"][-1], item["unit"], item["text"]) for item in items(manifest)] == [
        ("0", 0, "s0a s0b s0c s1a"),
        ("1", 0, "s1b s1c s2a s2b"),
        ("2", 0, "s2c"),
        ("3", 1, "s3a s3b s3c s4a"),
        ("4", 1, "s4b s4c"),
    ]


def test_a_corpus_that_is_one_text_gives_so_many_windows_in_order(select: Select) -> None:
    pages = [f"p{page} " + " ".join(f"w{page}x{word}" for word in range(7)) for page in range(30)]
    changes = {"level": "windows", "window_words": 6, "stride_words": 4, "documents_per_text": None}
    files = {"a.json.gz": json_lines(pages[:20]), "b.json.gz": json_lines(pages[20:])}
    everything = select(files, WORDS, folder="all", windows_per_text=1000, **changes)
    expected = [window for part in (pages[:20], pages[20:]) for window in windows(" ".join(part), 6, 4)]
    assert texts(everything) == expected
    some = select(files, WORDS, windows_per_text=25, **changes)
    assert len(texts(some)) == 25
    places = [expected.index(text) for text in texts(some)]
    assert places == sorted(places) and some.measures["not_drawn"] == len(expected) - 25
    # The draw covers the whole corpus, not only its beginning.
    assert places[-1] > len(expected) // 2
    assert texts(select(files, WORDS, folder="other", windows_per_text=25, seed=1, **changes)) != texts(some)

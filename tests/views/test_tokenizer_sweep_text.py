"""The text of a sweep of tokenizers: each measure is in its column, and the notes have the numbers of the sweep."""

from types import SimpleNamespace
from typing import Any

import pytest

from hatchery.tokenization.selection.frequency_rule import Probe, SearchResult
from hatchery.tokenization.selection.settings import FrequencySearch
from hatchery.tokenization.selection.table import Measures, SelectionRow, SweepFacts
from hatchery.views.tokenizer_sweep import selection_markdown

ROWS = [
    SelectionRow("bpe", 1000, 990, Measures(1.756, 0.11111, 0.22222, 0.33333, 44444, 5.556, 0.06666), "BPE"),
    SelectionRow("bpe", 2000, 1990, Measures(1.5), selected_within_type=True),
    SelectionRow("unigram", None, None, Measures(1.25), "Unigram"),
    SelectionRow("unigram", 3000, 2990, Measures(1.0), selected_within_type=True, final_choice=True),
]
PRINTED = {
    ("BPE", "1000"): {"word_split_ratio": "1.8", "esms": "0.2", "frequency_at_95_percent": "44"},
    ("Unigram", "pretrained"): {"word_split_ratio": "1.3"},
}


def text_of(search: SearchResult | None = None, rule: FrequencySearch | None = None) -> str:
    facts = SweepFacts(5000, 67_890, 127, 301, "our own list")
    settings: Any = SimpleNamespace(name="mine", seed=7, choose_by="esms_definition", frequency_search=rule)
    sweep: Any = SimpleNamespace(rows=ROWS, facts=facts, printed=PRINTED, search=search, final=ROWS[3])
    return selection_markdown(settings, sweep)


def test_each_measure_is_in_its_column_beside_the_published_one() -> None:
    lines = [line.strip("| ").split(" | ") for line in text_of().splitlines() if line.startswith("| ")]
    header, _, *rows = [[cell.strip() for cell in line] for line in lines]
    assert dict(zip(header, rows[0], strict=True)) == {
        "type": "bpe",
        "size": "1,000",
        "word-split ratio": "1.76",
        "published word-split ratio": "1.8",
        "ESMS (published code)": "0.2222",
        "published ESMS": "0.2",
        "ESMS (definition)": "0.1111",
        "ESMS (code, corrected)": "0.3333",
        "frequency at 95 %": "44,444",
        "published frequency": "44",
        "fertility": "5.56",
        "unknown, %": "6.67",
    }
    assert rows[1][:3] == ["**bpe**", "**2,000**", "1.50"] and rows[2][:4] == ["unigram", "pretrained", "1.25", "1.3"]


def test_the_notes_name_the_final_choice_and_the_measured_texts() -> None:
    text = text_of()
    assert text.startswith("# Tokenizer selection: mine\n")
    assert "**Final choice: unigram, 3,000** (highest `esms_definition` among the chosen sizes)." in text
    assert "on 5,000 sequences with 67,890 space-separated words, drawn with seed 7." in text
    assert "on 127 words with 301 morphemes (our own list)." in text
    assert "Largest vocabulary of frequent entries" not in text


@pytest.mark.parametrize(
    ("largest", "found"), [(None, "none from 100 on"), (300, "300"), (400, "400, the end of the range")]
)
def test_the_search_tells_its_range_its_result_and_the_sizes_that_it_tried(largest: int | None, found: str) -> None:
    rule = FrequencySearch(type="bpe", lowest=100, highest=400, step=50, least_frequency=9)
    text = text_of(SearchResult(largest, [Probe(100, 1234), Probe(400, 8)]), rule)
    assert "## Largest vocabulary of frequent entries (bpe)" in text
    assert "entries occur at least 9 times" in text and f": **{found}**. Sizes from 100 to 400 in steps of 50" in text
    assert text.endswith("| 100 | 1,234 |\n| 400 | 8 |\n")

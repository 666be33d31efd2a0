"""The choice rule on Table 6 of the reduced-vocabulary study, on ties, and in general."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.errors import ConfigError
from hatchery.tokenization.selection.settings import CandidateType, SweepSettings
from hatchery.tokenization.selection.table import (
    PRETRAINED,
    Measures,
    best_type,
    chosen_rows,
    closest_size,
    read_published_selection,
)

ratios_by_size = st.dictionaries(st.integers(300, 40000), st.floats(1.0, 3.0), min_size=1, max_size=8)


def test_the_rule_chooses_from_the_published_table_what_the_paper_chose(repository: Path) -> None:
    published = read_published_selection(repository / "config" / "published" / "tokenizers" / "tokenizer_selection.csv")
    types = ("BPE", "WordPiece", "SentencePiece")
    by_size, references = {}, {}
    for (name, size), printed in published.items():
        if name not in types:
            continue
        measures = Measures(float(printed["word_split_ratio"]), esms_published_code=float(printed["esms"]))
        if size == PRETRAINED:
            references[name] = measures
        else:
            by_size[name, int(size)] = measures
    settings = SweepSettings(
        name="table 6",
        types=tuple(
            CandidateType(
                name=name,
                definition={"kind": "byte_bpe", "min_frequency": 0},
                sizes=tuple(size for of, size in by_size if of == name),
                published_as=name,
            )
            for name in types
        ),
    )
    rows = chosen_rows(settings, by_size, references, dict.fromkeys(types, 30000))
    assert len(rows) == 12
    for row in rows:
        printed = published[row.type, row.size_name]
        assert str(int(row.selected_within_type)) == printed["selected_within_type"], row
        assert str(int(row.final_choice)) == printed["final_choice"], row


def test_a_tie_goes_to_the_smaller_size_after_rounding_only() -> None:
    ratios = {17000: 1.166, 16000: 1.174}
    assert closest_size(ratios, 1.168, decimals=2) == 16000
    assert closest_size(ratios, 1.168, decimals=None) == 17000
    assert closest_size({18000: 1.34, 20000: 1.30}, 1.32, decimals=2) == 18000


def test_equal_scores_go_to_the_first_type() -> None:
    assert best_type({"a": 0.1, "b": 0.3, "c": 0.3}) == "b"


def test_nothing_to_choose_from_is_refused() -> None:
    with pytest.raises(ConfigError):
        closest_size({}, 1.0, None)
    with pytest.raises(ConfigError):
        best_type({})


@given(ratios_by_size, st.floats(1.0, 3.0))
def test_no_other_size_is_closer(ratios: dict[int, float], reference: float) -> None:
    chosen = closest_size(ratios, reference, None)
    assert all(abs(ratios[chosen] - reference) <= abs(ratio - reference) + 1e-9 for ratio in ratios.values())
    assert chosen == closest_size(dict(reversed(list(ratios.items()))), reference, None)

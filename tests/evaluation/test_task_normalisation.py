import ftfy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacremoses import MosesPunctNormalizer

from hatchery.evaluation.tasks.texts import NORMALISATIONS, detokenise, normalise, repair_free_quotes

MOSES = MosesPunctNormalizer(lang="en", penn=False)


@given(st.text("aB1 .,;:'\"()%`´‘’“”„–—…\u00a0«»é\n", max_size=40))
def test_the_normalisation_is_that_of_the_libraries(text):
    if text.strip() in ("``", "''"):
        return
    assert normalise(text) == ftfy.fix_text(MOSES.normalize(text.strip())).strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-LRB-", "("),
        (" -RRB- ", ")"),
        ("``", '"'),
        ("''", '"'),
        ("a -LRB- b", "a -LRB- b"),
        ("“a” — b", '"a" - b'),
        ("  caf&eacute; ", "café"),
    ],
)
def test_treebank_symbols_are_mapped_only_where_they_are_the_whole_text(text, expected):
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("it 's a charming and often affecting journey . ", "it's a charming and often affecting journey."),
        ("you do n't know , do you ?", "you don't know, do you?"),
        ("it does n't", "it does n't"),
        ("-LRB- see below -RRB- , please", "(see below), please"),
        ("`` a good film , '' he said", '"a good film," he said'),
        ("he said ' yes ' to Tom 's dog", "he said 'yes' to Tom's dog"),
        ("it cost $ 5 or 50 % less", "it cost $5 or 50% less"),
        ("a well - known film", "a well - known film"),
        ("the dogs ' bones", "the dogs ' bones"),
        ("", ""),
    ],
)
def test_tokens_become_running_text(tokens, text):
    assert detokenise(tokens) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a ' b ' c", "a 'b' c"),
        ("'a' don't", "'a' don't"),
        ("' a ' b ' c", "' a ' b ' c"),
        ("don't", "don't"),
        ("x' y 'z", "x 'y' z"),
        ("'", "'"),
    ],
)
def test_only_quotes_at_a_blank_or_an_edge_are_paired(text, expected):
    assert repair_free_quotes(text, "'") == expected


def test_there_are_the_normalisations_that_a_task_may_name():
    assert set(NORMALISATIONS) == {"none", "ltg", "ltg_detokenised"}
    assert NORMALISATIONS["none"](" a  ") == " a  "

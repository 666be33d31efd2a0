"""CoNLL-U files: which rows are words, which arcs they have, and what is refused."""

from collections.abc import Callable

import pytest

from hatchery.errors import EvaluationError
from hatchery.evaluation.probing.conllu import read_sentences
from hatchery.raw.registration import RawSource, open_source, register_source

SENTENCE = [
    "# sent_id = 1",
    "1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_",
    "1\tdo\tdo\tAUX\tVB\t_\t3\taux\t_\t_",
    "2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_",
    "3\tpay\tpay\tVERB\tVB\t_\t0\troot\t_\t_",
    "3.1\tpay\tpay\tVERB\tVB\t_\t_\t_\t_\t_",
    "4\t20 000\t20000\tNUM\tCD\t_\t3\tobj\t_\t_",
]


@pytest.fixture
def sentences(make_source: Callable[..., RawSource]) -> Callable[[str], list]:
    return lambda text: list(read_sentences(make_source({"a.conllu": text}), "a.conllu"))


def test_comments_ranges_and_empty_nodes_are_no_words(sentences) -> None:
    (sentence,) = sentences("\n".join(SENTENCE) + "\n\n")
    assert [word.form for word in sentence.words] == ["do", "n't", "pay", "20000"]
    assert sentence.heads() == [2, 2, 2, 2]
    assert sentence.where == "a.conllu:3"


@pytest.mark.parametrize("separator", ["\n\n", "\n \n", "\n\n\n", "\r\n\r\n"])
def test_a_blank_line_ends_a_sentence(sentences, separator: str) -> None:
    word = "1\ta\ta\tX\tX\t_\t0\troot\t_\t_"
    assert len(sentences(separator.join([word] * 3))) == 3


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("1\ta\ta\tX\tX\t_\t0\troot\t_", "9 columns, expected the 10"),
        ("1 a a X X _ 0 root _ _", "1 columns"),
        ("2\ta\ta\tX\tX\t_\t0\troot\t_\t_", "ID is '2', expected 1"),
        ("x\ta\ta\tX\tX\t_\t0\troot\t_\t_", "ID is 'x'"),
        ("1\t \ta\tX\tX\t_\t0\troot\t_\t_", "FORM is empty"),
    ],
)
def test_broken_rows_name_file_and_line(sentences, row: str, complaint: str) -> None:
    with pytest.raises(EvaluationError, match=rf"a\.conllu:2: .*{complaint}"):
        sentences(f"# comment\n{row}\n")


@pytest.mark.parametrize("head", ["_", "x", "-1", "1.5", "²", "3", "1"])
def test_a_head_that_is_no_other_word_names_file_and_line(sentences, head: str) -> None:
    rows = [f"1\ta\ta\tX\tX\t_\t{head}\tdep\t_\t_", "2\tb\tb\tX\tX\t_\t0\troot\t_\t_"]
    (sentence,) = sentences("\n".join(rows))
    with pytest.raises(EvaluationError, match=r"a\.conllu:1: HEAD is"):
        sentence.heads()


def test_a_file_without_words_is_refused(sentences) -> None:
    with pytest.raises(EvaluationError, match=r"a\.conllu: the file holds no sentences"):
        sentences("# nothing\n\n")


def test_english_ewt_has_the_published_words_arcs_and_roots(real_data, tmp_path) -> None:
    name = "en_ewt-ud-dev.conllu"
    register_source("ud", real_data / "ud_english_ewt", tmp_path / "source.json")
    found = list(read_sentences(open_source(tmp_path / "source.json"), name))
    heads = [(i, head) for sentence in found for i, head in enumerate(sentence.heads())]
    assert len(found) == 2001
    assert sum(len(sentence.words) for sentence in found) == len(heads) == 25147
    assert sum(i == head for i, head in heads) == 2001
    assert not any("-" in word.columns["ID"] for sentence in found for word in sentence.words)

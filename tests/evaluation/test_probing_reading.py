"""The formats of edge probing, including CoNLL-U, as sentences with spans; their label sets, and refused files."""

from collections.abc import Callable
from typing import Any

import pytest

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.probing.conllu import read_sentences
from hatchery.evaluation.probing.formats import read_conllu, read_jiant, read_treebanks
from hatchery.evaluation.tasks.example import SpanTarget
from hatchery.evaluation.tasks.settings import HeadSettings, TaskSettings
from hatchery.raw.registration import RawSource, open_source, register_source


def task(files: dict[str, str], n_spans: int = 1, **changes: Any) -> TaskSettings:
    head = HeadSettings("span_classification", {"n_spans": n_spans})
    settings: dict[str, Any] = {"name": "t", "suite": "probing", "format": "jiant", "metrics": ("micro_f1",)}
    return TaskSettings(**{**settings, "files": files, "head": head, **changes})


def record(text: str = "a b c", *targets: dict[str, Any]) -> dict[str, object]:
    return {"text": text, "targets": list(targets), "info": {}}


@pytest.fixture
def read(make_source: Callable[..., RawSource], json_lines: Callable[..., str]) -> Callable[..., Any]:
    def reader(sets: dict[str, list[dict[str, object]]], **changes: Any) -> Any:
        source = make_source({f"{name}.jsonl": json_lines(rows) for name, rows in sets.items()})
        return read_jiant(source, task({name: f"{name}.jsonl" for name in sets}, **changes))

    return reader


ONE_NOUN = {"validation": [record("a", {"span1": [0, 1], "label": "N"})]}


def test_labels_are_those_of_the_training_rows_and_others_are_always_wrong(read) -> None:
    data = read(
        {
            "other": [record("a b", {"span1": [0, 2], "label": "Z"})],
            "validation": [record("a b", {"span1": [1, 2], "label": ["Q", "N", "A"]})],
            "train": [record("a b c", {"span1": [0, 1], "label": "V"}, {"span1": [1, 3], "label": ["N", "A"]})],
        }
    )
    assert data.labels == ("A", "N", "V")
    assert data.train[0].words == ("a", "b", "c") and data.train[0].where == "train.jsonl:1"
    assert data.train[0].targets == (SpanTarget(((0, 1),), (2,)), SpanTarget(((1, 3),), (0, 1)))
    assert list(data.scored) == ["validation", "other"]
    assert data.scored["validation"][0].targets[0].labels == (-1, 0, 1)
    assert data.scored["other"][0].targets[0].labels == (-1,)
    spelled = read({"train": [record("a", {"span1": [0, 1], "label": "V"})]} | ONE_NOUN, label_values={"V": "VERB"})
    assert (spelled.labels, spelled.train[0].targets[0].labels) == (("VERB",), (0,))


def test_configured_labels_keep_their_order_and_must_cover_the_training_rows(read) -> None:
    rows = {
        "train": [record("a", {"span1": [0, 1], "label": "yes"})],
        "validation": [record("a", {"span1": [0, 1], "label": "1"})],
    }
    data = read(rows, labels=("1", "0"), label_values={"yes": "1"})
    assert data.labels == ("1", "0") and data.train[0].targets[0].labels == (0,)
    with pytest.raises(EvaluationError, match=r"train\.jsonl:1: the label 'yes' is unknown; the task lists 1, 0"):
        read(rows, labels=("1", "0"))


def test_records_without_targets_are_dropped_and_a_set_of_them_is_refused(read) -> None:
    target = {"span1": [0, 1], "label": "N"}
    data = read({"train": [record("x"), record("y", target)], "validation": [record("z", target)]})
    assert [example.words for example in data.train] == [("y",)]
    with pytest.raises(EvaluationError, match="'validation' files of 't' contain no target"):
        read({"train": [record("y", target)], "validation": [record("z")]})


def test_targets_of_pairs_have_two_spans_which_may_overlap(read) -> None:
    rows = [record("a b c", {"span1": [0, 2], "span2": [1, 2], "label": "1"})]
    data = read({"train": rows, "validation": rows}, n_spans=2)
    assert data.train[0].targets[0].spans == ((0, 2), (1, 2))


@pytest.mark.parametrize(
    ("target", "n_spans", "complaint"),
    [
        ({"span1": [2, 1], "label": "N"}, 1, r"span1 is \[2, 1\), expected 0 <= start < end <= 3"),
        ({"span1": [0, 1.0], "label": "N"}, 1, "two whole numbers"),
        ({"span1": [0, 1], "label": "N"}, 2, "'span2' of a target is missing"),
        ({"span1": [0, 1], "span2": [0, 1], "label": "N"}, 1, "labels single spans"),
        ({"span1": [0, 1]}, 1, "'label' of a target is missing"),
        ({"span1": [0, 1], "label": ["N", None]}, 1, "a label must be"),
        ([0, 1], 1, "a target must be an object"),
    ],
)
def test_broken_targets_name_file_and_line(read, target: Any, n_spans: int, complaint: str) -> None:
    rows = [record("fine words"), record("a b c", target)]
    with pytest.raises(EvaluationError, match=rf"train\.jsonl:2: .*{complaint}"):
        read({"train": rows, "validation": rows}, n_spans=n_spans)


@pytest.mark.parametrize("text", ["a  b", " a", "a ", ""])
def test_a_text_whose_words_are_not_divided_by_single_blanks_is_refused(read, text: str) -> None:
    rows = [record(text, {"span1": [0, 1], "label": "N"})]
    with pytest.raises(EvaluationError, match=r"train\.jsonl:1: "):
        read({"train": rows, "validation": rows})


def test_without_validation_files_equal_sentences_stay_on_one_side(read) -> None:
    rows = [record(f"w{i % 10} x", {"span1": [0, 1], "label": f"L{i % 2}"}) for i in range(40)]
    data = read({"train": rows}, validation_fraction=0.3, split_seed=4)
    train, held = ({example.words for example in part} for part in (data.train, data.scored["validation"]))
    assert len(train) == 7 and len(held) == 3 and not train & held
    assert len(data.train) + len(data.scored["validation"]) == 40
    again, other = (read({"train": rows}, validation_fraction=0.3, split_seed=seed) for seed in (4, 5))
    assert again == data and other.train != data.train


CONLLU = (
    "1\tshe\tshe\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n2\truns\trun\tVERB\tVBZ\t_\t0\tdep\t_\t_\n\n"
    "1\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n\n"
)


@pytest.mark.parametrize(
    ("column", "n_spans", "targets", "labels"),
    [
        ("XPOS", 1, [((0, 1),), ((1, 2),)], ("PRP", "VB", "VBZ")),
        ("UPOS", 1, [((0, 1),), ((1, 2),)], ("PRON", "VERB")),
        ("DEPREL", 2, [((0, 1), (1, 2)), ((1, 2), (1, 2))], ("nsubj", "root")),
    ],
)
def test_words_have_one_span_and_arcs_two_of_which_roots_point_at_themselves(
    make_source, column: str, n_spans: int, targets: Any, labels: tuple[str, ...]
) -> None:
    files = {"train": "a.conllu", "validation": "a.conllu"}
    data = read_conllu(make_source({"a.conllu": CONLLU}), task(files, n_spans, format="conllu", label_field=column))
    assert data.labels == labels
    assert [target.spans for target in data.train[0].targets] == targets
    assert len(data.train) == len(data.scored["validation"]) == 2


@pytest.mark.parametrize("read", [read_conllu, read_treebanks])
@pytest.mark.parametrize(("column", "n_spans", "complaint"), [("LEMMA", 1, "label_field"), ("DEPREL", 1, "n_spans")])
def test_columns_that_label_nothing_and_heads_that_do_not_fit_are_refused(
    make_source, read: Any, column: str, n_spans: int, complaint: str
) -> None:
    form = "conllu" if read is read_conllu else "treebanks"
    with pytest.raises(ConfigError, match=complaint):
        read(make_source({"a.conllu": CONLLU}), task({"train": "a.conllu"}, n_spans, format=form, label_field=column))


def test_a_treebank_without_the_column_names_file_and_line(make_source) -> None:
    text = CONLLU.replace("VBZ", "_")
    with pytest.raises(EvaluationError, match=r"a\.conllu:2: the column XPOS is empty"):
        read_conllu(make_source({"a.conllu": text}), task({"train": "a.conllu"}, format="conllu", label_field="XPOS"))


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
        ("2\ta\ta\tX\tX\t_\t0\troot\t_\t_", "ID is '2', expected 1"),
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
    with pytest.raises(EvaluationError, match=r"a\.conllu: the file contains no sentences"):
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

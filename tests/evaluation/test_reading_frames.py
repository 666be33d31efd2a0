"""Data frames of the regressions on reading times, against rows and sums by hand."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from reading_cases import settings_of

from hatchery.errors import EvaluationError
from hatchery.evaluation.reading_times import measure
from hatchery.evaluation.reading_times.measure import deviation_of_sum, fit_responses
from hatchery.evaluation.reading_times.predictors import regression_frame, regression_of
from hatchery.evaluation.reading_times.table import ReadTable, read_table, zipf
from hatchery.evaluation.settings import EvaluationRuntime

MECO = {
    "response": "firstrun.dur",
    "item": "itemid",
    "position": "wordnum",
    "participant": "subid",
    "sentence": "sentnum",
    "only": {"lang": "en"},
    "spillover": 2,
    "predictors": {"wordnum": 0, "length": 2, "freq": 2},
    "drop_sentence_ends": True,
    "spillover_from": "kept_words",
}


def words_of(table: ReadTable, surprisal: Any) -> pl.DataFrame:
    """Return the words of the texts; `surprisal` gives a word's surprisal by item and position."""
    rows = [
        (one.item, position, word, sentence, surprisal(one.item, position), None)
        for one in table.passages
        for position, word, sentence in zip(one.positions, one.words, one.sentences, strict=True)
    ]
    schema = {"item": pl.String, "position": pl.Float64, "word": pl.String, "sentence": pl.String}
    return pl.DataFrame(rows, schema={**schema, "surprisal": pl.Float64, "entropy": pl.Float64}, orient="row")


# In item 1, sentence 1 is words 1 to 4, sentence 2 is words 8 to 12; words 5 to 7 have none. Item 2 is one sentence.
SENTENCES = {**dict.fromkeys(range(1, 5), "1"), **dict.fromkeys(range(5, 8), "NA"), **dict.fromkeys(range(8, 13), "2")}


def meco(readers: int = 3) -> str:
    lines = ["lang,subid,itemid,sentnum,wordnum,word,firstrun.dur,freq"]
    for reader in range(readers):
        for item in (1, 2):
            for place in range(1, 13):
                # Letters are two bytes, so that lengths in bytes and in characters differ.
                word = "ж" * (1 + (place * 5 + item) % 4)
                time = 200 + 17 * len(word) + 31 * math.sin(place * 2.1 + item) + 20 * reader
                time += 13 * math.cos(7.7 * place * (reader + 1) + item * item)
                sentence = SENTENCES[place] if item == 1 else "1"
                cell = "NA" if (reader + place + item) % 7 == 0 else f"{time:.3f}"
                freq = round(3 + 2 * math.sin(place * item), 3)
                lines.append(f"en,s{reader},{item},{sentence},{place},{word},{cell},{freq}")
    return "\n".join(lines) + "\n"


def surprisal_of(item: str, position: float) -> float:
    return 5 + 3 * math.sin(1.3 * position + int(item))


def test_first_and_last_words_of_sentences_are_dropped_and_previous_words_are_those_that_are_kept(make_source) -> None:
    settings = settings_of(**MECO)
    table = read_table(make_source({"a.csv": meco()}), settings)
    frame = regression_frame(table, words_of(table, surprisal_of), settings)
    # Inner words are 2, 3, 6, 9, 10 and 11 of item 1, and 2 to 11 of item 2. Of these, word 11 of item 1 and words 4 to
    # 11 of item 2 have two previous words.
    kept = frame.filter(participant="s0").select("item", "position").rows()
    assert kept == [("1", 11.0), *(("2", float(place)) for place in range(4, 12))]
    row = frame.filter(participant="s1", item="2", position=6.0).row(0, named=True)
    for before in range(3):
        suffix = f"_{before}p" if before else ""
        assert row[f"surprisal{suffix}"] == pytest.approx(surprisal_of("2", 6 - before))
        assert row[f"length{suffix}"] == 1 + ((6 - before) * 5 + 2) % 4
        assert row[f"freq{suffix}"] == round(3 + 2 * math.sin((6 - before) * 2), 3)
    assert row["wordnum"] == 6


def test_previous_words_of_the_text_include_those_that_are_dropped(make_source) -> None:
    settings = settings_of(**{**MECO, "spillover_from": "text"})
    table = read_table(make_source({"a.csv": meco()}), settings)
    frame = regression_frame(table, words_of(table, surprisal_of), settings)
    kept = frame.filter(participant="s0", item="1")["position"].to_list()
    assert kept == [3, 6, 9, 10, 11], "only the second word has no two words before it"


def by_hand() -> tuple[list[list[float]], list[float], list[int]]:
    """Return the rows of MECO's regression by loops: scaled predictors (the model's first), outcome, reader."""
    lines = [line.split(",") for line in meco().splitlines()[1:]]
    words = {(row[2], int(row[4])): (row[3], len(row[5]), float(row[7])) for row in lines}
    groups: dict[tuple[str, str], list[int]] = {}
    for (item, place), (sentence, *_) in words.items():
        groups.setdefault((item, sentence), []).append(place)
    kept = {
        (item, place)
        for (item, place), (sentence, *_) in words.items()
        if place not in (min(groups[item, sentence]), max(groups[item, sentence]))
    }
    rows, times, readers = [], [], []
    for row in lines:
        item, place = row[2], int(row[4])
        if any((item, place - before) not in kept for before in range(3)):
            continue
        before = [(item, place - back) for back in range(3)]
        model = [surprisal_of(*one) for one in before]
        rows.append([*model, float(place), *(words[one][1] for one in before), *(words[one][2] for one in before)])
        times.append(math.nan if row[6] == "NA" else float(row[6]))
        readers.append(int(row[1][1:]))
    design = np.array(rows)
    # Predictors are scaled over all rows of the frame, including rows with a missing time.
    design = (design - design.mean(axis=0)) / design.std(axis=0, ddof=1)
    known = ~np.isnan(times)
    return design[known].tolist(), np.array(times)[known].tolist(), np.array(readers)[known].tolist()


def closed_form(design: np.ndarray, outcome: np.ndarray) -> float:
    whole = np.column_stack([np.ones(len(outcome)), design])
    squares = np.square(outcome - whole @ np.linalg.lstsq(whole, outcome, rcond=None)[0]).sum()
    return -len(outcome) / 2 * (math.log(2 * math.pi * squares / len(outcome)) + 1)


def test_the_gain_of_linear_regressions_is_the_closed_form_of_rows_by_hand(make_source) -> None:
    settings = settings_of(**MECO, random_effects="none")
    table = read_table(make_source({"a.csv": meco()}), settings)
    scores, coefficients, facts = fit_responses(table, words_of(table, surprisal_of), settings)
    design, outcome, _ = (np.array(part) for part in by_hand())
    whole, without = closed_form(design, outcome), closed_form(design[:, 3:], outcome)
    (row,) = scores.iter_rows(named=True)
    assert row["rows"] == len(outcome) == 27 - 5 and row["participants"] == 3
    assert row["log_likelihood"] == pytest.approx(whole, abs=1e-8)
    assert row["gain_nats"] == pytest.approx(whole - without, abs=1e-8)
    assert facts["left_out"]["without_previous_words"] == 3 * (24 - 9)
    # Estimates are per sample standard deviation of a predictor, so they depend on the scaling.
    for kind, columns in (("with", design), ("without", design[:, 3:])):
        predictors = np.column_stack([np.ones(len(outcome)), columns])
        known = np.linalg.lstsq(predictors, outcome, rcond=None)[0]
        variance = np.square(outcome - predictors @ known).mean()
        errors = np.sqrt(np.square(np.linalg.pinv(predictors)).sum(axis=1) * variance)
        rows = coefficients.filter(regression=kind)
        assert rows["estimate"][:-1].to_list() == pytest.approx(known.tolist(), rel=1e-7)
        assert rows["standard_error"][:-1].to_list() == pytest.approx(errors.tolist(), rel=1e-6)
        assert rows["random_deviation"].to_list() == [None] * len(known) + [pytest.approx(math.sqrt(variance))]
    of_full = coefficients.filter(regression="with")["term"].to_list()
    assert of_full == [
        *("intercept", "surprisal", "surprisal_1p", "surprisal_2p", "wordnum"),
        *("length", "length_1p", "length_2p", "freq", "freq_1p", "freq_2p", "residual"),
    ]


def test_a_result_counts_words_texts_and_rows_and_notes_report_omitted_rows(make_source, monkeypatch, capsys) -> None:
    places = [("1", place) for place in range(1, 9)] + [("2", place) for place in range(1, 5)]
    lines = [
        f"p{reader},{item},{place},{'w' * (place % 3 + 1)},{place * place % 7 + reader},{place % 5 + 1},4,5"
        for reader in range(3)
        for item, place in places
    ]
    lines += ["p0,1,2,other,1,1,4,5", "p1,1,2,other,1,1,4,5", "p0,1,9,,1,1,4,5"]
    content = "\n".join(["participant,item,position,word,one,two,flat,even", *lines]) + "\n"
    keys = {"predictors": {"length": 0, "flat": 0, "even": 0}, "spillover": 0, "random_effects": "intercepts"}
    settings = settings_of(**keys, response=["one", "two"], of_model=["surprisal", "entropy"])
    table = read_table(make_source({"a.csv": content}), settings)
    # The first word has no surprisal. The mean of the other words' surprisals is 100 nats.
    nats = [None, *(100.0 + (index % 2 or -1) * index // 2 for index in range(2, 12)), 101.0]
    mean = sum(filter(None, nats)) / 11
    entropies = [math.cos(index) for index in range(12)]

    def words(model: Any, passages: Any, *_: Any, times: float = 1.0) -> pl.DataFrame:
        made = words_of(table, surprisal_of).with_columns(entropy=pl.Series(entropies), tokens=pl.lit(1))
        return made.with_columns(surprisal=pl.Series(nats) * times)

    monkeypatch.setattr(measure, "passage_words", words)
    model: Any = SimpleNamespace(architecture="masked", predicted_before=0)
    found = measure.score(model, table, settings, EvaluationRuntime())
    assert found.facts == {
        **{"words": 12, "items": 2, "scored_words": 11, "perplexity_of_words": pytest.approx(math.exp(mean))},
        **{"rows": 36, "architecture": "masked", "scoring": "pll"},
        "left_out": {"without_word": 1, "other_word": 2, "without_previous_words": 0},
        "constant_predictors": ["flat", "even"],
    }
    assert capsys.readouterr().err.splitlines() == [
        "note: 2 rows are omitted, because the text has another word at the position of the row",
        "note: 1 rows are omitted, because they have no word or no position",
        "note: predictors that are equal in all rows are omitted: flat, even",
    ]
    assert found.tables["words.parquet"]["entropy_nats"].to_list() == entropies
    coefficients = found.tables["coefficients.csv"].filter(response="two")
    # Of the terms, only the intercept is random.
    assert coefficients.filter(regression="with").select("term", pl.col("random_deviation").is_null()).rows() == [
        *(("intercept", False), ("surprisal", True), ("entropy", True), ("length", True), ("residual", False))
    ]
    assert coefficients.filter(regression="without")["term"].to_list() == ["intercept", "length", "residual"]
    monkeypatch.setattr(measure, "passage_words", lambda *given: words(*given, times=10))
    assert measure.score(model, table, settings, EvaluationRuntime()).facts["perplexity_of_words"] is None


def test_the_value_of_a_previous_word_is_that_of_its_first_row(make_source) -> None:
    content = "participant,item,position,word,rt,seen,length\n" + "".join(
        f"{reader},1,{place},w,{place},{10 * place + shift},{40 + place}\n"
        for reader, shift in (("a", 1), ("b", 2))
        for place in (1, 2)
    )
    settings = settings_of(predictors={"seen": 1, "length": 1}, spillover=0)
    table = read_table(make_source({"a.csv": content}), settings)
    frame = regression_frame(table, words_of(table, surprisal_of), settings)
    assert frame.select("participant", "seen", "seen_1p").rows() == [("a", 21.0, 11.0), ("b", 22.0, 11.0)]
    # A column `length` of the table replaces the number of characters.
    assert frame.select("length", "length_1p").rows() == [(42.0, 41.0)] * 2


def test_the_position_of_a_word_is_a_predictor(make_source) -> None:
    content = "participant,item,position,word,rt\n" + "".join(f"a,1,{place},w,{place}\n" for place in (3, 4, 5))
    settings = settings_of(predictors={"position": 1}, spillover=0)
    table = read_table(make_source({"a.csv": content}), settings)
    frame = regression_frame(table, words_of(table, surprisal_of), settings)
    assert frame.select("position", "position_1p").rows() == [(4.0, 3.0), (5.0, 4.0)]


def test_a_constant_surprisal_gains_nothing_and_is_reported(make_source) -> None:
    settings = settings_of(**MECO)
    table = read_table(make_source({"a.csv": meco()}), settings)
    scores, _, facts = fit_responses(table, words_of(table, lambda item, position: 2.5), settings)
    assert scores["gain_nats"].to_list() == [0.0]
    assert facts["constant_predictors"] == ["surprisal", "surprisal_1p", "surprisal_2p"]


def test_several_responses_have_regressions_of_their_own_and_limits_leave_rows_out(make_source) -> None:
    content = "item,position,word,one,two\n" + "".join(
        f"{item},{place},{'w' * (place % 3 + 1)},{99 + place * 10 + item},{50 - (place * item) % 7}\n"
        for item in range(1, 4)
        for place in range(1, 9)
    )
    keys = {"response": ["one", "two"], "participant": None, "random_effects": "none", "predictors": {"length": 0}}
    settings = settings_of(**keys, lowest=44, highest=150.0, spillover=0)
    table = read_table(make_source({"a.csv": content}), settings)
    scores, _, _ = fit_responses(table, words_of(table, surprisal_of), settings)
    assert scores["response"].to_list() == ["one", "two"] and scores["participants"].to_list() == [None, None]
    # Both limits are inclusive: 99 + 10 p + i is at most 150 for p = 1 to 4, and equals 150 for p = 5 and i = 1. The
    # smallest number of the other response is 44.
    assert scores["rows"].to_list() == [13, 24]
    logs = settings_of(**keys, log_response=True)
    frame = regression_frame(table, words_of(table, surprisal_of), logs)
    assert frame["one"][0] == pytest.approx(math.log(99 + 20 + 1))


def test_logarithms_of_times_need_positive_times(make_source) -> None:
    settings = settings_of(log_response=True, participant=None, random_effects="none")
    table = read_table(make_source({"a.csv": "item,position,word,rt\n1,1,a,3\n1,2,b,0\n"}), settings)
    with pytest.raises(EvaluationError, match="log_response: rt: the smallest response is 0, expected positive"):
        regression_frame(table, words_of(table, surprisal_of), settings)


def test_too_few_rows_are_an_error_and_one_more_is_enough(make_source) -> None:
    settings = settings_of(participant=None, random_effects="none", predictors={}, spillover=0)
    made = [
        "item,position,word,rt\n" + "".join(f"1,{place},a,{place * place}\n" for place in range(1, count + 1))
        for count in (2, 3)
    ]
    short, enough = (read_table(make_source({"a.csv": content}), settings) for content in made)
    with pytest.raises(EvaluationError, match="rt: got 2 rows with a response and all predictors"):
        regression_of(regression_frame(short, words_of(short, surprisal_of), settings), "rt", settings)
    data = regression_of(regression_frame(enough, words_of(enough, surprisal_of), settings), "rt", settings)
    assert len(data.outcome) == 3
    equal = pl.DataFrame({"item": ["1"] * 4, "rt": [7.0] * 4, "surprisal": [1.0, 2.0, 3.0, 5.0]})
    with pytest.raises(EvaluationError, match=r"rt: got 4 rows .* expected at least 3, with different responses"):
        regression_of(equal, "rt", settings)


def test_predictors_are_scaled_over_known_values_and_only_constant_ones_are_omitted() -> None:
    keys = {"predictors": {"freq": 0, "sum": 0, "year": 0}, "participant": None, "random_effects": "none"}
    frame = pl.DataFrame(
        {
            "item": ["b", "a", "b", "a", "c", "b", "a", "c"],
            "rt": [5.0, 1.0, 4.0, 2.0, 8.0, 7.0, 3.0, None],
            "surprisal": [0.0, 2.0, 1.0, 1.0, 2.0, 1.0, 0.0, 1.0],
            "freq": [1.0, math.nan, 3.0, 5.0, 1.0, 3.0, 3.0, 5.0],
            # Sums of equal numbers in different orders differ by rounding.
            "sum": [0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1] * 4,
            "year": [2000.0, 2001.0, 2002.0, 2001.0] * 2,
        }
    )
    data = regression_of(frame, "rt", settings_of(**keys, spillover=0))
    assert data.constant == ["sum"] and list(data.predictors) == ["surprisal", "freq", "year"]
    # The mean of the seven known frequencies is 3; the squared deviations are 4, 0, 4, 4, 0, 0 and 4. The rows without
    # a frequency or a response are omitted after scaling.
    assert data.predictors["freq"].tolist() == pytest.approx([one / (16 / 6) ** 0.5 for one in (-2, 0, 2, -2, 0, 0)])
    assert data.outcome.tolist() == [5.0, 4.0, 2.0, 8.0, 7.0, 3.0]
    assert data.groups.tolist() == [0, 0, 1, 2, 0, 1] and data.clusters == ["b", "a", "c"]


def test_zipf_frequencies_have_the_published_formula(make_source) -> None:
    # (count + 1) / (words + types) * 1e9, in base 10.
    assert zipf(["The", "dog,", "unseen"], {"the": 9, "dog": 0, "a": 88}) == pytest.approx([8.0, 7.0, 7.0])
    # Punctuation without a letter is looked up as it is.
    assert zipf(["--", "The."], {"--": 9, "the": 99, "": 889}) == pytest.approx([7.0, 8.0])
    # Quotation marks around a word do not count, and upper and lower case are folded: Groß and GROSS are one word.
    assert zipf(["\u201cGroß\u201d", "GROSS"], {"gross": 9, "groß": 988}) == pytest.approx(
        [7.0 + math.log10(1000 / 999)] * 2
    )
    files = {
        "times.csv": "item,position,word,rt\n1,1,Dog!,3\n1,2,the,4\n1,3,x,5\n",
        "counts.tsv": "word\tcount\nthe\t5\nThe\t4\nx\t88\nX.\t0\n",
    }
    keys = {"participant": None, "random_effects": "none", "predictors": {"zipf": 0}, "spillover": 0}
    settings = settings_of(**keys, files="times.csv", frequencies="counts.tsv")
    table = read_table(make_source(files), settings)
    frame = regression_frame(table, words_of(table, surprisal_of), settings)
    assert frame["zipf"].to_list() == pytest.approx([math.log10(n / 99) + 9 for n in (1, 10, 89)])


def test_the_deviation_of_a_gain_is_that_of_a_sum_over_readers() -> None:
    parts = np.array([1.0, 3.0, 2.0, 6.0])
    # Four readers have a sample variance of 14/3.
    assert deviation_of_sum(parts) == pytest.approx(math.sqrt(4 * 14 / 3))
    assert deviation_of_sum(parts[:1]) is None

"""Sentences and chart of a page's first section, for rows with obvious verdicts."""

import re
from typing import Any

import pytest

from hatchery.analysis.scores import Measure, Scores
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.rendering.templates import render
from hatchery.views.answer import answer
from hatchery.views.score_chart import MOST_MODELS, axis, score_chart

PAIRS = Measure("pairs", "pairs", "average", "accuracy_percent")
GLUE = Measure("glue", "glue", "average", "score_percent")
PERPLEXITY = Measure("dev perplexity", "perplexity", "dev", "perplexity")
BITS = Measure("dev bits", "perplexity", "dev", "bits_per_byte")


def row(model: str, measure: Measure, mean: float | None, std: float | None = 0.5, **more: Any) -> SummaryRow:
    """Return a row of three runs with three seeds."""
    place = ("demo", model, measure.suite, measure.task, measure.metric)
    values: dict[str, Any] = {"seeds": 3, "n": 3, "n_failed": 0, "mean_without_failed": None, "n_without_number": 0}
    values |= {"published_mean": None, "published_std": None, "published_source": "", "difference": None}
    return SummaryRow(*place, mean, std, **{**values, "verdict": "", "manifests": "", **more})


def scores(*rows: SummaryRow) -> Scores:
    """Return scores with the models in the order of the rows; labels are capital letters."""
    models = list(dict.fromkeys(each.model for each in rows))
    return Scores(rows, models, {model: model.upper() for model in models})


def test_a_model_ahead_of_the_noise_leads_and_the_next_ones_are_named() -> None:
    found = scores(row("a", PAIRS, 80.0), row("b", PAIRS, 70.0), row("c", PAIRS, 60.0), row("d", PAIRS, 50.0))
    assert answer(found, [PAIRS]) == ["A leads on pairs (80.0; B 70.0, C 60.0, 1 more)."]
    rows = [row(model, PERPLEXITY, mean) for model, mean in (("a", 8.0), ("b", 12.0), ("c", 10.0), ("d", 14.0))]
    assert answer(scores(*rows), [PERPLEXITY]) == ["A leads on dev perplexity (8.00; C 10.00, B 12.00, 1 more)."]


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        # Noise is sqrt(0.5² + 0.5²) = 0.707.
        (
            79.3,
            "A and B lead, without a difference beyond noise between these models, on pairs (80.0 and 79.3; C 60.0).",
        ),
        (79.2, "A leads on pairs (80.0; B 79.2, C 60.0)."),
    ],
)
def test_a_second_model_leads_too_within_the_noise_of_both(second: float, sentence: str) -> None:
    assert answer(scores(row("a", PAIRS, 80.0), row("b", PAIRS, second), row("c", PAIRS, 60.0)), [PAIRS]) == [sentence]


def test_after_three_leaders_the_next_model_is_named() -> None:
    rows = [row(model, PAIRS, 80.0 if model in "abc" else 60.0) for model in "abcde"]
    tied = "A, B and C lead, without a difference beyond noise between these models, on pairs"
    assert answer(scores(*rows), [PAIRS]) == [f"{tied} (80.0, 80.0 and 80.0; D 60.0, 1 more)."]


def test_a_lower_perplexity_leads_and_measures_with_the_same_leader_share_a_sentence() -> None:
    rows = [row("a", PAIRS, 60.0), row("b", PAIRS, 80.0), row("a", PERPLEXITY, 9.5), row("b", PERPLEXITY, 8.25)]
    assert answer(scores(*rows), [PERPLEXITY, PAIRS]) == [
        "B leads on dev perplexity (8.25; A 9.50) and pairs (80.0; A 60.0)."
    ]


def test_where_noise_explains_everything_nobody_leads() -> None:
    assert answer(scores(row("a", PAIRS, 80.0), row("b", PAIRS, 79.5)), [PAIRS]) == [
        "No model leads beyond noise on pairs (A 80.0, B 79.5)."
    ]


def test_failed_runs_the_highest_blind_guess_and_unknown_noise_keep_a_lead_open() -> None:
    open_lead = "No model leads beyond noise on pairs (A 80.0, B 75.0)."
    # Without its failed run, A has 70, which is below B.
    failed = row("a", PAIRS, 80.0, n_failed=1, mean_without_failed=70.0)
    assert answer(scores(failed, row("b", PAIRS, 75.0)), [PAIRS]) == [open_lead]
    guesses = row("a", PAIRS, 80.0, blind_guess=50.0), row("b", PAIRS, 75.0, blind_guess=85.0)
    assert answer(scores(*guesses), [PAIRS])[0] == open_lead
    # The noise of A is unknown, because two of its three runs have no score.
    unknown = row("a", PAIRS, 80.0, None, n=1, n_without_number=2)
    assert answer(scores(unknown, row("b", PAIRS, 75.0)), [PAIRS]) == [open_lead]


def test_one_seed_is_no_lead() -> None:
    one = {"seeds": 1, "n": 1, "sampling_deviation": 0.5}
    rows = row("a", PAIRS, 80.0, None, **one), row("b", PAIRS, 60.0, None, **one)
    sentence = (
        "The scores differ on pairs (A 80.0, B 60.0), but with one pretraining seed, a lead may be due to the seed."
    )
    assert answer(scores(*rows), [PAIRS]) == [sentence]
    # Several seeds of only one of the two models do not change the sentence.
    assert answer(scores(rows[0], row("b", PAIRS, 60.0)), [PAIRS]) == [sentence]


def test_numbers_that_do_not_compare_have_no_sentence() -> None:
    first, second = row("a", PAIRS, 80.0, basis="asked: own masks"), row("b", PAIRS, 60.0, basis="asked: common masks")
    assert answer(scores(first, second), [PAIRS]) == []


@pytest.mark.parametrize(("other", "guesses"), [(50.5, True), (50.6, False)])
def test_a_model_within_its_noise_of_a_blind_guess_everywhere_is_named(other: float, guesses: bool) -> None:
    rows = [row("a", measure, mean, blind_guess=50.0) for measure, mean in ((PAIRS, 50.1), (GLUE, other))]
    rows += [row("b", measure, 80.0, blind_guess=50.0) for measure in (PAIRS, GLUE)]
    sentence = (
        "A is not clearly better than a blind guess on any average for which the score of a blind guess is known."
    )
    assert (sentence in answer(scores(*rows), [PAIRS, GLUE])) == guesses
    # A perplexity below a blind guess's is better.
    rows += [row("a", PERPLEXITY, 80.0, blind_guess=90.0), row("b", PERPLEXITY, 8.0, blind_guess=90.0)]
    assert sentence not in answer(scores(*rows), [PAIRS, GLUE, PERPLEXITY])


@pytest.mark.parametrize(("models", "sentence"), [("a", "A is"), ("abc", "A, B and C are"), ("abcd", "")])
def test_up_to_three_models_at_the_level_of_a_blind_guess_are_named(models: str, sentence: str) -> None:
    """A single run has no deviation, so any lead over the guess is a clear one."""
    rows = [row(model, PAIRS, 50.0, blind_guess=50.0) for model in models]
    rows.append(row("z", PAIRS, 50.1, None, n=1, seeds=1, blind_guess=50.0))
    found = [each.partition(" not clearly better")[0] for each in answer(scores(*rows), [PAIRS]) if "clearly" in each]
    assert found == ([sentence] if sentence else [])


def test_three_averages_of_a_leader_are_named_and_more_are_counted() -> None:
    measures = [Measure(f"m{number}", f"m{number}", "average", "accuracy_percent") for number in range(5)]
    found = scores(*(row(model, one, mean) for one in measures for model, mean in (("a", 80.0), ("b", 60.0))))
    named = [f"m{number} (80.0; B 60.0)" for number in range(3)]
    assert [answer(found, measures[:number]) for number in (3, 4, 5)] == [
        [f"A leads on {named[0]}, {named[1]} and {named[2]}."],
        [f"A leads on {', '.join(named)} and 1 more average."],
        [f"A leads on {', '.join(named)} and 2 more averages."],
    ]


def test_a_failed_run_without_a_mean_and_a_single_model_have_no_sentence() -> None:
    assert answer(scores(row("a", PAIRS, 80.0)), [PAIRS]) == []
    assert answer(scores(row("a", PAIRS, 80.0), row("b", PAIRS, None, None)), [PAIRS]) == []


@pytest.mark.parametrize(
    ("values", "low", "high", "ticks"),
    [
        ([50.0, 81.2], 50, 90, [50, 60, 70, 80, 90]),
        ([0.0, 100.0], 0, 100, [0, 20, 40, 60, 80, 100]),
        ([8.0, 9.1], 8, 9.5, [8, 8.5, 9, 9.5]),
        ([7.0, 7.0], 7, 8, [7, 8]),
        ([0.71, 0.76], 0.71, 0.76, [0.71, 0.72, 0.73, 0.74, 0.75, 0.76]),
    ],
)
def test_an_axis_holds_all_values_between_round_ticks(
    values: list[float], low: float, high: float, ticks: list[float]
) -> None:
    found = axis(values)
    assert found[0] <= min(values) and found[1] >= max(values)
    assert found[:2] == pytest.approx((low, high)) and found[2] == pytest.approx(ticks)


def test_dots_ranges_guesses_and_published_values_are_in_their_places() -> None:
    first = row("a", PAIRS, 80.0, 2.0, blind_guess=50.0, published_mean=85.0, verdict="below")
    # A published value without a verdict is not comparable, so the chart does not show it.
    second = row("b", GLUE, 60.0, None, n=1, seeds=1, blind_guess=50.0, published_mean=70.0)
    found = score_chart(scores(first, second), [PAIRS, GLUE], {"A": "#111111"})
    assert found is not None and found.has_guess and found.has_published and not found.legend
    (panel,) = found.panels
    # The values reach from 50 to 85. With ticks at tens, the axis ends at 90.
    assert [tick for _, tick in panel.ticks] == ["50", "60", "70", "80", "90"]
    (dot,), (other,) = (each.dots for each in panel.rows)
    assert (dot.model, dot.colour, dot.text) == ("A", "#111111", "80.0")
    assert (dot.place, dot.low, dot.high, dot.published) == (75.0, 70.0, 80.0, 87.5)
    assert (other.place, other.low, other.high, other.published, other.colour) == (
        25.0,
        None,
        None,
        None,
        "currentColor",
    )
    assert [each.guess for each in panel.rows] == [0.0, 0.0]
    check_drawn(render("score_chart.html.j2", chart=found))
    # A's range ends at 82, so the axis must extend beyond the means of 70 and 80.
    found = score_chart(scores(row("a", PAIRS, 80.0, 2.0), row("b", PAIRS, 70.0, 0.5)), [PAIRS], {})
    assert found is not None and [tick for _, tick in found.panels[0].ticks] == ["65", "70", "75", "80", "85"]
    apart = [row(model, PAIRS, 80.0, blind_guess=guess) for model, guess in (("a", 50.0), ("b", 25.0))]
    found = score_chart(scores(*apart), [PAIRS], {})
    assert found is not None and found.panels[0].rows[0].guess is None and not found.has_guess


def check_drawn(html: str) -> None:
    """Check the drawing of the chart above: each mark of a model is in the model's lane, at its position."""
    lanes = re.findall(r'<span class="who">(\w+)</span>(.*?)<span class="value">(.*?)</span>', html)
    assert [(model, value) for model, _, value in lanes] == [("A", "80.0"), ("B", "60.0")]
    marks = [re.findall(r'class="(range|printed|dot|guess)" style="([^"]*)"', lane) for _, lane, _ in lanes]
    assert marks == [
        [
            ("guess", "left:0.0%"),
            ("range", "left:70.0%;width:10.0%;background:#111111"),
            ("printed", "left:87.5%;border-color:#111111"),
            ("dot", "left:75.0%;background:#111111"),
        ],
        [("guess", "left:0.0%"), ("dot", "left:25.0%;background:currentColor")],
    ]
    assert 'title="A: 80.0"' in lanes[0][1] and '<div class="name">glue</div>' in html
    ticks = re.findall(r'<span style="left:(.*?)%">(.*?)</span>', html)
    assert ticks == [("0.0", "50"), ("25.0", "60"), ("50.0", "70"), ("75.0", "80"), ("100.0", "90")]
    assert "The dashed line is the score of a blind guess. Open diamonds are published values.</figcaption>" in html


def test_measures_without_percent_have_an_axis_each() -> None:
    rows = [
        row(model, measure, mean)
        for model in "ab"
        for measure, mean in ((PAIRS, 80.0), (GLUE, 70.0), (PERPLEXITY, 9.0), (BITS, 1.5))
    ]
    found = score_chart(scores(*rows), [PERPLEXITY, BITS, PAIRS, GLUE], {})
    assert found is not None
    labels = [[each.label for each in panel.rows] for panel in found.panels]
    assert labels == [["dev perplexity"], ["dev bits"], ["pairs", "glue"]]


@pytest.mark.parametrize(("guess", "place"), [(300.0, None), (8.5, 50.0)])
def test_a_blind_guess_beyond_an_axis_without_percent_is_not_marked(guess: float, place: float | None) -> None:
    rows = [row(model, PERPLEXITY, mean, 0.0, blind_guess=guess) for model, mean in (("a", 8.0), ("b", 9.0))]
    found = score_chart(scores(*rows), [PERPLEXITY], {})
    assert found is not None
    ((ticks, (shown,)),) = [([text for _, text in panel.ticks], panel.rows) for panel in found.panels]
    assert (ticks[0], ticks[-1], shown.guess, found.has_guess) == ("8", "9", place, place is not None)
    html = render("score_chart.html.j2", chart=found)
    assert ("The dashed line is the score of a blind guess." in html) == (place is not None)
    assert "diamonds" not in html
    # A deviation of 0 has no error bar.
    assert [(dot.place, dot.low, dot.high) for dot in shown.dots] == [(0.0, None, None), (100.0, None, None)]


def test_a_measure_of_one_model_is_left_out_beside_measures_of_several() -> None:
    rows = [row("a", PAIRS, 80.0), row("b", PAIRS, 70.0), row("a", PERPLEXITY, 9.0)]
    found = score_chart(scores(*rows), [PERPLEXITY, PAIRS], {})
    assert found is not None and [each.label for panel in found.panels for each in panel.rows] == ["pairs"]


@pytest.mark.parametrize(("models", "shared"), [(10, False), (11, True)])
def test_dots_share_lines_and_have_a_legend_where_there_are_more_than_twenty(models: int, shared: bool) -> None:
    rows = [row(f"m{number}", measure, 60.0) for number in range(models) for measure in (PAIRS, GLUE)]
    found = score_chart(scores(*rows), [PAIRS, GLUE], {"M1": "#222222"})
    assert found is not None and len(found.legend) == (models if shared else 0)
    html = render("score_chart.html.j2", chart=found)
    lanes = [lane.count('class="dot"') for lane in html.split('<div class="lane">')[1:]]
    assert lanes == ([models] * 2 if shared else [1] * 2 * models)
    assert ('<p class="key">' in html) == ('<figure class="chart compact">' in html) == shared
    assert "blind guess" not in html and "diamonds" not in html
    assert found.legend.get("M1", "#222222") == "#222222"


def test_many_undecided_averages_are_counted() -> None:
    measures = [Measure(f"m{number}", f"m{number}", "average", "accuracy_percent") for number in range(4)]
    rows = [row(model, measure, 60.0) for model in "ab" for measure in measures]
    assert answer(scores(*rows), measures) == ["No model leads beyond noise on 4 averages."]
    assert answer(scores(*rows), measures[:3])[0].startswith("No model leads beyond noise on m0 (A 60.0, B 60.0); m1")


@pytest.mark.parametrize(("models", "drawn"), [(MOST_MODELS, True), (MOST_MODELS + 1, False)])
def test_a_chart_of_many_models_is_left_to_the_figures(models: int, drawn: bool) -> None:
    rows = [row(f"m{number}", PAIRS, 60.0 + number) for number in range(models)]
    assert (score_chart(scores(*rows), [PAIRS], {}) is not None) == drawn

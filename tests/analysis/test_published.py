"""The verdicts about our values beside published ones."""

import pytest

from hatchery.analysis.published_values import combined_deviation, half_of_last_digit, judge


@pytest.mark.parametrize(
    ("difference", "deviation", "verdict"),
    [
        (2.0, 1.0, "within"),
        (2.001, 1.0, "above"),
        (-2.001, 1.0, "below"),
        (-2.0, 1.0, "within"),
        (0.5, None, "within"),
        (0.51, None, "above"),
        (-0.51, None, "below"),
        (0.05, 0.0, "within"),
        (-0.06, 0.0, "below"),
        (85.3 - 84.8, None, "within"),
    ],
)
def test_ours_is_within_two_deviations_or_half_a_point(difference: float, deviation: float, verdict: str) -> None:
    assert judge(difference, deviation) == verdict


@pytest.mark.parametrize(
    ("published", "ours", "sampling", "combined"),
    [
        (3.0, 4.0, 100.0, 5.0),
        (None, 4.0, 100.0, 4.0),
        (3.0, None, None, 3.0),
        (3.0, None, 4.0, 5.0),
        (None, None, 1.5, 1.5),
        (0.0, 0.0, None, 0.0),
        (None, None, None, None),
    ],
)
def test_the_binomial_deviation_stands_in_only_where_ours_has_none_over_runs(
    published: float | None, ours: float | None, sampling: float | None, combined: float | None
) -> None:
    assert combined_deviation(published, ours, sampling) == combined


@pytest.mark.parametrize(("number", "half"), [("61.4", 0.05), ("-72", 0.5), ("0.25", 0.005)])
def test_the_rounding_of_a_printed_number_is_half_of_its_last_digit(number: str, half: float) -> None:
    assert half_of_last_digit(number) == pytest.approx(half)

"""The figures of the first steps: what their points are."""

from pathlib import Path

import pytest

from hatchery.analysis.settings import FigureSettings
from hatchery.analysis.tidy_tables import CURVES, write_rows
from hatchery.experiment.seeded_run import SeededRun
from hatchery.views.figures.lines import Panel, draw_steps, points_by_model


def test_a_point_is_the_mean_of_the_seeds_with_its_standard_error() -> None:
    rows = [("a", 4, 1.0), ("a", 0, 3.0), ("a", 4, 2.0), ("a", 4, 6.0), ("b", 0, None), ("a", 2, None)]
    points = points_by_model(rows)
    assert list(points) == ["a"]
    assert points["a"][0] == (0, 3.0, 0.0)
    step, mean, error = points["a"][1]
    # Deviation of 1, 2, 6: sqrt(7).
    assert (step, mean, error) == (4, 3.0, pytest.approx((7 / 3) ** 0.5))


def test_the_axis_says_that_it_is_logarithmic(tmp_path: Path) -> None:
    path = tmp_path / "curves.parquet"
    write_rows(path, CURVES, [])
    settings = FigureSettings("demo", (SeededRun("plain-s1", "plain", 1),))
    (axes,) = draw_steps(settings, {"curves": path}, [Panel("loss", "Loss")]).axes
    assert (axes.get_xscale(), axes.get_xlabel()) == ("symlog", "optimiser steps (logarithmic)")

"""Splits: drawn by name, independent of the others, in the asked proportions."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hatchery.corpora.settings import SplitSettings
from hatchery.corpora.splits import Splitter, point, smallest
from hatchery.errors import ConfigError, CorpusError
from hatchery.typed import build


def test_shares_are_those_of_the_settings() -> None:
    settings = SplitSettings(development_fraction=0.2, test_fraction=0.1, seed=1)
    splits = [Splitter(settings)(f"document-{index}") for index in range(4000)]
    assert splits.count("dev") / 4000 == pytest.approx(0.2, abs=0.03)
    assert splits.count("test") / 4000 == pytest.approx(0.1, abs=0.03)


@given(st.text(max_size=20), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_document_never_leaves_training_when_the_fractions_shrink(name: str, development: float, test: float) -> None:
    assume(development + test < 1)
    large = Splitter(SplitSettings(development, test))(name)
    small = Splitter(SplitSettings(development / 2, 0.0))(name)
    assert small in ("train", "dev")
    assert large != "train" or small == "train"


def test_another_seed_draws_another_split() -> None:
    draws = [[Splitter(SplitSettings(0.5, 0.0, seed))(str(index)) for index in range(64)] for seed in (0, 1)]
    assert draws[0] != draws[1]


@pytest.mark.parametrize("fractions", [(-0.1, 0.0), (0.7, 0.7), (0.0, 1.5)])
def test_impossible_fractions_are_refused(fractions: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="fraction"):
        build(SplitSettings, dict(zip(("development_fraction", "test_fraction"), fractions, strict=True)))


def test_an_exact_number_of_development_documents_is_met_whatever_the_order_and_the_parts() -> None:
    settings = SplitSettings(seed=3, development_documents=35)
    names = [f"text-{index}" for index in range(4049)]
    points = [point(3, name) for name in names]
    parts = [smallest(points[start : start + 100], settings) for start in range(0, len(points), 100)]
    whole = Splitter(settings, points)
    divided = Splitter(settings, (point for part in reversed(parts) for point in part))
    assert sum(whole(name) == "dev" for name in names) == 35
    assert [whole(name) for name in names] == [divided(name) for name in names]


def test_more_development_documents_than_documents_are_refused() -> None:
    settings = SplitSettings(development_documents=3)
    with pytest.raises(CorpusError, match=r"development_documents: got 3, the corpus has 2 documents"):
        Splitter(settings, smallest([5, 6], settings))


def test_a_fraction_above_zero_gives_the_document_with_the_smallest_draw_at_least() -> None:
    names = [f"text-{index}" for index in range(30)]
    for seed in range(20):
        settings = SplitSettings(development_fraction=0.01, seed=seed)
        points = sorted(point(seed, name) for name in names)
        splitter = Splitter(settings, smallest(points, settings))
        held_out = [name for name in names if splitter(name) == "dev"]
        by_fraction = [name for name in names if Splitter(settings)(name) == "dev"]
        assert held_out == (by_fraction or [min(names, key=lambda name: point(seed, name))])
    none = SplitSettings(development_fraction=0.0)
    assert smallest([1, 2], none) == []
    assert all(Splitter(none)(name) == "train" for name in names)

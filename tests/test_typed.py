"""Settings dataclasses take exactly the keys they declare."""

from dataclasses import dataclass
from typing import Literal

import pytest

from hatchery.errors import ConfigError
from hatchery.settings.base import Settings
from hatchery.typed import build, stage_body


@dataclass(frozen=True)
class Inner(Settings):
    rate: float


@dataclass(frozen=True)
class Outer(Settings):
    name: Literal["a", "b"]
    inner: Inner
    sizes: tuple[int, ...] = ()
    limit: int | None = None


def test_nested_values_are_built() -> None:
    value = build(Outer, {"name": "a", "inner": {"rate": 1}, "sizes": [1, 2], "limit": None})
    assert value == Outer("a", Inner(1.0), (1, 2), None)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"name": "c", "inner": {"rate": 1}}, "name: got 'c', allowed are: a, b"),
        ({"name": "a", "inner": {"rat": 1}}, "inner.rat: unknown key"),
        ({"name": "a"}, "inner: the key is missing"),
        ({"name": "a", "inner": {"rate": "x"}}, "inner.rate: got 'x', expected a number"),
        ({"name": "a", "inner": {"rate": 1}, "limit": True}, "limit: got True, expected a whole number or null"),
        ({"name": "a", "inner": {"rate": 1}, "sizes": [1, "2"]}, r"sizes\.1: got '2', expected a whole number"),
        ({"name": "a", "inner": 3}, "inner: got 3, expected keys with values"),
    ],
)
def test_a_wrong_value_names_its_key(mapping: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(Outer, mapping)


def test_the_body_of_a_slice_has_no_stage_keys() -> None:
    assert stage_body({"stage": "x", "stage_version": 1, "a": 2}) == {"a": 2}

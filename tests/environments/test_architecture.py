"""The drawings in the documentation are those that the code gives, and they can be read."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hatchery.environments import architecture, workflow_diagram
from hatchery.environments.architecture import BOXES, architecture_svg
from hatchery.environments.diagrams import Box, essential
from hatchery.errors import HatcheryError
from hatchery.stages.registry import STAGES

REPOSITORY = Path(__file__).parents[2]


def test_the_drawing_in_the_documentation_is_that_of_the_code() -> None:
    drawn = (REPOSITORY / "docs" / "architecture.svg").read_text(encoding="utf-8")
    assert drawn == architecture_svg(REPOSITORY / "scripts"), "call `make diagrams`"


def test_the_drawing_is_xml_names_every_package_and_has_colours_for_dark_screens() -> None:
    text = architecture_svg(REPOSITORY / "scripts")
    names = {element.text for element in ElementTree.fromstring(text).iter() if element.get("class") == "name"}
    assert names >= BOXES.keys()
    assert "prefers-color-scheme: dark" in text


def test_the_drawing_of_the_workflow_has_the_stages_of_today() -> None:
    drawn = ElementTree.parse(REPOSITORY / "docs" / "workflow.svg").iter()
    names = {element.text for element in drawn if element.get("class") == "name"}
    assert names == workflow_diagram.BOXES.keys(), "call `make diagrams`"
    # Not drawn: the choice of a tokenizer, models of others, translation, what prints a result, and what only a study
    # has.
    apart = {"select_tokenizer", "score_baseline", "translate_tests", "show_result", "join_experiments", "analyse"}
    assert names | workflow_diagram.SAME.keys() | apart == set(STAGES)


@pytest.mark.parametrize("placed", [BOXES, workflow_diagram.BOXES])
def test_no_two_boxes_overlap(placed: dict[str, Box]) -> None:
    boxes = [box for box in placed.values() if not box.wide]
    for index, box in enumerate(boxes):
        for other in boxes[index + 1 :]:
            assert box.row != other.row or abs(box.column - other.column) > 0.99, f"{box} and {other}"


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    assert essential({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == [("a", "b"), ("b", "c")]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"attic": Box(0, 0, "plan", "old things")}, "expected a place for every package: attic"),
        ({"corpora": Box(1, 1, "text", "documents")}, r"\w+ -> corpora: expected a lower row"),
    ],
)
def test_a_place_that_does_not_fit_the_code_is_told(
    changed: dict[str, Box], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(architecture, "BOXES", BOXES | changed)
    with pytest.raises(HatcheryError) as error:
        architecture_svg(REPOSITORY / "scripts")
    assert re.search(words, str(error.value))

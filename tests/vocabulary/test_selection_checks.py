"""Selections of a corpus in the configuration: their plans and refused combinations."""

from pathlib import Path
from typing import Any

import pytest

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.vocabulary.settings import SelectionSettings
from hatchery.workflow.jobs import Jobs


def test_a_corpus_of_a_selection_is_planned_and_its_raw_inputs_are_those_of_both(repository: Path) -> None:
    project = Project(repository / "config")
    inputs = Jobs(project).call("select_text", selection="real_small_sentences").arguments
    assert inputs["source"] == "results/corpora/real_small/manifest.json"
    names = {source["name"] for source in raw_inputs(project, "real_scaling")}
    assert {"aochildes", "nltk_brown", "aochildes_released"} <= names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "corpus: demo\noptions: {format: text}\n",
            "which cannot be combined with `corpus`, because the sources of the corpus have",
        ),
    ],
)
def test_a_selection_of_both_kinds_is_refused(configuration: Path, text: str, message: str) -> None:
    (configuration / "selections/mine.yaml").write_text(f"vocabulary: demo\nlevel: sentences\n{text}", encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        Project(configuration).check("selection", "mine")


def test_a_corpus_that_is_selected_from_itself_is_told(configuration: Path) -> None:
    path = configuration / "selections/real_small_sentences.yaml"
    path.write_text(path.read_text().replace("corpus: real_small", "corpus: real_scaling"), encoding="utf-8")
    with pytest.raises(ConfigError, match="made from itself: real_scaling -> real_scaling"):
        Project(configuration).check("corpus", "real_scaling")


@pytest.mark.parametrize(("level", "least"), [("sentences", 6), ("spans", 41), ("windows", 0)])
def test_a_level_has_its_own_least_number_of_words_which_may_be_set_to_none_at_all(level: Any, least: int) -> None:
    assert SelectionSettings(name="mine", level=level).minimum_counted_words == least
    assert SelectionSettings(name="mine", level=level, minimum_counted_words=0).minimum_counted_words == 0

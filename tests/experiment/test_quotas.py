"""Quotas and held-out numbers of sequences against the number of texts in the configuration, and held-out splits."""

import re
from pathlib import Path

import pytest
from shipped import edit

from hatchery.errors import ConfigError
from hatchery.experiment.held_out_text import held_out_splits
from hatchery.experiment.project import Project

UNCONSTRAINED = "reduced_vocabulary_unconstrained"
CORPUS = f"corpora/{UNCONSTRAINED}.yaml"


def take_documents(folder: Path, number: int | None) -> None:
    text = (folder / "config.yaml").read_text(encoding="utf-8")
    (shipped,) = re.findall(r"documents: \d{6,}", text)
    edit(folder, "config.yaml", shipped, f"documents: {'null' if number is None else number}")


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        (1_000_000, "got 7,480,000, but this selection has at most 4,000,000 texts; raise data.c4.hub.documents"),
        (1_869_999, " from 1,869,999 to "),
        (1_870_000, None),
        (None, None),
    ],
)
def test_a_quota_of_windows_is_compared_with_the_documents_that_are_taken(
    documents: int | None, told: str | None, configuration: Path
) -> None:
    take_documents(configuration, documents)
    if told is None:
        Project(configuration).check("corpus", UNCONSTRAINED)
        return
    with pytest.raises(ConfigError) as caught:
        Project(configuration).check("corpus", UNCONSTRAINED)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{configuration / CORPUS}: sequences.groups.0.quotas.c4_windows: got 7,480,000, but ")
    assert told in line and "to at least 1,870,000" in line


def test_one_window_more_needs_one_document_more_of_each_split(configuration: Path) -> None:
    """Four windows are drawn from each document."""
    edit(configuration, CORPUS, "c4_windows: 7480000", "c4_windows: 7480001")
    take_documents(configuration, 1_870_000)
    with pytest.raises(ConfigError, match="to at least 1,870,001"):
        Project(configuration).check("corpus", UNCONSTRAINED)
    edit(configuration, "selections/c4_windows.yaml", '["*train*"]', '["*train*", "*validation*"]')
    take_documents(configuration, 935_001)
    Project(configuration).check("corpus", UNCONSTRAINED)
    take_documents(configuration, 935_000)
    with pytest.raises(ConfigError, match=r"has at most 7,480,000 texts; .* to at least 935,001"):
        Project(configuration).check("corpus", UNCONSTRAINED)


def test_files_at_a_path_are_not_counted(configuration: Path, tmp_path: Path) -> None:
    take_documents(configuration, 1_000_000)
    project = Project(configuration, {"data": {"c4": {"path": str(tmp_path)}}})
    project.check("corpus", UNCONSTRAINED)
    assert project.corpus(UNCONSTRAINED).sequences.groups[0].quotas["c4_windows"] == 7_480_000


def test_a_corpus_that_is_read_as_one_text_has_the_windows_that_are_drawn(configuration: Path) -> None:
    edit(configuration, CORPUS, "cbt_windows: 32000", "cbt_windows: 80002")
    with pytest.raises(
        ConfigError, match=r"cbt_windows: got 80,002, .* has at most 80,001 texts; raise windows_per_text"
    ):
        Project(configuration).check("corpus", UNCONSTRAINED)


def test_held_out_numbers_leave_something_for_training(configuration: Path) -> None:
    edit(configuration, CORPUS, "set_aside: 200000", "set_aside: 9281490")
    with pytest.raises(
        ConfigError, match=r"groups\.0: got set_aside 9,281,490, but the corpus has at most 9,281,490 sequences, so no"
    ):
        Project(configuration).check("corpus", UNCONSTRAINED)


def test_a_corpus_may_have_the_held_out_splits_of_its_files_or_of_any_of_its_groups(configuration: Path) -> None:
    edit(configuration, "corpora/demo_reduced.yaml", "_spans], development: 0.05, test: 0.05", "_spans], test: 0.0")
    project = Project(configuration)
    expected = {
        "babylm_10M": {"dev", "test"},
        "babylm_dev": {"dev"},
        "babylm_test": {"test"},
        # Generated text in the layout of BabyLM has no test split.
        "demo": {"dev"},
        "demo_parallel": {"dev", "test"},
        "demo_parallel_other": {"test"},
        "demo_reduced": {"dev", "test"},
        # Files without a split are divided at random; a sample keeps the splits of its corpus.
        "iwslt14_de_en_wit3": {"dev", "test"},
        "demo_books_sample": {"dev"},
        "babybabellm_eng_nld": {"dev", "test"},
    }
    assert {name: held_out_splits(project, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("split", "expected"), [("documents: 3, development_fraction: 0", {"dev"}), ("documents: 0", set())]
)
def test_a_number_of_development_documents_takes_the_place_of_their_share(
    configuration: Path, split: str, expected: set[str]
) -> None:
    edit(configuration, "corpora/demo_books.yaml", "{development_fraction: 0.05}", f"{{development_{split}}}")
    assert held_out_splits(Project(configuration), "demo_books") == expected

"""Parameter counts of every named model and every published size: ours, published, by formula, docs/models.md."""

import csv
import itertools
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import build_language_model
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS
from hatchery.modeling.roberta.config import RobertaConfig
from hatchery.modeling.roberta.encoder import embedding_parameters, roberta_parameters

REPOSITORY = Path(__file__).resolve().parents[2]
MODELS = REPOSITORY / "config" / "models"
PUBLISHED = REPOSITORY / "config" / "published" / "models" / "parameters.csv"
TABLE = REPOSITORY / "docs" / "models.md"
STUDY_SUBWORDS = 19_000


class Size(NamedTuple):
    """A model: a file of config/models, changed keys, and the size of the vocabulary."""

    model: str
    changes: str
    subwords: int

    def config(self) -> ModelConfig:
        values = yaml.safe_load((MODELS / f"{self.model}.yaml").read_text())
        values.pop("description", None)
        return model_config({**values, **yaml.safe_load(f"{{{self.changes}}}"), "vocab_size": self.subwords})


class PublishedCount(NamedTuple):
    """A row of config/published/models/parameters.csv."""

    size: Size
    paper: str
    source: str
    measure: str
    value: str
    unit: str
    printed_heads: str
    size_of: str


@cache
def published_counts() -> list[PublishedCount]:
    with PUBLISHED.open(newline="") as file:
        return [
            PublishedCount(
                Size(row["model"], row["changes"], int(row["subwords"])),
                *(row[key] for key in PublishedCount._fields[1:]),
            )
            for row in csv.DictReader(file)
        ]


def built(config: ModelConfig) -> int:
    """Return the number of parameters of the trained model; a shared matrix counts once."""
    with torch.device("meta"):
        model = build_language_model(config)
    return sum(parameter.numel() for parameter in model.parameters())


@cache
def ours(size: Size) -> int:
    return built(size.config())


def family(config: ModelConfig) -> str:
    if not isinstance(config, RobertaConfig):
        return config.family
    return f"{config.family}, {'tied' if config.tie_word_embeddings else 'untied'}"


def agrees(count: int, published: PublishedCount) -> bool:
    """Whether a count is the published number, exactly or rounded or truncated to the printed digits of millions."""
    if published.unit == "parameters":
        return count == int(published.value)
    digits = len(published.value.partition(".")[2])
    scaled = count / 10 ** (6 - digits)
    printed = int(published.value.replace(".", ""))
    return printed in (math.floor(scaled), math.floor(scaled + 0.5))


def counted(published: PublishedCount) -> int:
    """Return our model's value of the measure that the published number gives."""
    size = published.size
    if published.measure == "added_parameters":
        return ours(size) - ours(size._replace(subwords=STUDY_SUBWORDS))
    if published.measure == "embedding_parameters":
        config = size.config()
        assert isinstance(config, RobertaConfig)
        return embedding_parameters(config)
    if published.size_of == "untied":
        assert size.model.endswith("_tied")
        return ours(Size(size.model.removesuffix("_tied"), "", size.subwords))
    return ours(size)


@pytest.mark.parametrize(
    ("source", "n"), [("Table 3", 19), ("Table 7", 8), ("run ", 84), ("authors' code", 25), ("paper", 1)]
)
def test_every_published_count_is_the_size_of_the_model_that_it_is_about(source, n):
    rows = [row for row in published_counts() if row.source.startswith(source)]
    assert len(rows) == n
    for row in rows:
        assert agrees(counted(row), row), row


def test_the_unconstrained_vocabulary_adds_what_table_4_prints():
    rows = [row for row in published_counts() if row.measure == "added_parameters"]
    assert len(rows) == 10
    for row in rows:
        config = row.size.config()
        assert isinstance(config, RobertaConfig)
        assert family(config) == "roberta, untied"
        assert counted(row) == 10_000 * (config.embedding_width + config.hidden_size + 1)
        assert agrees(counted(row), row), row


def test_sizes_printed_for_a_model_of_the_other_family_are_those_of_the_anchor_and_of_the_varied_heads():
    others = [row for row in published_counts() if row.size_of]
    assert [(row.source, row.printed_heads) for row in others] == [
        *(("Table 3", heads) for heads in "8124"),
        ("Table 7", "2"),
    ]
    for row in others:
        assert not agrees(ours(row.size), row)
        assert (ours(row.size), counted(row)) == (11_304_258, 16_237_122)


def sizes_of(row: dict[str, str]) -> tuple[int, ...]:
    return tuple(int(row[key]) for key in "EHIL")


def model_sizes(config: ModelConfig) -> tuple[int, ...]:
    assert isinstance(config, RobertaConfig)
    return config.embedding_width, config.hidden_size, config.intermediate_size, config.num_hidden_layers


def test_our_table_has_the_logged_runs_with_their_families_and_sizes(golden_directory):
    path = golden_directory / "published" / "reduced_vocabulary_repo_runs_jan2023.csv"
    with path.open(newline="") as file:
        runs = list(csv.DictReader(file))
    assert len(runs) == 42
    assert sum(run["family"].startswith("tied") for run in runs) == 7
    carried = {(row.source, row.measure): row for row in published_counts()}
    for run in runs:
        total = carried[f"run {run['run']}", "parameters"]
        config = total.size.config()
        assert family(config) == ("roberta, tied" if run["family"].startswith("tied") else "roberta, untied")
        assert (config.embedding_size is None) == ("no projection" in run["family"])
        assert model_sizes(config) == sizes_of(run)
        assert config.num_attention_heads == (int(run["A"]) if config.tie_word_embeddings else 8)
        assert total.printed_heads == run["A"]
        assert ours(total.size) == roberta_parameters(config) == int(run["total_params"]) == int(total.value)
        embedding = carried[f"run {run['run']}", "embedding_parameters"]
        assert counted(embedding) == int(run["embedding_params"]) == int(embedding.value)


@pytest.mark.parametrize("table", [3, 7])
def test_our_table_has_the_printed_sizes_with_their_families(golden_directory, table):
    path = golden_directory / "published" / f"reduced_vocabulary_table{table}.csv"
    with path.open(newline="") as file:
        printed = list(csv.DictReader(file))
    carried = [row for row in published_counts() if row.source == f"Table {table}"]
    assert len(printed) == len(carried)
    for theirs, row in zip(printed, carried, strict=True):
        config = row.size.config()
        assert model_sizes(config) == sizes_of(theirs)
        assert (row.printed_heads, row.value) == (theirs["A"], theirs["params_millions"])
        # The anchor and the seven runs that vary A or I are tied; Table 7 of the reduced-vocabulary study repeats the
        # best of these runs.
        varies_heads_or_width = sizes_of(theirs)[:2] == (256, 256) and sizes_of(theirs)[3] == 8
        assert config.tie_word_embeddings == varies_heads_or_width
        assert config.num_attention_heads == (int(theirs["A"]) if varies_heads_or_width else 8)


# The table of docs/models.md

HEADER = (
    "| base model | keys that replace values of the base model | family | subwords (+ rows without a subword) "
    "| our number of parameters | published number of parameters (source) | are our and published numbers equal? |"
)


def published_of(size: Size) -> list[PublishedCount]:
    return [row for row in published_counts() if row.size == size and row.measure != "embedding_parameters"]


def in_words(row: PublishedCount, config: ModelConfig) -> str:
    number = f"{row.value} M" if row.unit == "million" else f"{int(row.value):,}"
    more = " more than with 19,000 subwords" if row.measure == "added_parameters" else ""
    differs = row.printed_heads not in ("", str(config.num_attention_heads))
    heads = f", {row.printed_heads} head{'s' * (row.printed_heads != '1')}" if differs else ""
    return f"{number}{more} ({source(row)}{heads})"


def source(row: PublishedCount) -> str:
    """Return the source of a published number with the paper, unless the source is a run or code."""
    paper = row.paper.replace("Reduced", "reduced")
    if row.source == "paper":
        return f"{paper} paper"
    return f"{paper}, {row.source}" if row.source.startswith("Table") else row.source


def verdict(rows: list[PublishedCount]) -> str:
    if not rows:
        return "not published"
    lines = []
    if equal := [row for row in rows if not row.size_of and agrees(counted(row), row)]:
        lines.append("yes" if len(equal) == len(rows) else f"equal to {sources(equal)}")
    if other := [row for row in rows if row.size_of]:
        printed = f"the size of the {other[0].size_of} model ({counted(other[0]):,})"
        lines.append(f"not equal to {sources(other)}, which print{'s' * (len(other) == 1)} {printed}")
    if wrong := [row for row in rows if not row.size_of and not agrees(counted(row), row)]:
        lines.append(f"not equal to {sources(wrong)}")
    return "; ".join(lines)


def sources(rows: list[PublishedCount]) -> str:
    return " and ".join("the run" if row.source.startswith("run ") else source(row) for row in rows)


def table_row(size: Size) -> str:
    """Return the row of docs/models.md for `size`."""
    config = size.config()
    rows = published_of(size)
    spare = f" + {config.extra_vocabulary_rows}" if isinstance(config, RobertaConfig) else ""
    published = "; ".join(in_words(row, config) for row in rows) or "-"
    changes = f"`{size.changes}`" if size.changes else ""
    cells = (f"`{size.model}`", changes, family(config), f"{size.subwords:,}{spare}", f"{ours(size):,}", published)
    return f"| {' | '.join((*cells, verdict(rows)))} |".replace("|  |", "| |")


def table_lines() -> Iterator[tuple[Size, str]]:
    lines = TABLE.read_text().splitlines()
    start = lines.index(HEADER) + 2
    for line in itertools.takewhile(lambda line: line.startswith("|"), lines[start:]):
        model, changes, _, subwords, *_ = (cell.strip().strip("`") for cell in line.strip("|").split("|"))
        yield Size(model, changes, int(subwords.split(" + ")[0].replace(",", ""))), line


def test_every_line_of_the_table_is_what_the_models_give():
    for size, line in table_lines():
        assert line == table_row(size)


def test_every_named_model_and_every_published_size_has_one_line():
    listed = [size for size, _ in table_lines()]
    assert len(set(listed)) == len(listed)
    named = {path.stem for path in MODELS.glob("*.yaml")}
    without = sorted(named - {size.model for size in listed if not size.changes})
    assert not without, f"docs/models.md lacks a line such as: {table_row(Size(without[0], '', 16384))}"
    assert not {row.size for row in published_counts()} - set(listed)


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, int]:
    """Sizes that all configurations have."""
    heads = draw(st.integers(1, 4))
    return {
        "vocab_size": draw(st.integers(2, 50)),
        "hidden_size": heads * draw(st.integers(2 if heads == 1 else 1, 6)),
        "intermediate_size": draw(st.integers(1, 30)),
        "num_hidden_layers": draw(st.integers(1, 4)),
        "num_attention_heads": heads,
        "extra_vocabulary_rows": draw(st.integers(0, 12)),
        "max_position_embeddings": draw(st.integers(2, 140)),
        "type_vocab_size": draw(st.integers(1, 3)),
    }


@settings(max_examples=60, deadline=None)
@given(sizes(), st.booleans(), st.none() | st.integers(1, 24), st.data())
def test_the_formula_counts_the_parameters_of_every_configuration_as_built(common, tied, embedding_size, data):
    if tied and embedding_size is not None:
        embedding_size = common["hidden_size"]
    config = RobertaConfig(
        **common,
        embedding_size=embedding_size,
        tie_word_embeddings=tied,
        layer_weighting=data.draw(st.sampled_from(sorted(LAYER_WEIGHTINGS))),
        vocabulary_bias=data.draw(st.booleans()),
        sentence_pair_head=data.draw(st.booleans()),
    )
    assert roberta_parameters(config) == built(config)

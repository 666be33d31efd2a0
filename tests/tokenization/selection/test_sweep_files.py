"""Every sweep in the configuration becomes settings that the stage accepts."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.analysis.studies import analyses_of
from hatchery.artifacts.yaml_files import read_yaml
from hatchery.errors import ConfigError
from hatchery.experiment.kinds import FILES
from hatchery.experiment.project import Project
from hatchery.tokenization.selection.settings import CandidateType, SweepSettings
from hatchery.tokenization.selection.table import (
    PRETRAINED,
    Measures,
    best_type,
    chosen_rows,
    closest_size,
    read_published_selection,
)
from hatchery.typed import build, plain, stage_body, validated
from hatchery.workflow.jobs import Jobs

CONFIG = Path(__file__).parents[3] / "config"
SWEEPS = sorted(path.stem for path in (CONFIG / "tokenizer_sweeps").glob("*.yaml"))


@pytest.mark.parametrize("sweep", SWEEPS)
def test_the_stage_accepts_every_sweep(sweep: str) -> None:
    settings = stage_body(json.loads(Jobs(Project(CONFIG)).settings("select_tokenizer", sweep=sweep)))
    assert build(SweepSettings, settings).name == sweep


@pytest.mark.parametrize("sweep", SWEEPS)
def test_published_names_are_in_the_published_table(sweep: str) -> None:
    block = validated(FILES["tokenizer_sweep"], read_yaml(CONFIG / "tokenizer_sweeps" / f"{sweep}.yaml"), sweep)
    named = {entry.published_as for entry in block.types.values()} - {None}
    assert (block.published is None) == (not named)
    if named:
        table = read_published_selection(CONFIG / "published" / "tokenizers" / f"{block.published}.csv")
        assert named <= {name for name, _ in table}


def test_every_printed_tokenizer_is_tried_by_a_sweep() -> None:
    table = read_published_selection(CONFIG / "published" / "tokenizers" / "tokenizer_selection.csv")
    sweeps = [read_yaml(CONFIG / "tokenizer_sweeps" / f"{sweep}.yaml") for sweep in SWEEPS]
    types = [entry for sweep in sweeps for entry in sweep["types"].values() if "published_as" in entry]
    tried = {(entry["published_as"], str(size)) for entry in types for size in entry["sizes"]}
    assert {key for key in table if key[1] != "pretrained"} <= tried


def test_the_tokenizer_of_any_words_is_the_one_that_its_sweep_would_choose_with_the_printed_ratio() -> None:
    """Reduced vocabulary, Appendix C.2: 29,000 entries, ratio 1.53, ESMS 0.2339."""
    project, name = Project(CONFIG), "reduced_vocabulary_unconstrained"
    sweep, tokenizer = project.tokenizer_sweep(name), project.tokenizer(name)
    (entry,) = sweep.types.values()
    assert (entry.reference_ratio, tokenizer.vocabulary_size) == (1.53, 29_000)
    printed = read_published_selection(CONFIG / "published" / "tokenizers" / f"{sweep.published}.csv")
    row = printed[str(entry.published_as), "29000"]
    assert (row["word_split_ratio"], row["esms"], row["final_choice"]) == ("1.53", "0.2339", "1")
    own = read_yaml(CONFIG / "tokenizers" / f"{name}.yaml")
    assert {**plain(entry.definition), "vocabulary_size": 29_000, "corpus": sweep.corpus}.items() >= {
        key: value for key, value in own.items() if key != "description"
    }.items()
    study = analyses_of(project, "reduced_vocabulary")["tokenizers_unconstrained"]
    assert study.sweep == name


def test_an_unknown_key_is_named_with_the_nearest() -> None:
    sweep = {"corpus": "demo", "types": {"a": {"definition": {}, "size": [400]}}}
    with pytest.raises(ConfigError, match=r"types\.a\.size: unknown key.*did you mean 'sizes'"):
        validated(FILES["tokenizer_sweep"], sweep, "file")


def test_the_references_of_table_6_can_be_measured_instead_of_taken_from_print(tmp_path: Path) -> None:
    """The rows "pre-trained": each printed ratio can be replaced by an entry of `data` that is there."""
    shutil.copytree(CONFIG, tmp_path / "config")
    path = tmp_path / "config/tokenizer_sweeps/reduced_vocabulary.yaml"
    references = {
        "byte_bpe": ("1.32", "roberta_base_tokenizer"),
        "wordpiece": ("1.17", "bert_base_uncased_tokenizer"),
        "unigram": ("1.29", "t5_base_tokenizer"),
    }
    text = path.read_text(encoding="utf-8")
    for ratio, data in references.values():
        assert text.count(f"reference_ratio: {ratio}") == 1
        text = text.replace(f"reference_ratio: {ratio}", f"reference: {data}")
    path.write_text(text, encoding="utf-8")
    project = Project(tmp_path / "config")
    call = Jobs(project).call("select_tokenizer", sweep="reduced_vocabulary")
    expected = {name: f"resources/sources/{data}.json" for name, (_, data) in references.items()}
    assert call.arguments["reference"] == expected
    assert all(kind.reference_ratio is None for kind in project.tokenizer_sweep("reduced_vocabulary").types.values())


ratios_by_size = st.dictionaries(st.integers(300, 40000), st.floats(1.0, 3.0), min_size=1, max_size=8)


def test_the_rule_chooses_from_the_published_table_what_the_paper_chose(repository: Path) -> None:
    published = read_published_selection(repository / "config" / "published" / "tokenizers" / "tokenizer_selection.csv")
    types = ("BPE", "WordPiece", "SentencePiece")
    by_size, references = {}, {}
    for (name, size), printed in published.items():
        if name not in types:
            continue
        measures = Measures(float(printed["word_split_ratio"]), esms_published_code=float(printed["esms"]))
        if size == PRETRAINED:
            references[name] = measures
        else:
            by_size[name, int(size)] = measures
    settings = SweepSettings(
        name="table 6",
        types=tuple(
            CandidateType(
                name=name,
                definition={"kind": "byte_bpe", "min_frequency": 0},
                sizes=tuple(size for of, size in by_size if of == name),
                published_as=name,
            )
            for name in types
        ),
    )
    rows = chosen_rows(settings, by_size, references, dict.fromkeys(types, 30000))
    assert len(rows) == 12
    for row in rows:
        printed = published[row.type, row.size_name]
        assert str(int(row.selected_within_type)) == printed["selected_within_type"], row
        assert str(int(row.final_choice)) == printed["final_choice"], row


def test_a_tie_goes_to_the_smaller_size_after_rounding_only() -> None:
    ratios = {17000: 1.166, 16000: 1.174}
    assert closest_size(ratios, 1.168, decimals=2) == 16000
    assert closest_size(ratios, 1.168, decimals=None) == 17000
    assert closest_size({18000: 1.34, 20000: 1.30}, 1.32, decimals=2) == 18000


def test_equal_scores_go_to_the_first_type() -> None:
    assert best_type({"a": 0.1, "b": 0.3, "c": 0.3}) == "b"


@given(ratios_by_size, st.floats(1.0, 3.0))
def test_no_other_size_is_closer(ratios: dict[int, float], reference: float) -> None:
    chosen = closest_size(ratios, reference, None)
    assert all(abs(ratios[chosen] - reference) <= abs(ratio - reference) + 1e-9 for ratio in ratios.values())
    assert chosen == closest_size(dict(reversed(list(ratios.items()))), reference, None)

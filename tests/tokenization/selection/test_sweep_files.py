"""Every sweep in the configuration becomes settings that the stage accepts."""

import json
import shutil
from pathlib import Path

import pytest

from hatchery.analysis.studies import analyses_of
from hatchery.artifacts.yaml_files import read_yaml
from hatchery.errors import ConfigError
from hatchery.experiment.kinds import FILES
from hatchery.experiment.project import Project
from hatchery.tokenization.selection.settings import SweepSettings
from hatchery.tokenization.selection.table import read_published_selection
from hatchery.typed import build, plain, stage_body, validated
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.registry import stage_settings

CONFIG = Path(__file__).parents[3] / "config"
SWEEPS = sorted(path.stem for path in (CONFIG / "tokenizer_sweeps").glob("*.yaml"))


@pytest.mark.parametrize("sweep", SWEEPS)
def test_the_stage_accepts_every_sweep(sweep: str) -> None:
    settings = stage_body(json.loads(stage_settings(Project(CONFIG), "select_tokenizer", sweep=sweep)))
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

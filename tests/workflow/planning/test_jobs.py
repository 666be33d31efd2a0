"""Results that experiments share are stored by their settings and inputs; experiments have links to them."""

import re
import shutil
from pathlib import Path

import pytest

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.job_spec import read_call
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import readable_path

RUN = "ltg_bert-s42"
KINDS = (
    *("pretraining", "perplexity", "minimal_pairs/{}/tiny_pairs", "finetuning/{}/demo_acceptability"),
    "filled_sentences",
)
PLACES = [f"{kind}/{RUN}" if "{}" not in kind else kind.format(RUN) for kind in KINDS]


@pytest.fixture
def folder(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(repository / "config", tmp_path / "config")
    shutil.copytree(repository / "tests/workflow/tiny", tmp_path / "config", dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def jobs() -> Jobs:
    return Jobs(Project("config"))


def edited(folder: Path, *changes: tuple[str, str], name: str = "tiny") -> None:
    text = (folder / "config/experiments/tiny.yaml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / f"config/experiments/{name}.yaml").write_text(text, encoding="utf-8")


def kept(experiment: str, place: str) -> str:
    return jobs().storage_path(readable_path(experiment, *place.split("/", 1)))


@pytest.mark.parametrize("place", PLACES)
def test_a_copied_or_renamed_experiment_and_a_run_with_equal_settings_find_the_same_results(
    folder: Path, place: str
) -> None:
    again = ("  elc_bert:", "  again: {model: ltg_tiny, seeds: [42]}\n  elc_bert:")
    edited(folder, ("As small as", "As large as"), again, name="copied")
    own = kept("tiny", place)
    assert own != f"results/tiny/{place}/manifest.json"
    assert kept("copied", place) == kept("copied", place.replace(RUN, "again-s42")) == own


def test_a_page_needs_sentences_of_the_first_seed_of_each_model(folder: Path) -> None:
    edited(folder, ("{model: elc_tiny}", "{model: elc_tiny, seeds: [7, 3]}"), name="several")
    planned = jobs()
    filled = planned.call("write_page", experiment="several").arguments["filled"]
    assert isinstance(filled, dict)
    everything = list(planned.results.filled_sentences("several"))
    assert [name for name in everything if name.startswith("elc_bert")] == ["elc_bert-s7", "elc_bert-s3"]
    assert list(filled) == [name for name in everything if name != "elc_bert-s3"]


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        (("steps: 12", "steps: 13"), PLACES),
        (("corpus: tiny", "corpus: demo"), PLACES),
        (("learning_rates: [5.0e-4]", "learning_rates: [6.0e-4]"), PLACES[3:4]),
        (("splits: [dev]", "splits: [dev], mask_probability: 0.2"), PLACES[1:2]),
        (("description: As", "description: How"), []),
    ],
)
def test_an_address_changes_with_the_settings_and_inputs_of_its_result_and_of_its_model(
    folder: Path, change: tuple[str, str], moved: list[str]
) -> None:
    before = {place: kept("tiny", place) for place in PLACES}
    edited(folder, change)
    assert [place for place in PLACES if kept("tiny", place) != before[place]] == moved


def test_a_dry_run_writes_nothing_and_a_run_writes_what_a_job_of_a_cluster_needs(folder: Path) -> None:
    planned = jobs()
    places = {place: planned.storage_path(readable_path("tiny", *place.split("/", 1))) for place in PLACES}
    assert not (folder / "results").exists()
    planned.write_calls()
    for place, target in places.items():
        link = folder / "results/tiny" / place
        assert link.is_symlink() and not link.readlink().is_absolute()
        assert link.resolve() == (folder / target).parent
    model, address = places[PLACES[3]].split("/")[2:4]
    # The process of a job knows the addresses of its rule, but no experiment.
    job = jobs()
    assert job.call_at(model).settings == planned.settings("pretrain", experiment="tiny", run=RUN)
    assert job.call_at(model).arguments["tokens"] == planned.results.tokens("tiny")
    asked = planned.call("finetune", experiment="tiny", task="demo_acceptability")
    assert job.call_at(address).arguments["source"] == asked.arguments["source"]
    assert read_call(job.call_at(address).path).settings == planned.settings(
        "finetune", experiment="tiny", task="demo_acceptability"
    )
    assert job.title(model) == RUN


def test_what_is_asked_for_after_the_start_is_written_at_once_and_an_altered_file_anew_at_the_next(
    folder: Path,
) -> None:
    running = jobs()
    running.write_calls()
    path = running.call("write_cost", experiment="tiny").path
    assert read_call(path).settings == running.settings("write_cost", experiment="tiny")
    path.write_text(path.read_text().replace("12", "13", 1))
    again = jobs()
    again.call("write_cost", experiment="tiny")
    again.write_calls()
    assert read_call(path).settings == running.settings("write_cost", experiment="tiny")


@pytest.mark.parametrize(
    ("stage", "corpus", "made_from"),
    [
        ("convert_corpus", "wikipedia_bookcorpus_bnc_sized", "sample"),
        ("sample_corpus", "demo", "sources"),
    ],
)
def test_a_corpus_that_another_stage_makes_is_told_with_what_to_ask_for(
    folder: Path, stage: str, corpus: str, made_from: str
) -> None:
    planned = jobs()
    path = planned.results.of.corpus(corpus)
    expected = f"'{corpus}' is made from `{made_from}`, so its manifest has another path; request {path}"
    with pytest.raises(ConfigError, match=re.escape(expected)):
        planned.call(stage, corpus=corpus)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("pretraining/ltg_bret-s42", r"has no model 'ltg_bret-s42'.*did you mean 'ltg_bert-s42'"),
        (
            f"finetuning/{RUN}/demo_acceptance",
            r"has no fine-tuning task 'demo_acceptance'.*did you mean 'demo_acceptability'",
        ),
    ],
)
def test_unknown_models_tasks_and_addresses_are_told_with_what_there_is(place: str, message: str, folder: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        kept("tiny", place)
    with pytest.raises(ConfigError, match="tiny-0123456789abcdef: this path belongs to no known result; request"):
        jobs().call_at("tiny-0123456789abcdef")


@pytest.mark.parametrize("place", [f"finetuning/{RUN}", f"pretraining/{RUN}/demo_acceptability"])
def test_a_readable_place_with_a_part_too_few_or_too_many_is_told_with_what_to_ask_for(place: str) -> None:
    with pytest.raises(ConfigError, match=rf"results/tiny/{place}: expected results/tiny/\w+/<run>(/<task>)?/manifest"):
        kept("tiny", place)


def test_results_of_a_job_of_several_tasks_are_linked_for_the_views_that_read_them(folder: Path) -> None:
    planned = Jobs(Project("config"))
    ambiguous = {
        name: path for name, path in planned.results.of_kind("strict_mini", "finetuning").items() if "msgs" in name
    }
    assert ambiguous
    planned.targets_for(ambiguous.values())
    planned.write_calls()
    for place in ambiguous.values():
        assert Path(place).parent.is_symlink()


@pytest.mark.parametrize(
    ("change", "matters"),
    [
        (("batch_size: 8", "batch_size: 16"), False),
        (("evaluation_interval_steps: 6", "evaluation_interval_steps: 12"), False),
        (("pretraining:", "pretraining:\n  optimizer: {name: adamw, learning_rate: 0.002}"), False),
        (("pretraining:", "pretraining:\n  schedule: {name: linear}"), False),
        (("pretraining:", "pretraining:\n  keep_training_state: true"), False),
        (("pretraining:", "pretraining:\n  precision: bf16"), False),
        (("sequence_length: 32", "sequence_length: 24"), True),
        (("pretraining:", "pretraining:\n  objective: {mask_probability: 0.3}"), True),
        (("pretraining:", "pretraining:\n  output_bias: {kind: unigram}"), True),
    ],
)
def test_a_model_without_training_does_not_depend_on_how_others_are_trained(
    folder: Path, change: tuple[str, str], matters: bool
) -> None:
    places = ["pretraining/random-s42", f"pretraining/{RUN}"]
    before = [kept("tiny", place) for place in places]
    edited(folder, change)
    assert [kept("tiny", place) != address for place, address in zip(places, before, strict=True)] == [matters, True]

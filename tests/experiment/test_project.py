"""A project: blocks merged from its files, blocks without a file, and the effects of a broken file or name."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from shipped import DEMO, changed, edit, load_everything, written

from hatchery.errors import ConfigError
from hatchery.experiment import cluster as module
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import missing_sources
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import Problems
from hatchery.training.settings import WARMUP_FRACTION
from hatchery.typed import keys_of
from hatchery.views.stages.summarise import summary_settings
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import readable_path
from hatchery.workflow.plan_checks import collect_problems


@pytest.mark.parametrize(
    ("run", "warmup"),
    [
        # `warmup_steps` replaces the experiment's warm-up, so `warmup_fraction` has its default again.
        ("{schedule: {warmup_steps: 100}}", {"warmup_steps": 100, "warmup_fraction": WARMUP_FRACTION}),
        # The first part of a longer training.
        (
            "{steps: 20, schedule: {name: constant, warmup_steps: 100}, keep_training_state: true}",
            {"warmup_steps": 100, "warmup_fraction": WARMUP_FRACTION},
        ),
        ("{steps: 0}", {"warmup_fraction": 0.05}),
        # Evaluated only at its end, because it is shorter than the evaluation interval.
        ("{steps: 100}", {"warmup_fraction": 0.05}),
    ],
)
def test_what_a_run_says_of_its_steps_is_taken(run: str, warmup: dict[str, float], configuration: Path) -> None:
    edit(configuration, DEMO, "elc_demo_small,", f"elc_demo_small, pretraining: {run},")
    configured = Project(configuration)
    configured.check("experiment", "demo")
    schedule = configured.experiment("demo").runs["elc_bert"].pretraining.schedule
    values = keys_of(schedule)
    assert {key: values[key] for key in ("warmup_steps", "warmup_fraction") if key in values} == warmup


def test_a_short_training_needs_no_interval(configuration: Path) -> None:
    edit(configuration, DEMO, "  steps: 700", "  steps: 100")
    edit(configuration, DEMO, "  evaluation_interval_steps: 175\n", "")
    assert Project(configuration).experiment("demo").pretraining.evaluation_interval_steps == 500


def test_every_shipped_file_is_valid(repository: Path) -> None:
    load_everything(repository / "config")


def test_a_reserved_experiment_name_is_refused(configuration: Path) -> None:
    shutil.copy(configuration / DEMO, configuration / "experiments/tokens.yaml")
    with pytest.raises(ConfigError, match="cannot be the name of an experiment"):
        Project(configuration).check("experiment", "tokens")


def test_a_broken_experiment_hurts_only_itself(configuration: Path) -> None:
    edit(configuration, DEMO, "steps: 700", "steps: many")
    project = Project(configuration)
    assert project.experiment("strict").corpus == "babylm_100M"
    with pytest.raises(ConfigError):
        project.check("experiment", "demo")


TRAINING = {"steps": 4, "batch_size": 2, "sequence_length": 16}
CORPUS = {"sources": [{"name": "mine", "data": {"path": "~/letters"}, "reader": "plain_text", "options": {}}]}
TOKENIZER = {"kind": "wordpiece", "vocabulary_size": 300}
LETTERS = {"corpus": CORPUS, "tokenizer": TOKENIZER, "pretraining": TRAINING, "runs": {"a": {"model": "ltg_demo"}}}
OF_DEMO = {**LETTERS, "corpus": "demo", "tokenizer": "demo"}


def test_text_of_ones_own_with_a_new_tokenizer_is_one_file(
    configuration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    jobs = Jobs(written(configuration, {"experiments/letters": LETTERS}))
    assert jobs.project.experiment("letters").corpus == "letters"
    assert jobs.project.tokenizer("letters").corpus == "letters"
    assert jobs.results.tokens("letters") == "results/tokens/letters/letters/manifest.json"
    assert jobs.call("convert_corpus", corpus="letters").arguments["source"] == {
        "mine": "resources/sources/letters.json"
    }
    assert jobs.storage_path(readable_path("letters", "pretraining", "a-s42")).startswith("results/models/letters-")


@pytest.mark.parametrize(
    ("stage", "wildcard"),
    [("register_source", "source"), ("convert_corpus", "corpus"), ("train_tokenizer", "tokenizer")],
)
def test_a_job_of_a_cluster_finds_such_a_block_by_its_name_alone(
    configuration: Path, stage: str, wildcard: str
) -> None:
    assert Jobs(written(configuration, {"experiments/letters": LETTERS})).settings(stage, **{wildcard: "letters"})


def test_an_experiment_with_such_a_base_has_its_blocks_and_not_copies_of_them(configuration: Path) -> None:
    written(configuration, {"experiments/letters": LETTERS})
    project = written(
        configuration, {"experiments/more": {"base": "letters", "tokenizer": {**TOKENIZER, "vocabulary_size": 400}}}
    )
    experiment = project.experiment("more")
    assert (experiment.corpus, experiment.tokenizer) == ("letters", "more")
    assert project.tokenizer("more").corpus == "letters"


def test_a_model_that_stands_in_a_run_is_kept_where_that_of_a_file_is(configuration: Path) -> None:
    sizes = yaml.safe_load((configuration / "models/ltg_demo.yaml").read_text(encoding="utf-8"))
    runs = {"a": {"model": "ltg_demo"}, "b": {"model": sizes}}
    jobs = Jobs(written(configuration, {"experiments/mine": {**OF_DEMO, "runs": runs}}))
    first, second = (jobs.storage_path(readable_path("mine", "pretraining", f"{run}-s42")) for run in "ab")
    assert first == second


SOURCE = CORPUS["sources"][0]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"corpus": {"sources": [SOURCE, {**SOURCE, "name": "other"}]}},
            "corpus: sources: got 2 sources with an inline raw input",
        ),
        (
            {"corpus": {"sources": [{**SOURCE, "options": {"encoding": "utf8ish"}}]}},
            "corpus: sources.0.options.encoding: got 'utf8ish', expected a text encoding",
        ),
        ({"corpus": {"sweep": ["demo", "bnc"]}}, "corpus: a sweep is not possible here; only keys under"),
    ],
)
def test_a_mistake_in_such_a_block_is_told_once_with_its_place(
    changes: dict[str, Any], told: str, configuration: Path
) -> None:
    problems = Problems()
    collect_problems(
        written(configuration, {"experiments/letters": {**LETTERS, **changes}}), [("experiment", "letters")], problems
    )
    assert [line for line in problems.lines if not line.startswith(f"{configuration}/experiments/letters.yaml: ")] == []
    assert len([line for line in problems.lines if f"letters.yaml: {told}" in line]) == 1, problems.lines


def test_a_block_in_an_experiment_and_in_a_file_is_refused(configuration: Path) -> None:
    written(configuration, {"experiments/letters": LETTERS})
    file = "corpora/letters"
    with pytest.raises(ConfigError, match=rf"letters\.yaml: corpus: .*{file}\.yaml also exists, .*rename one"):
        written(configuration, {file: {"sample": {"corpus": "demo", "characters": 9}}}).check("experiment", "letters")


def test_a_raw_input_that_config_yaml_has_as_well_is_refused(configuration: Path) -> None:
    with pytest.raises(ConfigError, match=r"blimp\.yaml: corpus: sources: .* also has a raw input called 'blimp'"):
        written(configuration, {"experiments/blimp": LETTERS}).check("experiment", "blimp")


def test_a_missing_raw_input_of_an_experiment_is_told_with_the_file_that_says_its_path(
    configuration: Path, tmp_path: Path
) -> None:
    source = {**SOURCE, "data": {"path": f"{tmp_path}/none"}}
    (line,) = missing_sources(
        written(configuration, {"experiments/letters": {**LETTERS, "corpus": {"sources": [source]}}}), ["letters"]
    )
    remedy = f"set data.path of the source in {configuration}/experiments/letters.yaml: corpus"
    assert line == f"source 'letters' is not at {tmp_path}/none: {remedy}"


TASK = {
    "data": "my_text",
    "format": "rows",
    "files": {"train": "a.csv", "validation": "b.csv"},
    "fields": ["text"],
    "labels": [0, 1],
    "metrics": ["accuracy"],
    "normalisation": "ltg",
    "train_limit": 9,
}


def test_a_variant_states_what_differs_from_its_file_or_from_the_base_that_it_names(configuration: Path) -> None:
    variants = {
        "judged_small": {"suite": "small", "train_limit": None, "normalisation": None, "files": {"train": "c.csv"}},
        "judged_other": {"base": "judged_small", "embedded": "glue", "metrics": ["f1"]},
    }
    project = written(configuration, {"tasks/judged": {**TASK, "variants": variants}})
    assert {"judged", *variants} <= set(project.names("task"))
    first, small, other = (project.task(name) for name in ("judged", *variants))
    assert (first.train_limit, small.train_limit) == (9, None)
    assert (first.normalisation, small.normalisation) == ("ltg", "none")
    assert small.files == {"train": "c.csv", "validation": "b.csv"}
    assert (other.suite, other.metrics, other.embedded, other.data) == ("small", ("f1",), "glue", ABSENT)
    assert not (small.variants or other.variants)


@pytest.mark.parametrize(
    ("changes", "asked", "told"),
    [
        (
            {"variants": {"other": {"base": "other"}}},
            "other",
            "variants.other: base: got 'other', whose own base leads back to 'other'",
        ),
        ({"variants": {"rte": {}}}, "rte", "variants.rte: {configuration}/tasks/rte.yaml has a task of the same name"),
    ],
)
def test_a_mistake_in_a_variant_is_told_with_its_place(
    changes: dict[str, Any], asked: str, told: str, configuration: Path
) -> None:
    project = written(configuration, {"tasks/judged": {**TASK, **changes}})
    with pytest.raises(ConfigError) as caught:
        project.check("task", asked)
    place = f"{configuration}/tasks/judged.yaml: {told.replace('{configuration}', str(configuration))}"
    assert [line.startswith(place) for line in str(caught.value).splitlines()] == [True], str(caught.value)


def patterns(files: Any) -> Iterator[str]:
    """Yield all file patterns at any depth."""
    if isinstance(files, str):
        yield files
    else:
        for item in files.values() if isinstance(files, dict) else files:
            yield from patterns(item)


def folders_read(project: Project) -> Iterator[tuple[str, str, str]]:
    """Yield raw input, folder inside the input and file of the configuration, for the suites and tasks of all
    experiments."""
    for experiment in project.names("experiment"):
        block = project.experiment(experiment)
        named = [("suite", name) for name in block.minimal_pairs]
        named += [("task", name) for name in block.finetuning.tasks]
        for kind, name in named:
            reader = project.block(kind, name)
            for pattern in patterns(reader.files) if reader.data is not ABSENT else ():
                for folder in PurePosixPath(pattern).parts[:-1]:
                    # The name of the folder before its first wildcard.
                    yield reader.data, re.split(r"[*?\[]", folder.lstrip("*"))[0], f"{kind} {name}"


def test_every_folder_that_suites_and_tasks_read_is_named_where_the_data_is_asked_for(repository: Path) -> None:
    project = Project(repository / "config")
    read = set(folders_read(project))
    assert {"glue_filtered", "blimp_filtered"} <= {folder for _, folder, _ in read}

    hints = {name: data.obtain for name, data in project.config.data.items()}
    missing = sorted(entry for entry in read if not re.search(rf"\b{re.escape(entry[1])}\b", hints[entry[0]]))

    assert not missing, "data.<name>.obtain in config.yaml does not name " + ", ".join(map(str, missing))


@pytest.fixture
def device(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that plans the demo with these settings, with or without a GPU, and returns the estimate's
    device."""

    def of(has_gpu: bool, device: str = "auto", **cluster: Any) -> str:
        monkeypatch.setattr(module, "_has_gpu", lambda: has_gpu)
        project = Project(repository / "config", {"cluster": cluster, "compute": {"device": device}})
        settings = Jobs(project).settings("write_cost", experiment="demo")
        return next(name for name in ("h100", "a100", "cpu") if f'"device":"{name}"' in settings)

    return of


def test_a_machine_without_a_gpu_is_estimated_for_its_processor(device: Any) -> None:
    assert device(has_gpu=False) == "cpu"
    assert device(has_gpu=True) == "h100"


def test_the_configuration_decides_before_the_machine(device: Any) -> None:
    assert device(has_gpu=True, device="cpu") == "cpu"
    assert device(has_gpu=False, device="cuda") == "h100"
    # A login node has no GPU, but the nodes of the cluster have GPUs.
    assert device(has_gpu=False, gpus_per_node=8) == "h100"
    assert device(has_gpu=False, planned_device="a100") == "a100"
    assert device(has_gpu=True, planned_device="cpu") == "cpu"


@pytest.mark.parametrize(
    ("keys", "device"),
    [
        ({"gpus_per_node": 4, "gpu_type": "nvidia_a100_80gb"}, "a100"),
        ({"gpus_per_node": 4, "gpu_type": "V100"}, "v100"),
        ({"gpus_per_node": 8, "gpu_type": "mi250"}, "mi250x"),
        ({"gpus_per_node": 4, "gpu_type": "a100", "planned_device": "h200"}, "h200"),
        ({"gpus_per_node": 4, "gpu_type": "rtx6000"}, "h100"),
        ({"gpus_per_node": 4}, "h100"),
    ],
)
def test_the_type_of_the_gpus_decides_what_costs_are_estimated_for(keys: dict[str, Any], device: str) -> None:
    assert module.planned_device(module.ClusterSettings(**keys), "auto") == device


def test_a_summary_knows_which_kind_of_model_a_baseline_is(configuration: Path) -> None:
    baselines = {"baselines": ["babylm_opt_125m", "bert_base_cased"], "perplexity.splits": ["dev"]}
    project = changed(configuration, *baselines.items())
    objectives = summary_settings(project, "demo")["objectives"]
    assert objectives == {"babylm_opt_125m": "other causal", "bert_base_cased": "other masked"}

"""`hatchery.job` returns the inputs of a workflow's job, and runs the job into any folder."""

import json
from pathlib import Path

import pytest

import hatchery
from hatchery.errors import ConfigError
from hatchery.training.settings import PretrainSettings


@pytest.fixture(autouse=True)
def _in_the_checkout(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)


def test_settings_are_objects_and_inputs_and_outputs_are_paths() -> None:
    figure = hatchery.job("draw_figure", experiment="demo", figure="phenomena")
    assert (figure.settings["experiment"], figure.settings["figure"]) == ("demo", "phenomena")
    assert figure.inputs == {"tables": {"measurements": "results/demo/measurements.parquet"}}
    assert figure.outputs["figure"] == "phenomena.svg"
    training = hatchery.job("pretrain", experiment="demo", run="ltg_bert-s42")
    assert isinstance(training.settings, PretrainSettings) and training.settings.seed == 42
    assert training.inputs["tokenizer"] == "results/tokenizers/demo/manifest.json"
    assert json.loads(training.call.settings)["stage"] == "pretrain"


def test_a_job_that_measures_a_model_reads_the_model_of_the_experiment() -> None:
    trained = hatchery.job("pretrain", experiment="demo", run="ltg_bert-s42")
    scored = hatchery.job("measure_perplexity", experiment="demo", run="ltg_bert-s42")
    assert scored.inputs["model"] == f"results/models/demo-{trained.call.digest}/manifest.json"


def test_an_experiment_of_another_folder_may_have_a_shipped_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config/experiments").mkdir(parents=True)
    (tmp_path / "config/config.yaml").write_text("experiments: [mine]\n", encoding="utf-8")
    (tmp_path / "config/experiments/mine.yaml").write_text("base: demo\npretraining: {steps: 350}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    settings = hatchery.job("pretrain", experiment="mine", run="ltg_bert-s42").settings
    assert isinstance(settings, PretrainSettings) and (settings.steps, settings.batch_size) == (350, 32)


def test_a_job_writes_into_the_folder_that_it_is_given(tmp_path: Path) -> None:
    cost = hatchery.job("write_cost", experiment="demo")
    made = cost.run(into=tmp_path / "mine")
    assert made.parent == tmp_path / "mine" and made.stat().st_size > 0
    assert {path.name for path in made.parent.iterdir()} >= set(cost.outputs.values())


@pytest.mark.parametrize(
    ("stage", "names", "message"),
    [
        ("draw_figur", {"experiment": "demo"}, "got the stage 'draw_figur'.*did you mean 'draw_figure'"),
        ("draw_figure", {"experiment": "demo"}, "job draw_figure: missing arguments: figure"),
        (
            "draw_figure",
            {"experiment": "demo", "figur": "phenomena"},
            "unknown argument 'figur'; did you mean 'figure'",
        ),
    ],
)
def test_a_wrong_name_is_one_line_with_the_nearest(stage: str, names: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        hatchery.job(stage, **names)

"""Settings of the command line: numbers are parsed as numbers, and mistakes are reported with their location."""

from pathlib import Path

import pytest
from snakemake.settings.types import ConfigSettings

from hatchery.errors import ConfigError
from hatchery.experiment.given_settings import given_settings
from hatchery.experiment.project import Project
from hatchery.workflow.open_workflow import open_workflow


def test_the_command_line_has_numbers_and_counts_after_files(configuration: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("compute: {corpus_threads: 3, pretraining_threads: 4}\ncluster: {planned_mfu: 1e-1}\n")
    given = given_settings([file], ["compute={corpus_threads: 2}", "leave_out_baselines=[bert_base_cased]"])
    config = Project(configuration, given=given).config
    assert (config.compute.corpus_threads, config.compute.pretraining_threads) == (2, 4)
    assert (config.cluster.planned_mfu, config.leave_out_baselines) == (0.1, ("bert_base_cased",))
    # The form in which Snakemake passes settings.
    call = ConfigSettings(config={"compute": {"corpus_threads": "2"}}, config_args=["compute={corpus_threads: 2}"])
    assert open_workflow(configuration, call).project.config.compute.corpus_threads == 2


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("compute={corpus_threads: many}", "the command line (--config): compute.corpus_threads: got 'many', expected"),
        ("compute={corpus_threads: 2", "the command line (--config): compute:1: "),
    ],
)
def test_mistakes_of_the_command_line_are_told_there(argument: str, told: str, configuration: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _ = Project(configuration, given=given_settings([], [argument])).config
    assert str(caught.value).startswith(told)


def test_a_mistake_is_told_in_the_last_place_that_has_the_key(configuration: Path, tmp_path: Path) -> None:
    file, main = tmp_path / "own.yaml", configuration / "config.yaml"
    file.write_text("compute: {corpus_threads: many}\n")
    main.write_text(main.read_text().replace("  checkpoint_interval_steps: ", "  checkpoint_interval_steps: x"))
    with pytest.raises(ConfigError) as caught:
        _ = Project(configuration, given=given_settings([file], ["compute={device: cpu}"])).config
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"{main}: compute.checkpoint_interval_steps: got 'x")
    assert lines[1].startswith(f"{file} (--configfile): compute.corpus_threads: got 'many'")


def test_a_project_without_a_configuration_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"^config/config.yaml: expected this file in {tmp_path}, but there is none$"):
        _ = Project().config

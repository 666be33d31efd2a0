"""The estimate of an experiment's cost gives the published costs of published runs."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
import yaml
from cost_cases import body_of, cost_of, settings_of

from hatchery.errors import ConfigError
from hatchery.experiment.cluster import LTG_BERT_RUN
from hatchery.experiment.project import Project
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.training.run_parts import build_model
from hatchery.training.settings import pretrain_settings
from hatchery.workflow.cost_estimate import (
    cost_settings,
    estimate,
    evaluations,
    shards_on_disk,
)
from hatchery.workflow.cost_table import cost_markdown
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.pretraining_time import PretrainingTimes

EXPERIMENTS = Path(__file__).resolve().parents[2] / "config" / "experiments"
STUDY_STEPS, STUDY_BATCH = 35_475, 256


def model_file(repository: Path, name: str, **changes: Any) -> dict[str, Any]:
    values = yaml.safe_load((repository / "config/models" / f"{name}.yaml").read_text())
    return {key: value for key, value in {**values, **changes}.items() if key != "description"}


@pytest.fixture(scope="module")
def ltg_bert_slice(repository, pretrain_slice) -> dict[str, Any]:
    """The published run of LTG-BERT base on the BNC."""
    model = model_file(repository, "ltg_base_bnc")
    changes = {"steps": 31_250, "batch_size": 32_768, "sequence_length": 128, "precision": "fp16"}
    return pretrain_slice(long=(0.9, 4), model=model, **changes)


# Comparison with the papers.


def test_the_full_run_of_ltg_bert_costs_what_its_reference_says(ltg_bert_slice):
    cost = cost_of(ltg_bert_slice)
    assert cost.parameters == 98_229_760
    assert cost.sequences == 28_125 * 32_768 + 3_125 * 8_192
    assert cost.tokens == 31_250 * 4_194_304 == pytest.approx(131.07e9, rel=1e-4)
    assert (cost.paper_formula, f"{cost.paper_flops:.1e}") == ("6 N D", "7.7e+19")


def test_our_count_of_that_run_is_near_6_n_d(ltg_bert_slice):
    # The count is lower, because only masked positions reach the output layer and embedding look-ups are free, and
    # higher because of attention.
    cost = cost_of(ltg_bert_slice)
    assert 0.85 < cost.training_flops / cost.paper_flops < 1


def test_the_published_wall_time_means_a_tenth_of_the_peak_and_that_tenth_gives_it_back(ltg_bert_slice):
    # The run used 128 dies of 191.5 TFLOP/s for 8 h 13 min.
    assert LTG_BERT_RUN.mfu == pytest.approx(7.7255e19 / (128 * 191.5e12 * 29_580), rel=1e-3)
    assert 0.10 < LTG_BERT_RUN.mfu < 0.11
    cost = cost_of(ltg_bert_slice, device="mi250x", devices=128, mfu=LTG_BERT_RUN.mfu)
    work = cost.training_flops + cost.development_flops
    assert cost.wall_seconds * cost.paper_flops / work == pytest.approx(29_580)
    assert cost.device_hours == pytest.approx(128 * cost.wall_seconds / 3600)


@pytest.mark.parametrize(
    ("sizes", "printed"),
    [
        # Sizes: embedding, hidden, intermediate, heads and layers. Printed: 10^15 FLOPs in Tables 3 and 7 of the
        # reduced-vocabulary study, compared to the last digit.
        ((256, 256, 1024, 8, 8), 110),
        ((32, 256, 1024, 8, 8), 80),
        ((256, 32, 1024, 8, 8), 42),
        ((256, 256, 512, 8, 8), 96),
        ((256, 256, 1024, 8, 4), 89),
        ((512, 512, 2048, 8, 8), 302),
        ((512, 1024, 2048, 8, 8), 624),
    ],
)
def test_a_run_of_the_reduced_vocabulary_study_costs_what_its_tables_print(sizes, printed, repository, pretrain_slice):
    names = ("embedding_size", "hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers")
    model = model_file(repository, "rv_256_256_1024_8", **dict(zip(names, sizes, strict=True)))
    slice_ = pretrain_slice(model=model, steps=STUDY_STEPS, batch_size=STUDY_BATCH, sequence_length=128)
    cost = cost_of(slice_, vocabulary_size=19_000)
    assert cost.sequences == 9_081_600
    assert cost.paper_formula == "study"
    assert cost.paper_flops / 1e15 == pytest.approx(printed, abs=0.5)
    # The study computes the output layer at every position, our count only at masked positions.
    assert cost.training_flops < cost.paper_flops


# The parts of an estimate.


def test_parameters_are_those_of_the_model_that_the_run_trains(pretrain_slice):
    for changes in (
        {},
        {"output_bias__kind": "none"},
        {"objective__sentence_pairs": "order"},
        {"model__position_embedding": "absolute", "model__normalisation": "post_norm"},
    ):
        slice_ = pretrain_slice(**changes)
        trained = build_model(pretrain_settings(slice_), 300, SPECIAL_SETS["bnc"])
        assert cost_of(slice_, 300).parameters == sum(parameter.numel() for parameter in trained.parameters())


def test_both_phases_count_with_their_lengths(pretrain_slice):
    short = cost_of(pretrain_slice(steps=8, batch_size=8, sequence_length=16))
    long = cost_of(pretrain_slice(steps=8, batch_size=2, sequence_length=64))
    mixed = cost_of(pretrain_slice(long=(0.5, 4), steps=16, batch_size=8, sequence_length=16))
    assert mixed.tokens == short.tokens + long.tokens
    assert mixed.training_flops == pytest.approx(short.training_flops + long.training_flops)
    assert long.training_flops > short.training_flops


def test_the_development_set_is_scored_at_every_interval_and_at_the_end(pretrain_slice):
    def development(steps: int) -> float:
        return cost_of(pretrain_slice(steps=steps, evaluation_interval_steps=10)).development_flops

    assert development(21) == pytest.approx(3 * development(10))
    assert development(20) == pytest.approx(2 * development(1))
    # Evaluation costs a third of training on the same number of short sequences.
    trained = cost_of(pretrain_slice(steps=1, batch_size=8, evaluation_sequences=8))
    assert trained.development_flops == pytest.approx(trained.training_flops / 3)


def test_a_run_that_goes_on_costs_its_own_steps(pretrain_slice):
    """Another run has done 25 of 40 steps. 15 steps remain, and the evaluations after steps 30 and 40."""
    settings = settings_of([pretrain_slice(long=None, steps=40, evaluation_interval_steps=10)], devices=2)
    (whole,) = estimate(settings)
    (rest,) = estimate(dataclasses.replace(settings, runs=[dataclasses.replace(settings.runs[0], first_step=25)]))
    assert (whole.steps, rest.steps) == (40, 15)
    for name in ("sequences", "tokens", "training_flops", "paper_flops"):
        assert getattr(rest, name) == pytest.approx(getattr(whole, name) * 15 / 40), name
    assert rest.development_flops == pytest.approx(whole.development_flops * 2 / 4)
    work = rest.training_flops + rest.development_flops
    assert rest.wall_seconds == pytest.approx(work / (rest.peak_flops_per_second * 0.3))
    assert rest.device_hours == pytest.approx(2 * rest.wall_seconds / 3600)


def test_an_average_of_weights_is_kept_beside_them_and_every_mark_is_exported(pretrain_slice):
    plain = pretrain_slice(weight_average={"decay": 0.9})
    marked = {key: value for key, value in plain.items() if key != "steps"}
    marked |= {"budget": {"words_seen": "1K"}, "checkpoints_at": [100, 200, 300]}
    cost, with_marks = (cost_of(slice_, keep_checkpoints=1) for slice_ in (plain, marked))
    # Four bytes each for weights, average and two moments.
    assert cost.checkpoint_bytes == 16 * cost.parameters
    assert cost.run_folder_bytes == 2 * cost.checkpoint_bytes
    assert with_marks.run_folder_bytes == 2 * cost.checkpoint_bytes + 3 * 8 * cost.parameters
    assert (cost.export_bytes, with_marks.export_bytes) == (4 * cost.parameters, 4 * 4 * cost.parameters)


def test_a_model_that_is_not_trained_costs_its_disk_only(pretrain_slice):
    cost = cost_of(pretrain_slice(steps=0))
    assert (cost.tokens, cost.training_flops, cost.development_flops, cost.wall_seconds) == (0, 0, 0, 0)
    assert cost.run_folder_bytes == cost.checkpoint_bytes == 0
    assert cost.model_bytes == 4 * cost.parameters


def test_the_run_folder_holds_the_kept_ones_the_milestones_and_the_one_being_written(pretrain_slice):
    cost = cost_of(pretrain_slice(), keep_checkpoints=3, milestones=[0.25, 0.5])
    assert cost.checkpoint_bytes == 12 * cost.parameters
    # The milestones keep no moments.
    assert cost.run_folder_bytes == 4 * cost.checkpoint_bytes + 2 * cost.model_bytes
    plain = pretrain_slice()
    marked = {key: value for key, value in plain.items() if key != "steps"}
    marked |= {"budget": {"words_seen": "1K"}, "checkpoints_at": [100, 200, 300]}
    for slice_, milestones, kept in (
        (plain, [], "2 checkpoints"),
        (plain, [0.5], "2 checkpoints, 1 milestone without the moments of the optimiser"),
        (marked, [0.25, 0.5], "2 checkpoints, 2 milestones and 3 word milestones without the moments of the optimiser"),
    ):
        page = cost_markdown(settings_of([slice_], milestones=milestones), [cost])
        assert f"the run folder contains {kept}, and the checkpoint that is being written" in page


def test_twice_the_devices_halve_the_time_and_keep_the_device_hours(pretrain_slice):
    one, two = (cost_of(pretrain_slice(), devices=devices) for devices in (1, 2))
    assert two.wall_seconds == pytest.approx(one.wall_seconds / 2)
    assert two.device_hours == pytest.approx(one.device_hours)


def test_precision_auto_is_what_the_planned_device_computes_in(pretrain_slice):
    planned = ("h100", "v100", "cpu")
    h100, v100, cpu = (cost_of(pretrain_slice(precision="auto"), device=device) for device in planned)
    assert (h100.precision, v100.precision, cpu.precision) == ("bf16", "fp32", "fp32")
    assert h100.peak_flops_per_second > 900e12 > v100.peak_flops_per_second


def test_a_precision_that_the_device_lacks_is_refused(pretrain_slice):
    with pytest.raises(ConfigError, match=r"precision: got 'bf16', which a v100 does not support; plan with"):
        cost_of(pretrain_slice(precision="bf16"), device="v100")


def test_token_shards_count_when_they_are_there(token_data, tmp_path):
    shards = shards_on_disk(token_data.tokens)
    assert shards is not None
    notes = ("manifest.json", "provenance.json")
    files = [path for path in token_data.tokens.parent.iterdir() if path.name not in notes]
    assert shards.bytes == sum(path.stat().st_size for path in files)
    assert shards.training_tokens > 0
    assert shards_on_disk(tmp_path / "manifest.json") is None


@pytest.mark.parametrize(("early", "more"), [(0, 0), (1, 2), (2, 3)])
def test_translation_counts_both_sides_and_early_evaluations_and_says_what_is_left_out(pretrain_slice, early, more):
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    slice_ = pretrain_slice(
        model={"family": "encoder_decoder", **sizes},
        objective={"task": "translation", "early_evaluations": early},
        long=None,
        steps=100,
        batch_size=6400,
        sequence_length=64,
        evaluation_interval_steps=20,
        evaluation_sequences=50,
    )
    cost = cost_of(slice_)
    assert (cost.sequences, cost.tokens) == (100 * 100, 2 * 100 * 6400)
    # A forward pass of a pair costs a third of a training step on the pair.
    assert cost.development_flops == pytest.approx(cost.training_flops / 10_000 / 3 * 50 * (5 + more))
    # After step 5 there is an evaluation at step 10 (with one halving) and at every interval, but none at steps 0 and
    # 5.
    assert evaluations(pretrain_settings(slice_), first_step=5) == 5 + min(early, 1)
    settings = settings_of([slice_])
    assert "Beam search on development pairs and test sets is not included" in cost_markdown(settings, [cost])


# Estimates from the workflow's configuration.


def slice_of(repository: Path, experiment: str, **cluster: Any) -> dict[str, Any]:
    project = Project(repository / "config", {"cluster": cluster} if cluster else {})
    return json.loads(Jobs(project).settings("write_cost", experiment=experiment))


@pytest.mark.parametrize("experiment", sorted(path.stem for path in EXPERIMENTS.glob("*.yaml")))
def test_every_experiment_can_be_estimated_from_its_configuration(experiment, repository):
    settings = cost_settings(slice_of(repository, experiment))
    costs = estimate(settings)
    assert [cost.run for cost in costs] == [run.name for run in Project(repository / "config").seeded_runs(experiment)]
    assert all(cost.parameters > 0 for cost in costs)
    assert max(cost.device_hours for cost in costs) > 0


def test_the_plan_of_the_configuration_reaches_the_estimate(repository):
    settings = cost_settings(slice_of(repository, "demo", planned_device="a100", planned_mfu=0.5, gpus_per_node=2))
    assert (settings.plan.device, settings.plan.mfu, settings.plan.devices) == ("a100", 0.5, 2)


def test_a_cluster_is_asked_for_the_estimated_time_and_half_of_it_and_a_quarter_of_an_hour(repository):
    cluster = {"planned_device": "a100", "planned_mfu": 0.5, "gpus_per_node": 2}
    costs = estimate(cost_settings(slice_of(repository, "demo", **cluster)))
    project = Project(repository / "config", {"cluster": cluster})
    times = PretrainingTimes(project, json.dumps(slice_of(repository, "demo", **cluster)))
    trained = [cost for cost in costs if cost.steps]
    assert trained and all(cost.development_flops > 0 for cost in trained)
    for cost in trained:
        seconds = (cost.training_flops + cost.development_flops) / (cost.peak_flops_per_second * 0.5)
        assert times.seconds(cost.run) == pytest.approx(seconds, rel=1e-12)
        assert times.minutes(cost.run) == pytest.approx(15 + 1.5 * seconds / 60, rel=1e-12)


def test_the_asked_time_is_that_of_the_remaining_steps_of_teachers_and_of_a_budget_in_minutes(
    repository, pretrain_slice
):
    plain = pretrain_slice(steps=40, evaluation_sequences=0)
    # A step is so large that the device's peak limits the number of steps per minute.
    timed = pretrain_slice(batch_size=2**20, budget={"minutes": 30}, evaluation_sequences=0)
    del timed["steps"]
    body = body_of([plain, plain, plain, timed])
    body["runs"][1]["first_step"] = 25
    for run in body["runs"][2:]:
        run["teachers"] = [plain["model"]]

    def times_on(**cluster: Any) -> PretrainingTimes:
        return PretrainingTimes(Project(repository / "config", {"cluster": cluster}), json.dumps(body))

    times = times_on(gpus_per_node=1)
    whole, rest, taught, minutes = (times.seconds(run["name"]) for run in body["runs"])
    # A forward pass of a teacher of the same size costs a third of a training step.
    assert (rest, taught) == (pytest.approx(whole * 15 / 40), pytest.approx(whole * 4 / 3))
    assert minutes == pytest.approx(30 * 60, rel=0.01)
    assert times.minutes("run3-s42") == pytest.approx(15 + 1.5 * 30, rel=0.01)
    # Without GPUs, the processors of the cluster compute.
    one, eight = (times_on(cpus_per_gpu=threads).seconds("run0-s42") for threads in (None, 8))
    assert one == pytest.approx(8 * eight) and eight > whole


def test_planning_the_workflow_needs_no_torch(repository):
    code = (
        "import sys; from hatchery.workflow.open_workflow import open_workflow; "
        "open_workflow('config').jobs.settings('write_cost', experiment='strict'); sys.exit('torch' in sys.modules)"
    )
    environment = {"PYTHONPATH": str(repository / "scripts")}
    assert subprocess.run([sys.executable, "-c", code], cwd=repository, env=environment).returncode == 0


def test_the_command_prints_the_page_and_names_a_mistake_in_one_line(repository):
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        script = [sys.executable, "scripts/estimate_cost.py", *arguments]
        return forked.run(script, cwd=repository, capture_output=True, text=True)

    result = command("demo", "--device", "cpu", "--mfu", "0.5")
    assert result.returncode == 0, result.stderr
    assert "Planned for 1 x CPU with 1 thread at an MFU of 50 %." in result.stdout
    wrong = command("dmeo")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("error: ") and "did you mean 'demo'?" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_the_command_names_keys_of_an_experiment_that_do_not_fit_each_other(configuration, repository):
    path = configuration / "experiments/demo.yaml"
    path.write_text(path.read_text().replace("warmup_fraction: 0.05", "warmup_steps: 701"))
    script = [sys.executable, "scripts/estimate_cost.py", "demo", "--config", str(configuration)]
    wrong = forked.run(script, cwd=repository, capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert f"{path}: pretraining.schedule.warmup_steps: got 701, expected at most 700" in wrong.stderr

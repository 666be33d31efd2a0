"""Stages of pretraining: the model, and what an experiment will cost."""

from typing import TYPE_CHECKING

from hatchery.experiment import continuation
from hatchery.experiment.cluster import planned_device
from hatchery.experiment.project import Project
from hatchery.job_spec import Argument
from hatchery.settings.fields import ABSENT
from hatchery.stages.record import Shared, Stage
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.workflow.jobs import Jobs


def pretraining_settings(project: Project, experiment: str, run: str) -> dict[str, object]:
    """The model, its objective and its training."""
    chosen = project.seeded_run(experiment, run)
    model = keys_of(project.model_of(experiment, chosen.model), "description")
    pretraining = project.experiment(experiment).runs[chosen.model].pretraining
    return {**continuation.settings_of(pretraining), "model": model, "seed": chosen.seed}


def pretraining_inputs(jobs: "Jobs", experiment: str, run: str) -> dict[str, Argument]:
    """Manifests of tokens and tokenizer and, where a run names such, of the initial model and of larger counts."""
    found: dict[str, Argument] = {
        "tokens": jobs.results.tokens(experiment),
        "tokenizer": jobs.results.tokenizer(experiment),
    }
    for initial in jobs.results.initial_model(experiment, run):
        found["initial_model"] = jobs.place(initial)
    for larger in jobs.results.larger_tokens(experiment, run):
        found["counts"] = larger
    return found


def cost_settings(project: Project, experiment: str) -> dict[str, object]:
    """All work of an experiment and the device that it is planned for."""
    block, config = project.experiment(experiment), project.config
    names = [run.name for run in project.seeded_runs(experiment)]
    suites = []
    for name in block.minimal_pairs:
        suite = project.suite(name)
        limit = None if suite.embedded is ABSENT else config.embedded.pairs_per_paradigm
        suites.append({"name": name, "pairs_per_paradigm": suite.pairs_per_paradigm or limit})
    tasks = []
    for name in block.finetuning.tasks:
        task, protocol = project.task(name), project.protocol_of(experiment, name)
        limit = None if task.embedded is ABSENT else config.embedded.training_rows(str(task.files.get("train")))
        runs = len(protocol.seeds) * len(protocol.learning_rates)
        chosen = {key: getattr(protocol, key) for key in ("epochs", "max_length", "development_fraction")}
        tasks.append({"name": name, "examples": task.train_limit or limit, "seeds": runs, **chosen})
    return {
        "experiment": experiment,
        "vocabulary_size": project.tokenizer(block.tokenizer).vocabulary_size,
        "plan": {
            "device": planned_device(config.cluster, config.compute.device),
            # Without GPUs in the configuration the plan is for one device.
            "devices": config.cluster.processes,
            "threads": config.compute.pretraining_threads,
            "mfu": config.cluster.planned_mfu,
            "keep_checkpoints": config.compute.keep_checkpoints,
            "milestones": config.compute.milestones,
        },
        "runs": [_cost_of_run(project, experiment, name) for name in names],
        "suites": suites,
        "tasks": tasks,
    }


def _cost_of_run(project: Project, experiment: str, run: str) -> dict[str, object]:
    chosen = project.seeded_run(experiment, run)
    done = continuation.first_step(project, experiment, chosen.model, chosen.seed)
    entry = {"name": run, "pretraining": pretraining_settings(project, experiment, run)}
    # Only where there are such, so that other estimates stay as they are.
    more = {"first_step": done, "set": project.expansion(experiment).sets().get(chosen.model, "")}
    more["label"] = chosen.words if chosen.label else ""
    return entry | {key: value for key, value in more.items() if value}


STAGES = (
    Stage(
        name="write_cost",
        version=5,
        settings=cost_settings,
        environment="pretraining",
        sort="local",
        memory_mb=2000,
        minutes=10,
    ),
    Stage(
        name="pretrain",
        version=1,
        settings=pretraining_settings,
        inputs=pretraining_inputs,
        shared=Shared("pretraining"),
        environment="pretraining",
        sort="pretraining",
        threads="pretraining",
        # Memory, and time where it is known beforehand, are in the `cluster` block.
        memory_mb=0,
        minutes=1440,
        expected_minutes=lambda work, run: work.pretraining_minutes(run),
        runtime=(
            "device",
            "micro_batch_size",
            "checkpoint_interval_steps",
            "keep_checkpoints",
            "log_interval_steps",
            "milestones",
            "background_checkpoints",
            "workers",
            "compile",
            "activation_checkpointing",
            "zero_stage",
            "time_limit_minutes",
            "grace_seconds",
            "sinks",
        ),
    ),
)

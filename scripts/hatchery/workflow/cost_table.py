"""The estimated cost of an experiment in three formats: CSV for programs, aligned Markdown, and an HTML page.

The CSV contains numbers in base units (seconds, bytes, FLOPs). Markdown and HTML show the numbers in readable units,
with the assumptions of the estimate. CSV and HTML depend only on the estimate; Markdown may also show the size of token
shards that exist on the disk.
"""

import dataclasses
from collections.abc import Sequence

from hatchery.experiment.cluster import CPU_THREAD_PEAK, LTG_BERT_RUN, PlanSettings
from hatchery.rendering.table import Table, table
from hatchery.rendering.templates import Section, card_html
from hatchery.sanitize import csv_text
from hatchery.training.settings import pretrain_settings
from hatchery.units import NONE, hours, percent, power, rough_duration, scaled, size
from hatchery.workflow.cost_estimate import (
    ZERO_STAGES,
    CostSettings,
    PlannedRun,
    RunCost,
    ShardsOnDisk,
    training_bytes,
)

MOST_NAMES = 8
"""Maximum number of models that a note lists by name."""


def cost_csv(settings: CostSettings, costs: Sequence[RunCost]) -> str:
    """Return a CSV table with one row per run, in the order of the experiment; FLOPs and seconds are integers."""
    plan = settings.plan
    # As in tables of finished experiments, the column with the run's name has the heading `cell`.
    names = ["cell", *(field.name for field in dataclasses.fields(RunCost) if field.name != "run")]
    rows = []
    for cost in costs:
        values = dataclasses.asdict(cost)
        values["device_hours"] = f"{cost.device_hours:.4f}"
        values = {name: f"{value:.0f}" if isinstance(value, float) else value for name, value in values.items()}
        rows.append([settings.experiment, *values.values(), plan.device, plan.devices, plan.mfu])
    return csv_text(["experiment", *names, "device", "devices", "mfu"], rows)


def cost_markdown(settings: CostSettings, costs: Sequence[RunCost], shards: ShardsOnDisk | None = None) -> str:
    """Return the cost as Markdown: tables of pretraining, disk and memory, and notes on the assumptions.

    If `shards` is given, the size of these token shards is added.
    """
    costs = _labelled(settings, costs)
    blocks = [f"# {_title(settings)}", f"Planned for {_plan(settings.plan)}."]
    for title, shown in _tables(settings, costs, shards).items():
        blocks += [f"## {title}", shown.markdown(aligned=True)]
    blocks += ["## Notes", "\n".join(f"- {note}" for note in _notes(settings, costs, shards))]
    return "\n\n".join(blocks) + "\n"


def cost_html(settings: CostSettings, costs: Sequence[RunCost]) -> str:
    """Return the cost as an HTML page. The content is that of `cost_markdown` without the size of token shards."""
    costs = _labelled(settings, costs)
    sections = [Section(title, tables=[shown]) for title, shown in _tables(settings, costs, None).items()]
    notes = Section("Notes", _notes(settings, costs, None))
    return card_html(_title(settings), f"Planned for {_plan(settings.plan)}.", [*sections, notes])


def _labelled(settings: CostSettings, costs: Sequence[RunCost]) -> list[RunCost]:
    """Return the costs with the displayed names of the runs. If a run has a label, the label replaces its name."""
    labels = {run.name: run.label for run in settings.runs}
    return [dataclasses.replace(cost, run=labels[cost.run] or cost.run) for cost in costs]


def _title(settings: CostSettings) -> str:
    return f"Cost of {settings.experiment}, estimated from its settings"


def _tables(settings: CostSettings, costs: Sequence[RunCost], shards: ShardsOnDisk | None) -> dict[str, Table]:
    tables = {
        "Pretraining": _pretraining(costs),
        **({"By grid set": _sets(settings, costs)} if any(run.set for run in settings.runs) else {}),
        "Disk": _disk(costs, shards),
    }
    if settings.plan.devices > 1:
        tables["Memory of each device, without activations"] = _memory(settings, costs)
    return {title: dataclasses.replace(shown, label=title, names=True) for title, shown in tables.items()}


def _plan(plan: PlanSettings) -> str:
    unit = f"CPU with {_count(plan.threads, 'thread')}" if plan.device == "cpu" else plan.device
    return f"{plan.devices} x {unit} at an MFU of {percent(plan.mfu)}"


def _pretraining(costs: Sequence[RunCost]) -> Table:
    header = ["model", "parameters", "steps", "tokens", "FLOPs", "development FLOPs", "paper's count", "formula"]
    header += ["precision", "time", "device hours"]
    body = [
        [
            cost.run,
            f"{cost.parameters:,}",
            f"{cost.steps:,}",
            scaled(cost.tokens),
            power(cost.training_flops),
            power(cost.development_flops),
            power(cost.paper_flops),
            cost.paper_formula,
            cost.precision,
            rough_duration(cost.wall_seconds),
            hours(cost.device_hours),
        ]
        for cost in costs
    ]
    total = ["all, one after another", NONE, f"{sum(cost.steps for cost in costs):,}"]
    total += [scaled(sum(cost.tokens for cost in costs)), power(sum(cost.training_flops for cost in costs))]
    total += [power(sum(cost.development_flops for cost in costs)), NONE, NONE, NONE]
    total += [rough_duration(sum(cost.wall_seconds for cost in costs)), hours(sum(cost.device_hours for cost in costs))]
    return table(header, [*body, total])


def _sets(settings: CostSettings, costs: Sequence[RunCost]) -> Table:
    """Return a table with the FLOPs and device hours of each grid set (group of models), and of all models together."""
    sets: dict[str, list[RunCost]] = {}
    for run, cost in zip(settings.runs, costs, strict=True):
        sets.setdefault(run.set or NONE, []).append(cost)
    rows = [[name, *_of_set(found)] for name, found in sets.items()]
    return table(["grid set", "models", "trained", "FLOPs", "device hours"], [*rows, ["all", *_of_set(costs)]])


def _of_set(costs: Sequence[RunCost]) -> list[str]:
    return [
        str(len(costs)),
        str(sum(cost.steps > 0 for cost in costs)),
        power(sum(cost.training_flops + cost.development_flops for cost in costs)),
        hours(sum(cost.device_hours for cost in costs)),
    ]


def _disk(costs: Sequence[RunCost], shards: ShardsOnDisk | None) -> Table:
    header = ["model", "one checkpoint", "run folder, at most", "pretrained model", "export"]
    keys = ("checkpoint_bytes", "run_folder_bytes", "model_bytes", "export_bytes")
    body = [[cost.run, *(size(getattr(cost, key)) for key in keys)] for cost in costs]
    sums = [size(sum(getattr(cost, key) for cost in costs)) for key in keys[1:]]
    body.append(["all at once", NONE, *sums])
    if shards is not None:
        body.append(["token shards, on disk", NONE, NONE, NONE, size(shards.bytes)])
    return table(header, body)


def _memory(settings: CostSettings, costs: Sequence[RunCost]) -> Table:
    """Return a table of the memory that each training needs at each ZeRO stage of DeepSpeed; only the optimiser AdamW
    supports stages above 0.
    """
    rows = []
    for run, cost in zip(settings.runs, costs, strict=True):
        can_share = run.pretraining["optimizer"]["name"] == "adamw"
        needs = [training_bytes(cost.parameters, settings.plan.devices, stage) for stage in ZERO_STAGES]
        rows.append([cost.run, *(size(need) if can_share or not stage else NONE for stage, need in enumerate(needs))])
    return table(["model", *(f"ZeRO {stage}" for stage in ZERO_STAGES)], rows)


def _notes(settings: CostSettings, costs: Sequence[RunCost], shards: ShardsOnDisk | None) -> list[str]:
    plan, published = settings.plan, LTG_BERT_RUN
    notes = [
        f"The vocabulary has {settings.vocabulary_size:,} entries, the size that the tokenizer's settings request. "
        "Tokens are positions, including padding. FLOPs count the model's matrix products, forward and backward, at "
        "all sequence lengths; the output layer is only computed at positions with a label. Development FLOPs count "
        "the forward passes of evaluations on development text.",
        "Paper's count: `6 N D` is six times the number of parameters times the number of tokens, without attention "
        "scores (LTG-BERT); `study` is the formula of the reduced-vocabulary study, with the output layer at all "
        "positions.",
        f"Time is FLOPs / (devices x peak x MFU); the peak is {_peak(costs, plan)}. The column `mfu` of a run's log "
        "contains the measured MFU; set `cluster.planned_mfu` to this value.",
        "For comparison: LTG-BERT base ("
        f"{published.parameters:,} parameters, {scaled(published.tokens)} tokens, {power(published.flops)} FLOPs by 6 "
        f"N D) took {rough_duration(published.seconds)} on {published.devices} dies of MI250X, at an MFU of "
        f"{percent(published.mfu)}.",
        "A checkpoint contains parameters, their average if there is one, and two moments of the optimiser in fp32. "
        f"During the run, the run folder contains {_kept(settings)}, and the checkpoint that is being written.",
    ]
    if any(run.set for run in settings.runs):
        notes.append("A grid set is a named group of models: an entry of `sets` in the experiment's grid.")
    if translating := [run for run in settings.runs if run.pretraining["objective"].get("task") == "translation"]:
        notes.append(
            f"{_names(translating)} learn to translate: batch_size is the number of target tokens, and source "
            "sentences are assumed to be as long as target sentences. Tokens are source and target tokens, FLOPs are "
            "those of encoder and decoder, and 6 N D counts only the tokens of one language. Beam search on "
            "development pairs and test sets is not included."
        )
    if continued := [run for run in settings.runs if run.pretraining.get("initialise_from")]:
        notes.append(f"{_names(continued)} start from a trained model, whose steps, tokens and FLOPs are not included.")
    if taught := [run for run in settings.runs if run.teachers]:
        notes.append(f"{_names(taught)} learn from teachers; FLOPs and time include the teachers' forward passes.")
    if stopping := [run for run in settings.runs if run.pretraining.get("early_stopping")]:
        notes.append(f"{_names(stopping)} may stop early; the table states the cost of all steps, an upper bound.")
    notes.append(
        "Evaluations are not included, because their cost depends on the number of sentence pairs and task rows in the "
        "data."
    )
    if shards is not None and shards.training_tokens:
        passes = max((cost.tokens for cost in costs), default=0) / shards.training_tokens
        notes.append(
            f"The token shards contain {scaled(shards.training_tokens)} training subwords, so the longest run "
            f"makes at most {passes:,.1f} passes over the text."
        )
    return notes


def _kept(settings: CostSettings) -> str:
    """Return a text with the number of checkpoints and the number of intermediate models that a run folder contains.

    Intermediate models are saved at fractions of the steps (milestones), and after numbers of words (marks).
    """
    milestones = len(settings.plan.milestones)
    marks = max((len(pretrain_settings(run.pretraining).marks) for run in settings.runs), default=0)
    named = [_count(number, noun) for number, noun in ((milestones, "milestone"), (marks, "word milestone")) if number]
    kept = f"{_count(settings.plan.keep_checkpoints, 'checkpoint')}"
    return f"{kept}, {' and '.join(named)} without the moments of the optimiser" if named else kept


def _names(runs: Sequence[PlannedRun]) -> str:
    # If there are many models, only the first is named, because the names of all models of a study would fill a page.
    names = [run.label or run.name for run in runs]
    return (
        ("; " if any(run.label for run in runs) else ", ").join(names)
        if len(names) <= MOST_NAMES
        else f"{len(names)} models, such as {names[0]},"
    )


def _peak(costs: Sequence[RunCost], plan: PlanSettings) -> str:
    if plan.device == "cpu":
        return f"assumed to be {CPU_THREAD_PEAK / 1e9:.0f} GFLOP/s per thread"
    peaks = {cost.precision: cost.peak_flops_per_second / plan.devices for cost in costs}
    return " and ".join(f"{peak / 1e12:g} TFLOP/s in {precision}" for precision, peak in sorted(peaks.items()))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")

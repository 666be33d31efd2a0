"""What a run card says, section by section: settings, cost, curves, checkpoints, machine and files.

Every section is a table of names and values for people. What changes when the same run is done again (times, hosts,
versions) stands in the sections `Resources used` and `Hardware and software` and nowhere else.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hatchery.analysis.tidy_tables import DIVERGENCES
from hatchery.evaluation.filled_sentences.results import read_examples, text_of_sentences
from hatchery.rendering.cards import Drawing, Section
from hatchery.rendering.setting_texts import flatten
from hatchery.rendering.table import Table, table
from hatchery.units import count, duration, mebibytes, number, percent, power
from hatchery.views.pages.examples import EXAMPLES, examples_table
from hatchery.views.run_cards.continuation import continuation_rows
from hatchery.views.run_cards.curves import caption_of, has_curves, measured_divergences
from hatchery.views.run_cards.facts import RunFacts

NOT_RECORDED = "not recorded"
_GROUPS = {
    "model": "Model",
    "objective": "Objective",
    "output_bias": "Output bias",
    "optimizer": "Optimiser",
    "schedule": "Schedule of the learning rate",
    "long_sequence": "Longer sequences at the end",
    "early_stopping": "Early stopping",
}


def overview_section(run: RunFacts, seed: int) -> Section:
    """What was trained, for how long, and how well."""
    settings, measures = run.manifest.settings, run.manifest.measures
    batch, length = "sequences per step", "tokens per sequence"
    if settings.get("objective", {}).get("task") == "translation":
        batch, length = "target tokens per step, at most", "tokens of a sentence with its end, at most"
    rows = [
        ("seed", str(seed)),
        ("parameters", count(measures["parameters"])),
        ("optimiser steps", count(measures["steps"])),
        ("tokens seen", count(measures["tokens"])),
        (batch, _setting(settings.get("batch_size"))),
        (length, _setting(settings.get("sequence_length"))),
    ]
    rows += continuation_rows(run.manifest)
    names = {
        "loss": "training loss at the last step (nats)",
        "development_loss": "development loss (nats)",
        "development_perplexity": "development perplexity",
    }
    rows += [(words, number(value)) for name, words in names.items() if (value := run.last(name)) is not None]
    if skipped := run.last("skipped_steps"):
        rows.append(("steps skipped for infinite gradients", count(skipped)))
    prose = [] if measures["steps"] else ["The model was initialised and not trained: a baseline."]
    return Section("Model and training", prose, tables=[_table("The run", rows)])


def curve_section(run: RunFacts, drawing: Path) -> Section:
    """The drawing of the run."""
    if not has_curves(run):
        return Section("Curves", ["Nothing was measured: the model was not trained."])
    return Section("Curves", drawings=[Drawing(drawing, caption_of(run))])


def settings_section(run: RunFacts) -> Section:
    """Every resolved setting that decides the weights, in groups."""
    settings = {key: value for key, value in run.manifest.settings.items() if key not in ("stage", "stage_version")}
    tables = []
    for key, title in _GROUPS.items():
        value = settings.pop(key, None)
        if isinstance(value, Mapping) and value:
            rows = ((name, _setting(text)) for name, text in flatten(value).items())
            tables.append(_table(title, rows, names=True))
        else:
            settings[key] = value
    rows = ((name, _setting(text)) for name, text in flatten(settings).items())
    single = _table("Length and evaluation", rows, names=True)
    prose = ["All settings that decide the weights, with defaults filled in; they stand in the manifest of the run."]
    return Section("Settings", prose, tables=[single, *tables])


def examples_section(filled: Path | None) -> Section | None:
    """What the model writes, from the manifest of its examples; None without one or without examples."""
    if filled is None:
        return None
    written = read_examples(filled)
    prose = [written.wording.told.format(text_of_sentences(filled))]
    return Section(EXAMPLES, prose, tables=[examples_table(written)]) if written.examples else None


def plan_section(run: RunFacts) -> Section:
    """The cost as it was estimated from the settings."""
    plan = run.plan
    if plan is None:
        return Section("Estimated cost", ["No estimate was given to this card."])
    rows = [
        ("FLOPs of training", power(plan.training_flops)),
        ("FLOPs of the evaluations while training", power(plan.development_flops)),
        (f"FLOPs as the paper counts ({plan.paper_formula})", power(plan.paper_flops)),
        ("tokens, padding included", count(plan.tokens)),
        ("planned for", f"{plan.devices} x {plan.device} at {percent(plan.mfu)} of the peak"),
        ("time", duration(plan.wall_seconds)),
        ("device hours", number(plan.device_hours) if plan.device_hours else "< 0.0001"),
    ]
    prose = ["Reckoned from the settings alone, before the run; FLOPs are the model's matrix products."]
    return Section("Estimated cost", prose, tables=[_table("Estimate", rows)])


def effort_section(run: RunFacts) -> Section:
    """Time, speed and memory as they were measured."""
    attempt, training = run.attempt, run.attempt.training_seconds
    rows = [
        ("started", _told(attempt.started)),
        ("wall time of the job", _told(attempt.wall_seconds, _seconds)),
        ("time in the training loop", _told(training, _seconds)),
        ("of it waiting for batches", _told(attempt.loader_wait_seconds, _seconds)),
        ("processor time of the first process", _told(attempt.cpu_seconds, _seconds)),
        ("tokens per second", _told(attempt.tokens_per_second, count)),
        ("peak memory of the first process", _told(attempt.peak_memory_mib, mebibytes)),
        ("peak memory of the first device", _told(run.peak_memory_mib, mebibytes)),
        ("FLOPs utilisation of the device (MFU)", _told(run.mean_mfu, percent)),
    ]
    stopped = run.manifest.measures.get("early_stopping", {}).get("stopped_early")
    # The estimate is that of all steps.
    if run.plan is not None and training and not attempt.resumed_from_step and not stopped:
        reached = run.plan.training_flops / training
        rows.append(("FLOPs per second (estimated FLOPs / time in the loop)", power(reached)))
    resumed = attempt.resumed_from_step
    prose = [f"The last attempt went on from step {count(resumed)}: its times leave out what came before."]
    return Section("Resources used", prose if resumed else [], tables=[_table("Measured", rows)])


def checkpoint_section(run: RunFacts) -> Section:
    """Where the run was interrupted, and which of its models were kept."""
    rows = [
        ("last attempt began at step", _told(run.attempt.resumed_from_step, count)),
        ("models kept of steps", ", ".join(map(count, run.attempt.milestones)) or "none but the last"),
    ]
    prose = [
        "Checkpoints lie in a folder named by the digest of settings and inputs while a run goes on, and are removed "
        "when its model is exported; the model of the last step is the result."
    ]
    return Section("Checkpoints", prose, tables=[_table("Checkpoints", rows)])


def divergence_section(run: RunFacts) -> Section | None:
    """First and last value of every divergence; None where the run measured none."""
    rows = []
    for name in measured_divergences(run):
        points = run.series(name)
        (first, start), (last, end) = points[0], points[-1]
        rows.append(
            (DIVERGENCES[name], count(len(points)), f"{start:.4f} ({count(first)})", f"{end:.4f} ({count(last)})")
        )
    if not rows:
        return None
    header = ("divergence", "points", "first (step)", "last (step)")
    shown = table(header, rows, caption="Divergences in nats", foreign=True)
    return Section("Divergences of the output", tables=[shown])


def place_section(run: RunFacts) -> Section:
    """The machine, the software and the code."""
    attempt = run.attempt
    names = ("host", "platform", "processors", "code_revision", "python")
    rows = [(name.replace("_", " "), _told(getattr(attempt, name))) for name in names]
    rows += sorted(attempt.packages.items())
    further = flatten(attempt.further).items()
    rows += [(name.replace("_", " "), text) for name, text in further if name and text not in ("{}", "[]")]
    return Section("Hardware and software", tables=[_table("Machine and software", rows, notes=True)])


def file_section(run: RunFacts) -> Section:
    """Digests of what went in and what came out; the provenance page lists the manifest under its digest."""
    manifest = run.manifest
    rows = [("manifest of this run", manifest.digest)]
    rows += [(f"read: {name}", digest) for name, digest in sorted(manifest.inputs.items())]
    rows += [
        (f"wrote: {output.path.relative_to(manifest.folder).as_posix()} ({count(output.bytes)} bytes)", output.sha256)
        for output in manifest.outputs
    ]
    return Section("Files and provenance", tables=[_table("SHA-256", rows, notes=True)])


def _table(caption: str, rows: Iterable[tuple[str, str]], notes: bool = False, names: bool = False) -> Table:
    words = (0, 1) if notes else (0,)
    return table(("what", "value"), rows, words=words, caption=caption, foreign=True, names=names)


def _setting(value: Any) -> str:
    """A value of the configuration as people say it."""
    return {"null": "none", "None": "none", "true": "yes", "false": "no"}.get(str(value), str(value))


def _seconds(value: float) -> str:
    return duration(value) if value < 60 else f"{duration(value)} ({value:,.1f} s)"


def _told(value: Any, words: Callable[[Any], str] = str) -> str:
    return NOT_RECORDED if value is None else words(value)

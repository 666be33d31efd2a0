"""The training loop, top to bottom: draw, forward, backward, update, evaluate, note, save.

One loop for one process or many, on CPU or GPU, from the start or from a checkpoint. On a GPU the loop does not wait
for the losses: they are read once per interval, and before anything that depends on them, so a run that diverges is
noticed then, and never after a checkpoint of it was written. On the CPU there is nothing to wait for, and every step
is read at once.
"""

import math
from collections.abc import Sequence

from torch import Tensor

from hatchery.errors import TrainingError
from hatchery.training.batches import StepBatch
from hatchery.training.collectives import sum_over_processes
from hatchery.training.development import DevelopmentSet
from hatchery.training.early_stopping import EarlyStopping
from hatchery.training.engine import Engine
from hatchery.training.interruption import Deadline, stop_request
from hatchery.training.loader import BatchLoader
from hatchery.training.measures import LossAverage, Measured, StepMeasures, divisors, loss_of, sums_of
from hatchery.training.objective import Objective
from hatchery.training.output_probes import Probe, is_logged
from hatchery.training.record import RunRecord
from hatchery.training.schedules import learning_rate
from hatchery.training.settings import PretrainSettings
from hatchery.training.speed import KeptMemory


def train(
    settings: PretrainSettings,
    objective: Objective,
    engine: Engine,
    loader: BatchLoader,
    development: DevelopmentSet | None,
    record: RunRecord,
    probes: Sequence[Probe] = (),
    deadline: Deadline | None = None,
    stopping: EarlyStopping | None = None,
) -> None:
    """Train from where `record` stands to the last step, or until `stopping` ends it.

    `probes` measure the output layer at log-spaced steps. Raises TrainingError when the loss or the gradient
    is no longer finite, and TrainingInterrupted, with a checkpoint saved, after SIGTERM, Ctrl-C or near `deadline`.
    """
    if record.position.step >= settings.steps or (stopping is not None and stopping.is_over):
        return
    # Several processes on GPUs learn of a request at the next read only: the grace time has to hold that many steps.
    reads_late = engine.topology.world_size > 1 and engine.device.type == "cuda"
    with (
        stop_request(deadline, record.runtime.log_interval_steps if reads_late else 1, record.is_wanted) as request,
        record,
        loader.from_step(record.position.step) as batches,
    ):
        early = settings.objective.early_evaluations_at(settings.evaluation_interval_steps)
        kept = KeptMemory()
        measures = StepMeasures(settings.loss_average, engine.topology, engine.device, objective.columns)
        if record.position.step == 0:
            scored = development.score(engine) if development and 0 in early else {}
            if first := scored | _probed(probes, engine):
                record.append({"step": 0, "tokens": 0, **first})
        for step, batch in enumerate(batches, record.position.step):
            engine.begin_step(settings.seed, step, _rate_of(settings, step), batch.first_sequence)
            sums = accumulate_gradients(engine, batch, settings.loss_average, objective)
            update = engine.step()
            stops = request.is_made
            measures.add(step, batch, sums, update, stops)
            record.count(batch, engine, objective)

            done = step + 1
            is_last = done == settings.steps
            is_due = done % settings.evaluation_interval_steps == 0 or done in early
            evaluates = development is not None and (is_last or is_due)
            is_probed = bool(probes) and (is_last or is_logged(done, settings.evaluation_interval_steps))
            saves = is_last or record.saves_after(done)
            # Several processes learn of a request to stop when they next read together.
            alone_and_stops = stops and engine.topology.world_size == 1
            if evaluates or is_probed or saves or alone_and_stops or record.reads_after(done):
                read = measures.read()
                rows = _rows(settings, record, read, math.log(engine.model.config.vocab_size))
                scores: dict[str, float] = {}
                with record.paused():
                    if evaluates and development is not None:
                        scores |= development.score(engine)
                        _require_finite(scores["development_loss"], "development loss", step, record)
                        if stopping is not None:
                            # The same scores in every process, so all stop after the same step.
                            if stopping.note(done, scores) and stopping.settings.export == "best":
                                with engine.whole_parameters():
                                    record.keep_best(engine.model)
                            is_last = is_last or stopping.is_over
                    if is_probed:
                        scores |= _probed(probes, engine)
                rows[-1] |= scores
                for row in rows:
                    record.append(row)
                must_stop = any(measured.stop for measured in read) and not is_last
                if saves or must_stop or is_last:
                    record.checkpoint(engine)
                if must_stop:
                    interruption = request.interruption(done, settings.steps, record.folder)
                    record.wait()
                    record.note(str(interruption))
                    # The first process to leave may end the others (srun --kill-on-bad-exit): not before the
                    # checkpoint is whole.
                    sum_over_processes([0.0], engine.device)
                    raise interruption
            request.step_finished()
            kept.step_finished()
            if is_last:
                if stopping is not None and done < settings.steps:
                    record.note(f"stopped early after step {done:,}: {stopping.reason}")
                break


def _probed(probes: Sequence[Probe], engine: Engine) -> dict[str, float]:
    return {name: value for probe in probes for name, value in probe.score(engine).items()}


def accumulate_gradients(engine: Engine, batch: StepBatch, average: LossAverage, objective: Objective) -> Tensor:
    """Forward and backward over all micro-batches; returns this process's sums (`measures.sums_of`)."""
    divisor = divisors(batch, average, engine.topology, engine.device)
    sums: Tensor | None = None
    for micro_batch in batch.micro_batches:
        terms = objective.terms(engine.forward(micro_batch))
        engine.backward(loss_of(terms, divisor))
        sums = sums_of(terms) if sums is None else sums + sums_of(terms)
    assert sums is not None, "a share of a batch has at least one sequence"
    return sums


def _rate_of(settings: PretrainSettings, step: int) -> float:
    return learning_rate(settings.optimizer.learning_rate, settings.schedule, step, settings.steps)


def _rows(
    settings: PretrainSettings, record: RunRecord, steps: list[Measured], guessing_loss: float
) -> list[dict[str, float]]:
    """The lines of the metrics file for these steps; raises TrainingError at the first one that diverged.

    `guessing_loss` (nats) is that of a uniform guess. A run that has lost more than that against its own best step
    has diverged; measured against the best step, because some initialisations start far above a guess.
    """
    rows, tokens, skipped, lowest = [], record.position.tokens, record.skipped_steps, record.lowest_loss
    for measured in steps:
        _require_finite(measured.total_loss, "loss", measured.step, record)
        _require_finite(measured.gradient_norm, "gradient norm", measured.step, record)
        if measured.loss > lowest + guessing_loss:
            raise TrainingError(
                f"step {measured.step + 1}: the loss is {measured.loss:.2f} after {lowest:.2f} at the best step: "
                f"training has diverged; {record.last_checkpoint()}. Training again would end at the same step: lower "
                "the learning rate or lengthen the warm-up"
            )
        lowest = min(lowest, measured.loss)
        tokens += measured.tokens
        skipped += measured.skipped
        row: dict[str, float] = {
            "step": measured.step + 1,
            "tokens": tokens,
            **measured.terms[0],
            "learning_rate": _rate_of(settings, measured.step),
            "gradient_norm": measured.gradient_norm,
        }
        for term in measured.terms[1:]:
            row |= term
        if measured.loss_scale is not None:
            row |= {"loss_scale": measured.loss_scale, "skipped_steps": skipped}
        rows.append(row)
    return rows


def _require_finite(value: float, what: str, step: int, record: RunRecord) -> None:
    if not math.isfinite(value):
        raise TrainingError(
            f"step {step + 1}: the {what} is {value}; {record.last_checkpoint()}. Training again would end at the "
            "same step: lower the learning rate, lengthen the warm-up, or use fp32"
        )

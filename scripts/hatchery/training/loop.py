"""The training loop: draw a batch, run the forward and backward passes, update, evaluate, and save checkpoints.

The same loop serves one or several processes, on CPU or GPU, and new or resumed runs. Losses, norms and counts of many
steps are read from a GPU in one transfer, because the GPU idles during a transfer. The values are read at intervals,
and before each evaluation or checkpoint. So a diverged run stops before it writes a checkpoint of the diverged state.
On a CPU, the values are read after every step. At each reading, the values are summed over processes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from hatchery.errors import TrainingError
from hatchery.training.batches import BatchLoader, StepBatch
from hatchery.training.engine import Engine, Update
from hatchery.training.interruption import StopRequest
from hatchery.training.objective import Columns, Objective, Term
from hatchery.training.record import RunRecord
from hatchery.training.run_checkpoints import RunCheckpoints
from hatchery.training.speed import KeptMemory
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import Topology, on_device, sum_over_processes, sum_tensor_over_processes
from hatchery.training.watchers import Watcher, evaluated_weights


def train(
    objective: Objective,
    engine: Engine,
    loader: BatchLoader,
    record: RunRecord,
    watchers: Sequence[Watcher] = (),
    request: StopRequest | None = None,
) -> None:
    """Train from the position of `record` to the last step of the loader's plan, or until a watcher ends the run.

    `request` asks to stop, by default after SIGTERM, SIGUSR1 or Ctrl-C. After such a request, this function saves a
    checkpoint and raises TrainingInterrupted. It raises TrainingError if the loss has diverged, if a loss, gradient
    norm or score is not finite, or if a batch has no labels.
    """
    batches = loader.batches
    plan, seed, average = batches.plan, batches.seed, batches.plan.settings.loss_average
    checkpoints = record.checkpoints
    for watcher in watchers:
        watcher.begin(engine.model)
    if record.position.step >= plan.steps or _reason_to_stop(watchers):
        return
    with request or StopRequest() as request, record, loader.from_step(record.position.step) as drawn:
        kept = KeptMemory()
        measures = StepMeasures(average, engine.topology, engine.device, objective.columns)
        if record.position.step == 0 and (first := _scores(watchers, 0, engine, checkpoints)):
            known = {} if record.position.words is None else {"words": 0}
            record.append({"step": 0, "tokens": 0, **known, **first})
        for step, drawn_batch in enumerate(drawn, record.position.step):
            batch = drawn_batch
            for watcher in watchers:
                batch = watcher.prepared(batch)
            engine.begin_step(seed, step, plan.learning_rate(step), batch.first_sequence)
            sums = accumulate_gradients(engine, batch, average, objective)
            update = engine.step()
            for watcher in watchers:
                watcher.after_step(step + 1, engine.model)
            stops = request.is_made
            measures.add(step, batch, sums, update, stops)
            record.count(batch, engine, objective)

            done = step + 1
            is_last = done == plan.steps
            saves = is_last or checkpoints.is_due(done)
            # A single process stops after the current step. Several processes exchange stop requests only when they
            # read losses.
            alone_and_stops = stops and engine.topology.world_size == 1
            is_due = any(watcher.due(done) for watcher in watchers)
            if is_due or saves or alone_and_stops or record.reads_after(done):
                read = measures.read()
                rows = _rows(plan, record, read, math.log(engine.model.config.vocab_size))
                with record.paused():
                    rows[-1] |= _scores(watchers, done, engine, checkpoints)
                for row in rows:
                    record.append(row)
                # The scores are equal in all processes, so all processes stop after the same step.
                reason = _reason_to_stop(watchers)
                is_last = is_last or reason is not None
                must_stop = any(measured.stop for measured in read) and not is_last
                if saves or must_stop or is_last:
                    record.checkpoint(engine, watchers)
                if must_stop:
                    interruption = request.interruption(done, plan.steps, checkpoints.folder)
                    checkpoints.wait()
                    record.note(str(interruption))
                    # Let all processes wait until the checkpoint is complete: as soon as one process exits with a
                    # status other than 0, `srun --kill-on-bad-exit` ends all other processes.
                    sum_over_processes([0.0], engine.device)
                    raise interruption
                if reason is not None and done < plan.steps:
                    record.note(f"stopped early after step {done:,}: {reason}")
            request.step_finished()
            kept.step_finished()
            if is_last:
                break


def _scores(watchers: Sequence[Watcher], step: int, engine: Engine, checkpoints: RunCheckpoints) -> dict[str, float]:
    """Return the metrics that the watchers measure after `step` steps, by column name. Raises TrainingError for a value
    that is not finite.
    """
    due = [watcher for watcher in watchers if watcher.due(step)]
    scores: dict[str, float] = {}
    with evaluated_weights(watchers if due else (), engine.model):
        for watcher in due:
            columns = watcher.scores(step, engine)
            for name, value in columns.items():
                _require_finite(value, name.replace("_", " "), step, checkpoints)
            scores |= columns
    return scores


def _reason_to_stop(watchers: Sequence[Watcher]) -> str | None:
    reasons = (watcher.reason_to_stop for watcher in watchers)
    return next((reason for reason in reasons if reason is not None), None)


LossAverage = Literal["tokens", "processes"]
"""Averaging of a step's loss. `tokens`: mean over all labelled tokens of the global batch. `processes`: mean of the
processes' means, as in LTG-BERT's code; tokens of a process with fewer labels then have larger weights.
"""
Divisors = tuple[Tensor | float, ...]
"""Divisors of a process's loss sums, one for each loss term. The divided sums, added up over the processes, are the
loss of the step."""


def divisors(batch: StepBatch, average: LossAverage, topology: Topology, device: torch.device) -> Divisors:
    """Return this process's divisors of the loss sums in a step, one for each loss term, without waiting for the
    device.

    If `average` is "tokens", each divisor is the loss term's count (see `Examples.counted`), such as its number of
    labels, in the global batch. If `average` is "processes", it is the count in this process's sequences, multiplied by
    the number of processes.
    """
    size = topology.world_size
    if average == "processes":
        # Use a divisor of at least 1, so that a process without labels adds 0, and not 0 / 0, to the loss.
        return tuple(float(max(1, count) * size) for count in batch.counted)
    counts = [float(count) for count in batch.counted]
    if size == 1:
        # Use a divisor of at least 1, so that a term without labels adds 0, and not 0 / 0, to the loss.
        return tuple(max(1.0, count) for count in counts)
    return sum_tensor_over_processes(on_device(counts, device)).float().clamp(min=1).unbind()


def loss_of(terms: Sequence[Term], divisor: Divisors) -> Tensor:
    """Return a micro-batch's part of the step's loss: the weighted sum of its loss terms, each divided by the term's
    element of `divisor`.
    """
    sums = [term.minimised for term in terms]
    parts = [
        loss_sum / own if term.weight == 1 else term.weight * loss_sum / own
        for term, loss_sum, own in zip(terms, sums, divisor, strict=True)
    ]
    loss = parts[0]
    for part in parts[1:]:
        loss = loss + part
    return loss


def sums_of(terms: Sequence[Term]) -> Tensor:
    """Return the sums of all loss terms over a micro-batch as one fp64 vector: for each loss term, first the summed
    loss, then the sums of other measures in `Term.sums`.
    """
    parts = [part.detach() for term in terms for part in (term.loss_sum, *term.sums)]
    return torch.stack([part.double() for part in parts])


@dataclass(frozen=True)
class Measured:
    """Losses, counts and gradient norm of one step over the global batch, equal in all processes."""

    # Number of the step, from 0.
    step: int
    # For each loss term, the mean of each column (`Columns`) by the column's name; losses are in nats.
    terms: tuple[dict[str, float], ...]
    tokens: int
    words: int
    # Global L2 norm of the gradients before clipping.
    gradient_norm: float
    # True if fp16 gradients overflowed and the update was skipped.
    skipped: bool
    # Scale of the loss; None without loss scaling.
    loss_scale: float | None
    # True if any process has a request to stop.
    stop: bool

    @property
    def loss(self) -> float:
        """Mean loss per labelled token, of the first loss term."""
        return next(iter(self.terms[0].values()))

    @property
    def total_loss(self) -> float:
        """Sum of the mean losses of all loss terms. The terms have equal weights; penalties and divergences from
        teachers are left out.
        """
        return sum(next(iter(term.values())) for term in self.terms)


@dataclass(frozen=True)
class _Pending:
    step: int
    # Sums over this process's micro-batches (see `sums_of`), on the device.
    sums: Tensor
    # Counts of this process: the terms' divisors, tokens, words, and 1 if a stop is requested.
    counts: list[float]
    update: Update


class StepMeasures:
    """Losses, counts and gradient norms of those steps whose values have not been read from the device."""

    def __init__(self, average: LossAverage, topology: Topology, device: torch.device, columns: Columns) -> None:
        """`columns` are the columns that the objective adds to the training metrics, by loss term; a batch may have
        fewer loss terms than `columns` has entries.
        """
        self.average, self.topology, self.device, self.columns = average, topology, device, columns
        self._pending: list[_Pending] = []

    def add(self, step: int, batch: StepBatch, sums: Tensor, update: Update, stop: bool) -> None:
        """Store this process's values of step number `step` (from 0). `sums` are the sums of all loss terms (see
        `sums_of`) over all micro-batches of this process.
        """
        counts = [*map(float, batch.counted), float(batch.tokens), float(batch.words), float(stop)]
        if self.average == "processes":
            own = divisors(batch, self.average, self.topology, self.device)
            parts = zip(own, self.columns, strict=False)
            weights = [weight for divisor, names in parts for weight in (float(divisor), *[1.0] * (len(names) - 1))]
            sums = sums / on_device(weights, self.device)
        self._pending.append(_Pending(step, sums, counts, update))

    def read(self) -> list[Measured]:
        """Return losses, counts and gradient norm of all steps since the last call; every process must call this method
        after the same step.

        Waits for the device. Raises TrainingError for a step without any labelled token.
        """
        pending, self._pending = self._pending, []
        if not pending:
            return []
        sums = torch.stack([part.sums for part in pending])
        norms = torch.stack([part.update.gradient_norm.double() for part in pending])[:, None]
        if self.topology.world_size > 1:
            counts = on_device([part.counts for part in pending], self.device)
            sums = sum_tensor_over_processes(torch.cat([sums, counts], dim=1))
        values: list[list[float]] = torch.cat([sums, norms], dim=1).tolist()
        parts = len(pending[0].sums)
        return [
            self._measured(part, row[:parts], row[parts:-1] or part.counts, row[-1])
            for part, row in zip(pending, values, strict=True)
        ]

    def _measured(self, part: _Pending, sums: list[float], counts: list[float], norm: float) -> Measured:
        *counted, tokens, words, stop = counts
        if counted[0] == 0:
            raise TrainingError(
                f"step {part.step + 1}: the batch contains no labelled token, expected at least one; raise batch_size "
                "or the share of masked tokens"
            )
        terms, values = [], iter(sums)
        for count, (loss, *others) in zip(counted, self.columns, strict=False):
            # If `average` is "processes", `add` has already divided the loss sums.
            count = max(1.0, count)
            own = {loss: next(values) / (count if self.average == "tokens" else 1.0)}
            terms.append(own | {name: next(values) / count for name in others})
        update = part.update
        n_tokens, n_words = int(tokens), int(words)
        return Measured(part.step, tuple(terms), n_tokens, n_words, norm, update.skipped, update.loss_scale, stop > 0)


def accumulate_gradients(engine: Engine, batch: StepBatch, average: LossAverage, objective: Objective) -> Tensor:
    """Run the forward and backward passes of all micro-batches; return the sums of their loss terms (see `sums_of`)."""
    divisor = divisors(batch, average, engine.topology, engine.device)
    sums: Tensor | None = None
    for micro_batch in batch.micro_batches:
        there = engine.on_device(micro_batch)
        terms = objective.terms(engine.forward(there), there)
        engine.backward(loss_of(terms, divisor))
        sums = sums_of(terms) if sums is None else sums + sums_of(terms)
    assert sums is not None, "a share of a batch has at least one sequence"
    return sums


def _rows(plan: StepPlan, record: RunRecord, steps: list[Measured], guessing_loss: float) -> list[dict[str, float]]:
    """Return the metrics of `steps` as rows. Raises TrainingError at the first step that diverged, or whose loss or
    gradient norm is not finite.

    `guessing_loss` is the loss of a uniform prediction in nats. A run has diverged if its loss exceeds its lowest loss
    so far by more than `guessing_loss`. The loss is not compared with `guessing_loss` itself, because some
    initialisations start far above the loss of a uniform prediction.
    """
    rows, skipped, lowest = [], record.skipped_steps, record.lowest_loss
    tokens, words = record.position.tokens, record.position.words
    for measured in steps:
        _require_finite(measured.total_loss, "loss", measured.step + 1, record.checkpoints)
        _require_finite(measured.gradient_norm, "gradient norm", measured.step + 1, record.checkpoints)
        if measured.loss > lowest + guessing_loss:
            raise TrainingError(
                f"step {measured.step + 1}: the loss is {measured.loss:.2f}, but was {lowest:.2f} at the best step: "
                f"training has diverged; {record.checkpoints.last()}. Training again would end at the same step: lower "
                "the learning rate or lengthen the warm-up"
            )
        lowest = min(lowest, measured.loss)
        tokens += measured.tokens
        words = None if words is None else words + measured.words
        skipped += measured.skipped
        row: dict[str, float] = {
            "step": measured.step + 1,
            "tokens": tokens,
            **({} if words is None else {"words": words}),
            **measured.terms[0],
            "learning_rate": plan.learning_rate(measured.step),
            "gradient_norm": measured.gradient_norm,
        }
        for term in measured.terms[1:]:
            row |= term
        if measured.loss_scale is not None:
            row |= {"loss_scale": measured.loss_scale, "skipped_steps": skipped}
        rows.append(row)
    return rows


def _require_finite(value: float, what: str, step: int, checkpoints: RunCheckpoints) -> None:
    """Raise TrainingError unless `value` is finite; the message contains `step`, the number of finished steps."""
    if not math.isfinite(value):
        raise TrainingError(
            f"step {step}: the {what} is {value}; {checkpoints.last()}. Training again would end at the "
            "same step: lower the learning rate, lengthen the warm-up, or use fp32"
        )

"""The training loop, top to bottom: draw, forward, backward, update, evaluate, note, save.

One loop for one process or many, on CPU or GPU, from the start or from a checkpoint. The loss of a step is the sum
over the labelled tokens of the global batch divided by their number, whatever the split into processes and
micro-batches (the papers' code averages means of unequal parts instead).
"""

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from hatchery.errors import TrainingError
from hatchery.modeling.masked_language_model import MaskedLanguageModelOutput
from hatchery.pretraining.batches import StepBatch, TrainingBatches
from hatchery.pretraining.checkpoints import Position
from hatchery.pretraining.development import DevelopmentSet
from hatchery.pretraining.engine import Engine
from hatchery.pretraining.interruption import StopRequest, TrainingInterrupted, stop_request
from hatchery.pretraining.processes import sum_over_processes
from hatchery.pretraining.record import RunRecord
from hatchery.pretraining.schedules import learning_rate
from hatchery.pretraining.settings import PretrainSettings


def train(
    settings: PretrainSettings,
    engine: Engine,
    batches: TrainingBatches,
    development: DevelopmentSet | None,
    record: RunRecord,
) -> None:
    """Train from where `record` stands to the last step.

    Raises TrainingError when the loss or the gradient is no longer finite, and TrainingInterrupted, with a checkpoint
    saved, after SIGTERM or Ctrl-C.
    """
    if record.position.step >= settings.steps:
        return
    with stop_request() as request, record:
        for batch in batches.from_step(record.position.step):
            step, rate = record.position.step, _rate_of(settings, record.position.step)
            engine.begin_step(settings.seed, step, rate)
            measured = accumulate_gradients(engine, batch, request)
            _require_finite(measured.total_loss, "loss", step, record)
            norm = engine.step()
            _require_finite(norm, "gradient norm", step, record)

            position = Position(step + 1, record.position.tokens + measured.tokens)
            row: dict[str, Any] = {
                "step": position.step,
                "tokens": position.tokens,
                "loss": measured.loss,
                "masked_accuracy": measured.accuracy,
                "learning_rate": rate,
                "gradient_norm": norm,
            }
            if measured.pairs is not None:
                row |= {"pair_loss": measured.pairs.loss, "pair_accuracy": measured.pairs.accuracy}
            is_last = position.step == settings.steps
            if development is not None and (is_last or position.step % settings.evaluation_interval_steps == 0):
                score = development.score(engine)
                _require_finite(score.loss, "development loss", step, record)
                row |= {"development_loss": score.loss, "development_perplexity": score.perplexity}
                if score.pair_accuracy is not None:
                    row |= {"development_pair_accuracy": score.pair_accuracy}
            record.append(position, row)

            must_stop = measured.stop and not is_last
            if is_last or must_stop or position.step % record.runtime.checkpoint_interval_steps == 0:
                record.checkpoint(engine.model, engine.optimizer)
            if must_stop:
                raise TrainingInterrupted(
                    f"stopped by {request.signal_name or 'a signal to another process'} after step {position.step} of "
                    f"{settings.steps}; a checkpoint is saved in {record.folder}: run the same command again to go on"
                )


@dataclass(frozen=True)
class MeasuredPairs:
    """Mean binary cross-entropy (nats) and accuracy over the sentence pairs of a global batch."""

    loss: float
    accuracy: float


@dataclass(frozen=True)
class Measured:
    """Means over the global batch of one step, the same in every process."""

    # Per labelled token, natural logarithm.
    loss: float
    accuracy: float
    tokens: int
    # Whether some process was asked to stop.
    stop: bool
    pairs: MeasuredPairs | None = None

    @property
    def total_loss(self) -> float:
        """What the gradient is taken of: the losses of tokens and pairs weigh the same."""
        return self.loss + (0.0 if self.pairs is None else self.pairs.loss)


def accumulate_gradients(engine: Engine, batch: StepBatch, request: StopRequest) -> Measured:
    """Forward and backward over all micro-batches; every process learns the sums and whether anyone has to stop."""
    n_pairs = sum(len(part["pair_labels"]) for part in batch.micro_batches if "pair_labels" in part)
    labelled, tokens, pairs = sum_over_processes(
        [float(batch.labelled), float(batch.tokens), float(n_pairs)], engine.device
    )
    if labelled == 0:
        raise TrainingError("a whole batch has no labelled token; is mask_probability 0?")
    outputs = []
    for micro_batch in batch.micro_batches:
        output = engine.forward(micro_batch)
        loss = output.loss_sum / labelled
        if output.pair_loss_sum is not None:
            loss = loss + output.pair_loss_sum / pairs
        engine.backward(loss)
        outputs.append(detached(output))
    sums = [sum(float(output[part]) for output in outputs) for part in range(len(outputs[0]))]
    *sums, stop = sum_over_processes([*sums, float(request.is_made)], engine.device)
    loss_sum, correct, *of_pairs = sums
    measured_pairs = MeasuredPairs(of_pairs[0] / pairs, of_pairs[1] / pairs) if of_pairs else None
    return Measured(loss_sum / labelled, correct / labelled, int(tokens), stop > 0, measured_pairs)


def detached(output: MaskedLanguageModelOutput) -> list[Tensor]:
    """Loss sum and right answers of a micro-batch, then those of its pairs where there are any."""
    kept = [output.loss_sum.detach(), output.n_correct]
    if output.pair_loss_sum is not None and output.n_pairs_correct is not None:
        kept += [output.pair_loss_sum.detach(), output.n_pairs_correct]
    return kept


def _rate_of(settings: PretrainSettings, step: int) -> float:
    return learning_rate(settings.optimizer.learning_rate, settings.schedule, step, settings.steps)


def _require_finite(value: float, what: str, step: int, record: RunRecord) -> None:
    if not math.isfinite(value):
        raise TrainingError(
            f"step {step + 1}: the {what} is {value}; {record.last_checkpoint()}. Training again would end at the "
            "same step: lower the learning rate, lengthen the warm-up, or use fp32"
        )

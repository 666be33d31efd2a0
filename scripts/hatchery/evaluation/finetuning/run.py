"""One run: a fresh head on the pretrained encoder, trained with one seed and one learning rate, scored on all sets.

The seed decides the held-out rows, the order, the head and the dropout, each by a stream of its own, so a run depends
on no other run of its job.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.batches import EncodedData, NotFiniteError, Predicted, predict
from hatchery.evaluation.finetuning.loop import Development, step_count, train_model
from hatchery.evaluation.finetuning.run_results import RunResult, SetResult
from hatchery.evaluation.finetuning.scored_sets import ScoredSet
from hatchery.evaluation.finetuning.settings import FinetuneSettings
from hatchery.evaluation.finetuning.task_data import EncodedTask
from hatchery.evaluation.metrics.scored import metric_called
from hatchery.evaluation.seeds import derived_seed, generator
from hatchery.evaluation.splits import hold_out
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.registry import HEADS, build_task_model
from hatchery.modeling.heads.span_classifier import SpanClassifier
from hatchery.modeling.heads.task_model import HeadContext, TaskModel
from hatchery.modeling.output_bias import marginal_bias, set_output_bias_
from hatchery.progress import Progress
from hatchery.typed import build


def train_run(
    settings: FinetuneSettings,
    task: EncodedTask,
    encoder: Encoder,
    seed: int,
    learning_rate: float,
    device: torch.device,
) -> RunResult:
    """Train and score one model. `encoder`, on `device`, stays as it is. A diverged run is a result, not an error."""
    protocol = settings.protocol
    kept, development_set = split(settings, task, seed)
    train = task.train.data.subset(kept)
    model = make_model(settings, task, encoder, train, seed).to(device)
    development, n_development = None, 0
    if development_set is not None:
        development = Development(development_set.data, development_value(settings, development_set))
        n_development = len(development_set.data.lengths)
    label = f"{settings.task.name}, seed {seed}, learning rate {learning_rate:g}"
    try:
        with Progress(step_count(len(kept), protocol), label, "steps") as progress:
            trained = train_model(model, train, development, protocol, learning_rate, seed, device, progress.update)
        sets = score_sets(model, task.sets, device)
    except NotFiniteError:
        failed = {found.name: SetResult(dict.fromkeys(found.task.metrics), "nan", None) for found in task.sets}
        return RunResult(seed, learning_rate, None, None, len(kept), n_development, failed)
    weights = model.layer_weights().tolist() if isinstance(model, SpanClassifier) else []
    best_step, value = trained.best_step, trained.development_value
    return RunResult(seed, learning_rate, best_step, value, len(kept), n_development, sets, weights)


def split(settings: FinetuneSettings, task: EncodedTask, seed: int) -> tuple[list[int], ScoredSet | None]:
    """The training items that are trained on, and what chooses the state that is reported.

    With selection "scored" that is the main set with all its rows, also those that do not count
    (docs/papers/babylm-evaluation.md, "Official fine-tuning").
    """
    kept, protocol = list(range(len(task.groups))), settings.protocol
    if protocol.selection == "scored":
        return kept, task.sets[0]
    if protocol.selection == "last":
        return kept, None
    random = generator(seed, "development rows")
    kept, held = hold_out(task.groups, protocol.development_fraction, random, settings.task.name)
    return kept, task.train.subset(held)


def development_value(settings: FinetuneSettings, development: ScoredSet) -> Callable[[Predicted], float]:
    """What the selection metric says of predictions for all rows."""
    metric = metric_called(settings.protocol.selection_metric or settings.task.metrics[0])
    return lambda predicted: metric(development.scored(predicted, all_rows=True))


def make_model(
    settings: FinetuneSettings, task: EncodedTask, encoder: Encoder, train: EncodedData, seed: int
) -> TaskModel:
    """The model before its first step; `encoder` is copied if it is trained, because training changes it in place.

    Raises EvaluationError for labels that the head cannot have.
    """
    head, protocol = settings.task.head, settings.protocol
    options: Any = build(HEADS[head.kind].options, head.options, f"head.{head.kind}")
    own = copy.deepcopy(encoder) if options.encoder_mode == "trained" else encoder
    context = HeadContext(task.n_labels, protocol.dropout, derived_seed(seed, "head"), task.pad_id)
    model = build_task_model(head.kind, own, context, head.options)
    labels = train.labels
    if labels.dtype.kind == "i" and labels.ndim == 1 and labels.min() < 0:
        raise EvaluationError(f"{settings.task.name}: a training row has a label that is not in the label set")
    if protocol.output_bias == "prior" and (link := model.target.link) is not None:
        set_output_bias_(model.output_layer, marginal_bias(link, labels, model.output_layer.out_features))
    return model


def score_sets(model: TaskModel, sets: Sequence[ScoredSet], device: torch.device) -> dict[str, SetResult]:
    """Answers and metrics of all sets; sets that share their rows are predicted once. Raises NotFiniteError."""
    predicted: dict[int, Predicted] = {}
    results = {}
    for scored in sets:
        if id(scored.data) not in predicted:
            predicted[id(scored.data)] = predict(model, scored.data, device)
        answers = scored.answers(predicted[id(scored.data)])
        results[scored.name] = SetResult(dict(scored.values(answers)), scored.failure(answers), answers)
    return results

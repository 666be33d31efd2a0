"""The stage `finetune`: one pretrained model on one task, repeated over seeds.

Writes results.csv (one row per seed and metric, values as fractions), predictions.parquet and the manifest. A seed
that collapsed is named in the column `failed`, never dropped.
"""

import copy
import csv
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from hatchery.evaluation.finetuning.encoding import EncodedExamples, encode_examples
from hatchery.evaluation.finetuning.loop import NotFiniteError, predict, step_count, train_classifier
from hatchery.evaluation.finetuning.run_results import SeedResult, SeedStore
from hatchery.evaluation.finetuning.settings import FinetuneRuntime, FinetuneSettings, finetune_settings
from hatchery.evaluation.metrics.classification import METRICS, failure
from hatchery.evaluation.pretrained import load_pretrained
from hatchery.evaluation.runtime import prepare_device
from hatchery.evaluation.seeds import derived_seed, generator
from hatchery.evaluation.splits import hold_out, input_groups
from hatchery.evaluation.tasks.reading import read_task
from hatchery.modeling.heads.sequence_classifier import SequenceClassifier
from hatchery.modeling.layered_encoder import LayeredEncoder
from hatchery.modeling.output_bias import set_output_bias_
from hatchery.modeling.output_prior import marginal_bias
from hatchery.progress import Progress
from hatchery.storage.atomic import write_text
from hatchery.storage.checksums import digest, sha256_file
from hatchery.storage.manifests import stage_run
from hatchery.storage.parquet import write_table
from hatchery.storage.sources import open_source
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.typed import build

RESULT_COLUMNS = ("seed", "metric", "value", "best_epoch", "development_value", "failed")
PREDICTIONS_SCHEMA = pa.schema(
    [("seed", pa.int64()), ("row", pa.int64()), ("label", pa.string()), ("prediction", pa.string())]
)


@dataclass(frozen=True)
class PreparedTask:
    """A task as ids, with what decides which training rows may be held out together."""

    train: EncodedExamples
    train_groups: list[tuple[str, ...]]
    validation: EncodedExamples
    pad_id: int


def finetune(
    settings: Mapping[str, Any], runtime: Mapping[str, Any], model: Path, source: Path, checkpoints: Path, output: Path
) -> None:
    """Fine-tune the model of a pretraining manifest on the task of a source manifest; write beside `output`.

    Seeds that an earlier, killed attempt finished are taken from `checkpoints`. Raises EvaluationError for wrong
    data (file and line), ConfigError for wrong settings, and the errors of the model, tokenizer and source loaders.
    """
    typed = finetune_settings(settings)
    options = build(FinetuneRuntime, runtime, "runtime")
    store = SeedStore(checkpoints, _identity(settings, model, source))
    with stage_run(output, settings, {"model": model, "source": source}) as run:
        started = time.monotonic()
        device = prepare_device(options.device, options.threads)
        network, tokenizer = load_pretrained(model)
        task = _prepare(typed, source, tokenizer)
        finished = store.load(typed.seeds)
        resumed = len(finished)
        for seed in typed.seeds:
            if seed not in finished:
                finished[seed] = run_seed(typed, task, network.encoder, seed, device)
                store.save(finished[seed])
        results = [finished[seed] for seed in typed.seeds]
        write_text(run.add_output(run.folder / "results.csv"), results_csv(typed, results))
        names = typed.task.label_names
        table = predictions_table(results, task.validation.labels.tolist(), names)
        write_table(run.add_output(run.folder / "predictions.parquet"), table)
        run.measures |= {
            "train_rows": len(task.train.sequences),
            "development_rows": results[0].n_development,
            "validation_rows": len(task.validation.sequences),
            "truncated_train_rows": task.train.truncated,
            "truncated_validation_rows": task.validation.truncated,
            "failed_seeds": sum(bool(result.failed) for result in results),
        }
        run.volatile |= {
            "seeds_resumed": resumed,
            "seconds_per_seed": round((time.monotonic() - started) / max(1, len(results) - resumed), 3),
            "device": str(device),
            "threads": torch.get_num_threads(),
        }
    store.remove()


def _identity(settings: Mapping[str, Any], model: Path, source: Path) -> str:
    """What determines the seeds' results: settings, model, raw data. The runtime is left out on purpose."""
    return digest(
        {"stage": "finetune", "settings": settings, "model": sha256_file(model), "source": sha256_file(source)}
    )


def _prepare(settings: FinetuneSettings, source: Path, tokenizer: Tokenizer) -> PreparedTask:
    data = read_task(open_source(source), settings.task)
    max_length = settings.protocol.max_length
    return PreparedTask(
        train=encode_examples(data.train, tokenizer, max_length),
        train_groups=input_groups(data.train),
        validation=encode_examples(data.validation, tokenizer, max_length),
        pad_id=tokenizer.pad_id,
    )


def run_seed(
    settings: FinetuneSettings, task: PreparedTask, encoder: LayeredEncoder, seed: int, device: torch.device
) -> SeedResult:
    """Train and test one classifier. A diverged run becomes a result with `failed` "nan", not an error."""
    protocol = settings.protocol
    kept, held = list(range(len(task.train.sequences))), list[int]()
    if protocol.development_fraction > 0:
        random = generator(seed, "development rows")
        kept, held = hold_out(task.train_groups, protocol.development_fraction, random, settings.task.name)
    # A copy, because training changes the encoder in place and every seed starts from the pretrained weights.
    model = SequenceClassifier(
        copy.deepcopy(encoder), len(settings.task.labels), protocol.dropout, derived_seed(seed, "head")
    ).to(device)
    if protocol.output_bias == "prior":
        labels = task.train.labels[kept]
        set_output_bias_(model.output_layer, marginal_bias("softmax", labels, len(settings.task.labels)))
    development = task.train.subset(held) if held else None
    try:
        with Progress(step_count(len(kept), protocol), f"{settings.task.name}, seed {seed}", "steps") as progress:
            trained = train_classifier(
                model, task.train.subset(kept), development, protocol, seed, task.pad_id, device, progress.update
            )
        predictions = predict(model, task.validation, task.pad_id, device)
    except NotFiniteError:
        no_values = dict.fromkeys(settings.task.metrics)
        return SeedResult(seed, no_values, None, None, "nan", None, len(kept), len(held))
    labels = task.validation.labels
    return SeedResult(
        seed=seed,
        values={name: METRICS[name](labels, predictions) for name in settings.task.metrics},
        best_epoch=trained.best_epoch,
        development_value=trained.development_value,
        failed=failure(labels, predictions),
        predictions=predictions.tolist(),
        n_train=len(kept),
        n_development=len(held),
    )


def results_csv(settings: FinetuneSettings, results: Sequence[SeedResult]) -> str:
    """The text of results.csv, seeds and metrics in configured order; what a failed run lacks is left empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(RESULT_COLUMNS)
    for result in results:
        for metric in settings.task.metrics:
            writer.writerow(
                [result.seed, metric, result.values[metric], result.best_epoch, result.development_value, result.failed]
            )
    return text.getvalue()


def predictions_table(results: Sequence[SeedResult], labels: Sequence[int], names: Sequence[str]) -> pa.Table:
    """One row per seed and test row, labels as text; a diverged seed has null predictions."""
    columns: dict[str, list[Any]] = {name: [] for name in PREDICTIONS_SCHEMA.names}
    for result in results:
        predictions: Sequence[int | None] = result.predictions or [None] * len(labels)
        columns["seed"] += [result.seed] * len(labels)
        columns["row"] += range(len(labels))
        columns["label"] += [names[label] for label in labels]
        columns["prediction"] += [None if index is None else names[index] for index in predictions]
    return pa.table(columns, schema=PREDICTIONS_SCHEMA)

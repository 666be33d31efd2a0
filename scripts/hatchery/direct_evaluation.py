"""`hatchery.evaluate`, `hatchery.reading` and `hatchery.surprisals`: evaluate any model on any suite, without an
experiment.

Scores are bit-identical to the scores of the workflow's stages, because the same functions compute them. Only temporary
files are written.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import torch
from torch import nn

from hatchery.artifacts.manifests import Manifest
from hatchery.artifacts.yaml_files import read_yaml
from hatchery.direct_training import Training
from hatchery.errors import ConfigError
from hatchery.evaluation.direct.checkpoints import Checkpoints, checkpoints_of
from hatchery.evaluation.direct.numerics import device_of, kept_numerics
from hatchery.evaluation.direct.pairs import READERS, read_pairs
from hatchery.evaluation.direct.request import Answer, Request
from hatchery.evaluation.direct.rows import EvaluationResult, frame_of_rows, summary_of
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.kinds import evaluations
from hatchery.evaluation.opening import Named, open_model
from hatchery.evaluation.pretrained import ModelOfOthers, Pretrained
from hatchery.evaluation.runtime import prepare_device
from hatchery.evaluation.settings import IMPORT, EvaluationRuntime
from hatchery.evaluation.stages.finetune import task_settings
from hatchery.evaluation.surprisal.direct import given_texts, scored_words
from hatchery.experiment.experiment_file import Finetuning
from hatchery.experiment.finetuning import head_of_task, resolve_protocol
from hatchery.experiment.kinds import ReadingTableFile, SuiteVariant, Variant
from hatchery.experiment.project import Project
from hatchery.experiment.shipped import open_project
from hatchery.numerics import kept_settings
from hatchery.settings.base import DeviceName, dumped_values
from hatchery.settings.problems import nearest
from hatchery.shipped import shipped_config
from hatchery.typed import build, keys_of, plain, validated

PAIRS, TASKS, READING_TIMES = "minimal_pairs", "finetuning", "reading_times"
OF_FILES = ("description", "base", "data", "embedded", "variants")
"""Keys of a suite's file that describe the suite or state where its data are. They do not affect scores."""


def evaluate(
    model: str | Path | nn.Module | Training | Sequence[str | Path] | Mapping[int, str | Path | nn.Module],
    suite: Any,
    data: Any = None,
    *,
    tokenizer: Any = None,
    architecture: Named | None = None,
    device: DeviceName | None = None,
    tokens_per_batch: int | None = None,
    **settings: Any,
) -> EvaluationResult:
    """Return the scores of a model on a suite.

    `model` is a folder of a model of Hatchery, an exported folder, a folder in the format of `transformers`, a name on
    the hub, a module with its `tokenizer` (see `evaluation.opening.open_model`), or the result of `hatchery.train`. For
    the evaluation `acquisition` (age of acquisition), `model` is a mapping from numbers of training words to
    checkpoints of one training, or the folder of a training with stored checkpoints.

    `suite` is the name of a suite, a task, a table of reading times, or a kind of evaluation (`perplexity`, `reading`).
    It may also be a YAML file of a suite or task, or minimal pairs: a table, a list of (good, bad), or a .csv, .tsv,
    .jsonl or .parquet file. `data` is the file, folder or archive with the suite's data, or a table. If `data` is None,
    the path in config.yaml is used. Other `settings` are keys of the suite's file, such as `pairs_per_paradigm=100`;
    for a task, only `protocol` and `head_options` are allowed.

    If `device` is None, a module is evaluated on the device of its parameters, and a folder is evaluated on a GPU, if
    there is one. `architecture` is only needed if neither the model nor the folder of its tokenizer determines the
    architecture.

    Raises ConfigError for wrong settings and for an unknown suite; the message suggests the suite with the most similar
    name. Raises EvaluationError naming file and line for wrong data. Also raises the errors of `open_model`. All errors
    are HatcheryErrors with a message of one line.
    """
    kind, name, asked, where = _suite_of(suite, data, settings)
    record = evaluations()[kind]
    given, tokenizer = model.opened_as(tokenizer) if isinstance(model, Training) else (model, tokenizer)
    open_it: Callable[..., Pretrained | Checkpoints] = checkpoints_of if record.of_checkpoints else open_model
    opened = open_it(given, tokenizer, architecture)
    with TemporaryDirectory(prefix="hatchery-") as scratch, _kept(opened):
        at, runtime = _prepared(given, opened, device, tokens_per_batch)
        request = Request(opened, at, name, asked, where, Path(scratch), runtime)
        answer: Answer = resolve_name(record.direct)(request)
    return _result(kind, name, _shown(given), stand_in(opened), answer)


def reading(
    model: str | Path | nn.Module | Training,
    table: Any,
    like: str | None = None,
    *,
    tokenizer: Any = None,
    architecture: Named | None = None,
    device: DeviceName | None = None,
    tokens_per_batch: int | None = None,
    **settings: Any,
) -> EvaluationResult:
    """Return the gain in log-likelihood when a model's surprisals are added to regressions of reading times.

    `model` is as in `evaluate`. `table` is a table of polars or pandas, or a file or folder, with one row per word and
    reader. `like` is the name of a file in config/reading_tables/, such as `meco_l1_eng`, whose values are defaults for
    `settings`. `settings` are keys of such a file: `response`, `item`, `position`, `word` and `participant` name
    columns, and `predictors`, `spillover` and `random_effects` describe the regressions. The result's `tables` contain
    the surprisal of each word (`words.parquet`), and the regressions' log-likelihoods (`scores.csv`) and coefficients
    (`coefficients.csv`).

    Raises the errors of `evaluate`.
    """
    about = {"tokenizer": tokenizer, "architecture": architecture, "device": device}
    return evaluate(model, like or READING_TIMES, table, **about, tokens_per_batch=tokens_per_batch, **settings)


def surprisals(
    model: str | Path | nn.Module | Training | Sequence[str | Path],
    texts: Any,
    column: str | None = None,
    *,
    tokenizer: Any = None,
    architecture: Named | None = None,
    device: DeviceName | None = None,
    tokens_per_batch: int | None = None,
    **settings: Any,
) -> pl.DataFrame:
    """Return the surprisal of each word in bits: one row per word, with the columns of `surprisal.words.SCHEMA`.

    `model` is as in `evaluate`. `texts` is a list of texts, a table with the texts in `column`, or a `Path` of a file
    or folder (docs/surprisal.md lists the formats). The result also contains the columns of the given table or, for a
    file, the columns `file` and `line`. Other `settings` are described in docs/surprisal.md: `scoring`, `separator`,
    `leading_blank`, and, if each row is one word, `text` and `order`.

    Raises EvaluationError, which states the index of the text, for a value that is not text and for a text that is too
    long for the model. Raises ConfigError for a missing column and for wrong settings. Also raises the errors of
    `open_model`.
    """
    given, tokenizer = model.opened_as(tokenizer) if isinstance(model, Training) else (model, tokenizer)
    opened = open_model(given, tokenizer, architecture)
    with TemporaryDirectory(prefix="hatchery-") as scratch, kept_numerics(opened):
        at, runtime = _prepared(given, opened, device, tokens_per_batch)
        read = given_texts(texts, column, settings, Path(scratch))
        words, _ = scored_words(opened.asked(at, read.settings.scoring), read, runtime)
    return words


def _kept(opened: Pretrained | Checkpoints) -> AbstractContextManager[None]:
    """Return a context that, when it ends, restores PyTorch's global settings and random states, and the model's device
    and training mode (see `kept_numerics`).

    Checkpoints of a training are opened one after the other; for them, only PyTorch's settings are restored.
    """
    return kept_settings() if isinstance(opened, Checkpoints) else kept_numerics(opened)


def _shown(model: Any) -> str:
    if isinstance(model, Mapping):
        return f"{len(model)} checkpoints"
    if isinstance(model, list | tuple):
        return " + ".join(map(str, model))
    return type(model).__name__ if isinstance(model, nn.Module) else str(model)


def _prepared(
    model: Any, opened: Pretrained | Checkpoints, device: DeviceName | None, tokens_per_batch: int | None
) -> tuple[torch.device, EvaluationRuntime]:
    """Return the device and the runtime settings of an evaluation.

    If `device` is None, a module is evaluated on the device of its parameters, and any other model is evaluated on the
    device that `auto` selects.
    """
    own = opened.network if isinstance(model, nn.Module) and not isinstance(opened, Checkpoints) else None
    wanted: DeviceName = device or ("auto" if own is None else "cpu")
    at = prepare_device(wanted)
    # Do not compile the caller's module, because compilation would change it.
    runtime = EvaluationRuntime(tokens_per_batch, wanted, compile="auto" if own is None else "off")
    return (at if own is None or device is not None else device_of(own)), runtime


def _suite_of(suite: Any, data: Any, settings: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any], Any]:
    """Return (kind of the evaluation, name of the suite or task, settings, data).

    The settings are those of the suite or task, changed by the caller's `settings`.
    """
    kinds = [kind for kind, evaluation in evaluations().items() if evaluation.direct]
    if not isinstance(suite, str | Path):
        if data is not None:
            raise ConfigError("data: got a value, expected none, because the given pairs are the data")
        return PAIRS, "pairs", settings, suite
    if Path(suite).suffix in READERS:
        if data is not None:
            raise ConfigError(f"data: got a value, expected none, because the pairs in {suite} are the data")
        path = Path(suite).expanduser()
        return PAIRS, path.stem, settings, read_pairs(path)
    if Path(suite).suffix in (".yaml", ".yml"):
        path = Path(suite).expanduser()
        written = read_yaml(path)
        if "head" in written or "metrics" in written:
            return TASKS, path.stem, _task(validated(Variant, written, str(path)), path.stem, settings), data
        block = validated(SuiteVariant, written, str(path))
        return PAIRS, path.stem, {**keys_of(block, *OF_FILES), **settings}, data
    name, own_names = str(suite), (PAIRS, TASKS)
    if name in kinds and name not in own_names:
        return name, name, settings, data
    project = _project()
    if name in project.names("suite"):
        found = project.suite(name)
        return PAIRS, name, {**keys_of(found, *OF_FILES), **settings}, _here(project, found, data)
    if name in project.names("task"):
        task = project.task(name)
        return TASKS, name, _task(task, name, settings), _here(project, task, data)
    if name in project.names("reading_table"):
        table = project.reading_table(name)
        own = {key: value for key, value in table.measured(name).items() if key != "name"}
        return READING_TIMES, name, {**own, **settings}, _here(project, table, data)
    tables = project.names("reading_table")
    known = sorted({*project.names("suite"), *project.names("task"), *tables, *kinds} - set(own_names))
    raise ConfigError(
        f"suite: got {name!r}, expected a known name{nearest(name, known)}; hatchery.suites() lists all names"
    )


def _project() -> Project:
    """Return the configuration in the current folder combined with the shipped configuration.

    If the current folder has no configuration, return only the shipped configuration.
    """
    return open_project() if Path("config").is_dir() else Project(shipped_config())


def suites() -> pl.DataFrame:
    """Return a table of all suites, tasks, tables of reading times and kinds of evaluation that `evaluate` accepts:
    `name`, `kind`, `description`.
    """
    project = _project()
    rows = [(name, PAIRS, project.suite(name).description) for name in project.names("suite")]
    rows += [(name, TASKS, project.task(name).description) for name in project.names("task")]
    tables = project.names("reading_table")
    rows += [(name, READING_TIMES, project.reading_table(name).description) for name in tables]
    others = {kind: one for kind, one in evaluations().items() if one.direct and kind not in (PAIRS, TASKS)}
    rows += [(kind, kind, one.title) for kind, one in others.items()]
    return pl.DataFrame(rows, schema=["name", "kind", "description"], orient="row")


def _task(task: Variant, name: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a task, including its fine-tuning protocol.

    The caller's setting `protocol` is the name of a protocol, or a mapping of keys that replace defaults.
    """
    unknown = set(settings) - {"protocol", "head_options"}
    if unknown:
        key = min(unknown)
        raise ConfigError(f"{name}: {key}: unknown key for a task, expected protocol or head_options")
    protocol = settings.get("protocol", {})
    given = {"base": protocol} if isinstance(protocol, str) else protocol
    options = settings.get("head_options", {})
    finetuning = build(Finetuning, {"protocol": given, "head_options": options, "tasks": {name: {}}}, name)
    own, project = task.settings(name), _project()
    resolved = resolve_protocol(finetuning, name, project, name, own.metrics)
    return task_settings(own, head_of_task(finetuning, own.head), resolved)


def _here(project: Project, block: SuiteVariant | Variant | ReadingTableFile, data: Any) -> Any:
    """Return the data of a suite, a task or a table of reading times: the caller's `data` or, if `data` is None, the
    path in config.yaml.

    `block` names the key in config.yaml under which the path is listed. Return None if config.yaml has no path for the
    data. Raises ConfigError if no file exists at the path.
    """
    if data is not None:
        return data
    found = project.config.data.get(block.data) if isinstance(block.data, str) else None
    path = None if found is None else found.path
    if not isinstance(path, str):
        return None
    place = project.folder.parent / Path(path).expanduser()
    if not place.exists():
        raise ConfigError(
            f"data: got none, and data.{block.data}.path in config.yaml is {path}, which does not exist; pass the "
            "file, folder or archive with the data"
        )
    return place


def stand_in(opened: Pretrained | Checkpoints) -> Manifest:
    """Return a manifest of the opened model, in memory. The functions that convert scores to rows read the settings in
    this manifest.

    The settings of a model with a Hatchery tokenizer contain the model's objective, if it is known. For a model with a
    tokenizer of `transformers`, they are the settings with which the model was opened. For checkpoints of a training,
    they are empty.
    """
    if isinstance(opened, Checkpoints):
        return Manifest(Path(opened.where), "pretrain", {}, {}, [], {}, "")
    if not isinstance(opened, ModelOfOthers):
        its = {} if opened.objective is None else {"objective": plain(dumped_values(opened.objective))}
        return Manifest(Path(opened.where), "pretrain", its, {}, [], {}, "")
    return Manifest(Path(opened.where), IMPORT, plain(dumped_values(opened.settings)), {}, [], {}, "")


def _result(kind: str, name: str, model: str, trained: Manifest, answer: Answer) -> EvaluationResult:
    scores, record = answer.scores, evaluations()[kind]
    settings = plain(dumped_values(answer.settings))
    made = Manifest(Path(name), kind, settings, {}, [], dict(scores.facts), "")
    rows = [*record.rows(Evaluated(made, trained, name, scores=scores))]
    frame = frame_of_rows(record.together(rows))
    return EvaluationResult(
        model=model,
        name=name,
        rows=frame,
        summary=summary_of(frame),
        tables={name: scores.frame(name) for name in scores.tables},
        texts=scores.texts,
        facts=scores.facts,
    )

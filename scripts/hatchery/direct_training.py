"""`hatchery.train`: train a tokenizer and a language model on texts, without an experiment.

The training runs the same code as the workflow's stages, so its losses equal the losses of a workflow run with equal
settings. Wrong settings raise the same errors. Finished stages are reused, and an interrupted training continues from
its last checkpoint.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
from safetensors.torch import load_file
from torch import nn

from hatchery.artifacts.atomic import atomic_path, write_text
from hatchery.artifacts.manifests import MANIFEST, is_made_from, read_manifest
from hatchery.artifacts.yaml_files import read_yaml
from hatchery.corpora.corpus_writer import OneDocumentError
from hatchery.corpora.raw_files import LONGEST
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.corpora.word_counting import BETWEEN_WHITE_SPACE, WordCounting
from hatchery.errors import ConfigError
from hatchery.evaluation.asked_model import AskedModel
from hatchery.evaluation.opening import open_model
from hatchery.experiment.kinds import FILES, FOLDERS
from hatchery.modeling.store import WEIGHTS_FILE
from hatchery.numerics import kept_settings
from hatchery.raw.registration import register_source
from hatchery.runner import Job, inputs_of, run_stage
from hatchery.settings.base import DeviceName
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import alternatives
from hatchery.shipped import shipped_config
from hatchery.stage import record_of
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.training.inputs import Inputs
from hatchery.training.interruption import TrainingInterrupted
from hatchery.training.own_model import MakeModule, described, own_model
from hatchery.training.run_parts import Given
from hatchery.training.settings import PretrainingSettings, pretrain_settings
from hatchery.training.stages.pretrain import pretrain, training_settings
from hatchery.training.start_settings import ModelChoice
from hatchery.training.telemetry import METRICS_FILE
from hatchery.training.train_and_export import train_and_export
from hatchery.training.watchers import Watcher
from hatchery.typed import keys_of, validated

Texts = str | Path | Iterable[str]
"""A file or folder of texts, the folder of a corpus that was converted by Hatchery, or texts in memory."""
Block = str | Path | Mapping[str, Any]
"""A section of the configuration: a name in the configuration shipped with the library, a YAML file, or a mapping of
the keys of such a file.
"""
TOKENIZER: Mapping[str, Any] = {"kind": "wordpiece", "vocabulary_size": 4096, "allow_smaller": True}
"""Settings of the default tokenizer. The vocabulary size is a maximum; tokenizers of short texts have fewer entries."""
PARTS = "training"
"""Name of the folder, inside the folder of the model, with text, tokenizer, tokens and checkpoints of the training."""
NAME = "texts"
CORPUS_STAGES = ("convert_corpus", "sample_corpus", "group_sequences")


@dataclass(frozen=True)
class Training:
    """A finished training, which `hatchery.model` and `hatchery.evaluate` accept as a model."""

    folder: Path
    module: nn.Module | None = None
    """Module with trained weights, if the caller passed a module or a function that creates one; otherwise None."""

    def __fspath__(self) -> str:
        return str(self.folder)

    @cached_property
    def model(self) -> AskedModel:
        """The trained model, for queries such as filling gaps. If the model is a user's module, the module is set to
        evaluation mode.
        """
        return AskedModel(open_model(*self.opened_as()))

    def opened_as(self, tokenizer: Any = None) -> tuple[Path | nn.Module, Any]:
        """Return the arguments (model, tokenizer) for `open_model`.

        The model is the caller's module, if there is one; otherwise, the model is the folder of the training.
        """
        return (self.folder, tokenizer) if self.module is None else (self.module, tokenizer or self.folder)

    @cached_property
    def curve(self) -> pl.DataFrame:
        """Table with one row per step: `step`, `tokens`, `words`, `loss` (nats), `learning_rate`, and development
        scores.
        """
        text = (self.folder / METRICS_FILE).read_text(encoding="utf-8")
        return pl.DataFrame([json.loads(line) for line in text.splitlines()], infer_schema_length=None)


def train(
    texts: Texts,
    into: str | Path,
    model: Block | nn.Module | MakeModule = "ltg_mini",
    *,
    tokenizer: Block = TOKENIZER,
    corpus: Mapping[str, Any] | None = None,
    batch_size: int = 32,
    seed: int = 42,
    device: DeviceName = "auto",
    runtime: Mapping[str, Any] | None = None,
    watchers: Sequence[Watcher] = (),
    **settings: Any,
) -> Training:
    """Train a tokenizer and a language model on texts, and write the model to the folder `into`.

    `texts` is a file or folder (docs/corpora.md lists the formats), the folder of a converted corpus, or a list of
    texts, each of which is a document. A file, or a single text, is divided into documents. If there is only one
    document, or only copies of one document, no development text is held out, and a line on standard error reports
    this. If `corpus` contains `split`, CorpusError is raised instead.

    `model` is a name in `config/models/`, or a YAML file, or a mapping of the keys of such a file. `model` may also be
    your own module, or a function that returns a module for a vocabulary size (`training.own_model` describes the
    interface). `tokenizer` is a name in `config/tokenizers/`, or a YAML file, or a mapping of the keys of such a file,
    or the folder of a trained tokenizer or model. `corpus` contains keys of a corpus file, such as `split`, and
    `options` of the reader `plain_text`. `settings` are keys of `pretraining` (docs/pretraining.md): `steps` or
    `budget`, `objective`, `optimizer` and so on. `runtime` contains keys of `compute`. `watchers` observe the training
    (docs/extending.md).

    Ctrl-C saves a checkpoint and raises KeyboardInterrupt; the same call then continues the training. A call with other
    settings replaces the model. Raises ConfigError, which names the key and the most similar name, for wrong settings.
    Raises ConfigError, which states the index of the value, for a value in `texts` that is not text. Raises
    TrainingError if the training diverges. All errors are HatcheryErrors with a message of one line.
    """
    folder = _checked_folder(Path(into).expanduser())
    pretraining = validated(PretrainingSettings, {"batch_size": batch_size, **settings}, "train")
    own = None if isinstance(model, str | Path | Mapping) else model
    if isinstance(model, str | Path | Mapping):
        architecture = keys_of(_block("model", model, {}), "description")
    else:
        architecture = described(model)
    parts = folder / PARTS
    made, counting = _corpus(texts, parts, dict(corpus or {}))
    tokenizer_manifest, units = _tokenizer(tokenizer, made, parts)
    blocks = SimpleNamespace(
        tokenizer=lambda _: SimpleNamespace(encoded_units=units),
        corpus=lambda _: SimpleNamespace(word_counting=counting),
    )
    tokens = _made(
        encode_corpus, _settings(encode_corpus, blocks, corpus=NAME, tokenizer=NAME), parts / "tokens" / MANIFEST,
        corpus=made, tokenizer=tokenizer_manifest,
    )  # fmt: skip
    initial = None
    if (start := pretraining.initialise_from) is not None:
        if start.path is ABSENT:
            raise ConfigError("train: initialise_from: got a run, expected `path: <folder of a model>`")
        initial = Path(start.path).expanduser().resolve() / MANIFEST
    teachers = (
        pretraining.distillation.teachers if pretraining.distillation and pretraining.learns_from_teachers else ()
    )
    inputs = Inputs(
        tokens,
        tokenizer_manifest,
        initial,
        teachers=_manifests(teachers, "distillation.teachers"),
        members=_manifests(pretraining.ensemble, "ensemble"),
        order_model=_order_model(pretraining),
        order_corpus=made if pretraining.order is not None and pretraining.order.by == "column" else None,
    )
    body = {**training_settings(pretraining), "model": architecture, "seed": seed}
    chosen = json.loads(record_of(pretrain).canonical(body))
    given = Given(own, tuple(watchers))
    with kept_settings():
        try:
            job = Job(chosen, inputs.by_name, folder / MANIFEST)
            options = {"device": device, **(runtime or {})}
            train_and_export(job, pretrain_settings(chosen), options, inputs, parts / "checkpoints", folder.name, given)
        except TrainingInterrupted as interruption:
            raise KeyboardInterrupt(str(interruption)) from None
    return Training(folder, None if own is None else _trained_module(own, folder, tokens))


def _order_model(pretraining: PretrainingSettings) -> Path | None:
    """Return the manifest of the model whose loss determines the order of the training text; None if the order depends
    on no model.

    Raises ConfigError for the setting `order.words`, which only an experiment can use.
    """
    order = pretraining.order
    if order is not None and order.words is not ABSENT:
        raise ConfigError("train: order.words: got a table, which only an experiment can use; use `by: loss`")
    found = _manifests([] if order is None or order.model is None else [order.model], "order.model")
    return found[0] if found else None


def _manifests(models: Sequence[ModelChoice], key: str) -> list[Path]:
    """Return the paths of the manifests of finished models.

    Raises ConfigError, which names `key`, if a model is a run of an experiment instead of a folder.
    """
    for number, model in enumerate(models):
        if model.path is ABSENT:
            raise ConfigError(
                f"train: {key}[{number}]: got a run of an experiment, expected `path`, the folder of a model"
            )
    return [Path(model.path).expanduser().resolve() / MANIFEST for model in models]


def _trained_module(model: nn.Module | MakeModule, folder: Path, tokens: Path) -> nn.Module:
    """Return the caller's module on the CPU, with the trained weights from `folder`."""
    own = own_model(model, int(read_manifest(tokens).measures["vocabulary_size"]))
    own.load_state_dict({f"module.{name}": tensor for name, tensor in load_file(folder / WEIGHTS_FILE).items()})
    return own.module


def _checked_folder(folder: Path) -> Path:
    """Return the absolute path of `folder`. Raises ConfigError if the folder contains files, but is not the folder of a
    training.
    """
    folder = folder.resolve()
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: got a file, expected a folder for the model")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / PARTS).is_dir():
        raise ConfigError(
            f"{folder}: contains other files, expected a new folder, or the folder of an earlier training"
        )
    return folder


def _block(kind: str, value: Block, more: Mapping[str, Any], without: str = "") -> Any:
    """Return a section of the configuration as an object of its settings class.

    `kind` is the kind of the section (model, tokenizer, ...). `value` is a name, a YAML file, or a mapping of keys.
    `more` contains keys to add. `without` names a key that is ignored if the file contains this key.
    """
    if isinstance(value, Mapping):
        return validated(FILES[kind], {**value, **more}, f"train: {kind}")
    path, known = Path(value), shipped_config() / FOLDERS[kind]
    if path.suffix not in (".yaml", ".yml"):
        path = known / f"{value}.yaml"
        if not path.is_file():
            names = sorted(each.stem for each in known.glob("*.yaml"))
            raise ConfigError(f"train: {kind}: got {str(value)!r}{alternatives(str(value), names)}")
    values = {key: each for key, each in read_yaml(path).items() if key != without}
    return validated(FILES[kind], {**values, **more}, str(path))


def _settings(function: Callable[..., None], blocks: Any, **names: str) -> Mapping[str, Any]:
    """Return the settings of the stage whose function is `function`, as JSON values. `blocks` has the methods of
    `Project` that return the sections of the configuration, such as `corpus`. `names` are the values of the job's
    wildcards.
    """
    record = record_of(function)
    return json.loads(record.canonical_settings(blocks, **names))


def _made(function: Callable[..., None], settings: Mapping[str, Any], output: Path, **given: Any) -> Path:
    """Return `output`, the path of a stage's result. Run the stage first, unless the file exists and was made with
    equal settings and inputs.
    """
    if not is_made_from(output, settings, Job(settings, inputs_of(function, given), output).digests):
        run_stage(function, settings, output, **given)
    return output


def _corpus(texts: Texts, parts: Path, keys: dict[str, Any]) -> tuple[Path, WordCounting]:
    """Convert `texts` to a corpus, unless it is the folder of a converted corpus; return the corpus's manifest and the
    rule by which its words are counted."""
    if isinstance(texts, str | Path):
        root = Path(texts).expanduser()
        if not root.exists():
            raise ConfigError(
                f"texts: got {str(texts)!r}, expected a file or folder; to pass a text itself, put it into a list"
            )
        manifest = root if root.name == MANIFEST else root / MANIFEST
        if manifest.is_file() and read_manifest(manifest).stage in CORPUS_STAGES:
            if keys:
                raise ConfigError(f"corpus: got {', '.join(keys)}, expected no keys for the converted corpus {root}")
            return manifest.resolve(), BETWEEN_WHITE_SPACE
        root = root.resolve()
    else:
        root = _written(texts, parts)
    source = parts / f"{NAME}.json"
    source.parent.mkdir(parents=True, exist_ok=True)
    register_source(NAME, root, source)
    options = keys.pop("options", {})
    sources = [{"name": NAME, "data": NAME, "reader": "plain_text", "options": options}]

    def converted(**more: Any) -> tuple[Path, WordCounting]:
        block = validated(FILES["corpus"], {**keys, **more, "sources": sources}, "train: corpus")
        chosen = _settings(convert_corpus, SimpleNamespace(corpus=lambda _: block), corpus=NAME)
        made = _made(convert_corpus, chosen, parts / "corpus" / MANIFEST, source={NAME: source})
        return made, block.word_counting

    try:
        return converted()
    except OneDocumentError:
        if "split" in keys:
            raise
        print(
            "texts: got one document, or copies of one document, so no text is held out for a development loss. "
            f"Pass several different texts, or one text of several lines and more than {LONGEST:,} bytes",
            file=sys.stderr,
        )
        return converted(split={"development_fraction": 0.0})


def _written(texts: Iterable[str], folder: Path) -> Path:
    """Write texts to a file in `folder`, and return the path of the file.

    Several texts are written as JSON lines. A single text is written as plain text, so that it is divided into
    documents. Raises ConfigError, which states the index of the text, for a value that is not text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "texts.jsonl"
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8") as file:
        number, only = 0, ""
        for number, text in enumerate(texts, 1):
            if not isinstance(text, str):
                raise ConfigError(f"texts: text {number:,}: got {text!r} of type {type(text).__name__}, expected text")
            if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
                raise ConfigError(f"texts: text {number:,} contains a lone surrogate, expected valid Unicode text")
            only = text if number == 1 else ""
            file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
        if not number:
            raise ConfigError("texts: got no text, expected at least one")
    if number > 1:
        return path
    path.unlink()
    write_text(path.with_suffix(".txt"), only)
    return path.with_suffix(".txt")


def _tokenizer(tokenizer: Block, corpus: Path, parts: Path) -> tuple[Path, str]:
    """Return the manifest of the tokenizer, and the units of text (such as sentences) that are encoded separately."""
    if not isinstance(tokenizer, Mapping) and (Path(tokenizer).expanduser() / MANIFEST).is_file():
        return (Path(tokenizer).expanduser() / MANIFEST).resolve(), "sentences"
    block = _block("tokenizer", tokenizer, {"corpus": NAME}, without="corpora")
    output, blocks = parts / "tokenizer" / MANIFEST, SimpleNamespace(tokenizer=lambda _: block)
    chosen = _settings(train_tokenizer, blocks, tokenizer=NAME)
    return _made(train_tokenizer, chosen, output, corpus=[corpus]), block.encoded_units

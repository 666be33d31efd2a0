"""Settings of one task: the files of its examples (rows), the model inputs made from the rows, and its metrics.

A task is one file in `config/tasks/`. These classes hold the keys of the file, with default values for missing keys.
Impossible values raise an error before any data is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import MaxLen, MinLen

from hatchery.evaluation.metrics import METRICS
from hatchery.evaluation.ways_of_scoring import Edition
from hatchery.folders import names_in_folder
from hatchery.settings.base import (
    CompilationChoice,
    Count,
    DeviceName,
    Natural,
    NonNegative,
    Positive,
    Range,
    ReadingName,
    RefusedError,
    Settings,
    Share,
    ShareBelowOne,
    omitted_at_default,
    require,
    shortened,
)
from hatchery.settings.fields import BlockName, Reference, Unique, VocabularyName

LabelValue = str | int | bool | float

Format = Literal["rows", "labelled_lines", "rte_xml", "jiant", "conllu", "conll2012", "treebanks"]
Normalisation = Literal["none", "ltg", "ltg_detokenised"]
TransferRule = Literal["most_probable", "summed_probabilities"]
HeadKind = Literal[
    "sequence_classification",
    "regression",
    "multiple_choice",
    "marked_words_classification",
    "token_classification",
    "extractive_span",
    "span_classification",
    "word_classification",
]
SPAN_HEADS: tuple[HeadKind, ...] = ("span_classification", "word_classification")
"""Heads for sentences with labelled spans."""
if TYPE_CHECKING:
    LayoutName = str
    MetricName = str
else:
    LayoutName = Literal[names_in_folder(str(Path(__file__).with_name("layouts") / "__init__.py"))]
    MetricName = Literal[METRICS]
Files = str | Annotated[tuple[str, ...], MinLen(1)]


@dataclass(frozen=True)
class HeadSettings(Settings):
    """Kind and options of a task's output head; `hatchery.modeling.heads.registry` lists the kinds."""

    kind: HeadKind = "sequence_classification"
    """Name of the head in the registry of heads."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the head; see scripts/hatchery/modeling/heads/registry.py."""


@dataclass(frozen=True)
class VocabularyFilter(Settings):
    """A filter that drops rows with words outside a vocabulary (docs/papers/reduced-vocabulary.md, "Filtered GLUE")."""

    fields: Annotated[tuple[str, ...], MinLen(1)]
    """Fields whose texts are checked. For QNLI, the field `question` is not listed, as in the paper."""
    reading: ReadingName = "corrected"
    """Method of comparing words with the vocabulary: `as_published` reproduces the authors' code, `corrected` fixes the
    errors of this code.
    """


@dataclass(frozen=True, kw_only=True)
class NamedVocabularyFilter(VocabularyFilter):
    """A filter that drops rows with words outside the vocabulary called `name` (the reduced-vocabulary study)."""

    name: VocabularyName
    """Name of the vocabulary."""


@dataclass(frozen=True)
class TransferSettings(Settings):
    """Mapping from the classes of a model that was fine-tuned on another task to the labels of this task (HANS with
    models fine-tuned on MNLI).
    """

    labels: Annotated[dict[str, Annotated[tuple[LabelValue, ...], MinLen(1)]], MinLen(2)]
    """For each label of this task, the labels of the other task that are mapped to it."""
    rule: TransferRule = "most_probable"
    """Rule that converts the probabilities of the classes to a label. `most_probable`: the label to which the most
    probable class is mapped. `summed_probabilities`: the label whose classes have the largest sum of probabilities.
    """


@dataclass(frozen=True, kw_only=True)
class TaskKeys(Settings):
    """Keys of a task: its rows, the model inputs made from the rows, its head and its metrics."""

    suite: BlockName = "finetuning"
    """Suite under which the results of the task are listed."""
    format: Format
    """File format. `rows`: JSON lines, Parquet, CSV or TSV. `labelled_lines`: text files with one text per line; the
    label of a file is its key in `files`. `rte_xml`: XML files of the RTE challenges. `jiant`, `conllu` and `conll2012`
    (OntoNotes): formats of edge probing. `treebanks`: CoNLL-U files of several languages, which are pooled and divided
    into new splits.
    """
    layout: LayoutName = "segments"
    """Conversion of a row to model inputs. `segments` is for any task; every other layout is for the SuperGLUE task of
    the same name.
    """
    files: Annotated[dict[str, Files], MinLen(1)]
    """Files by split: `train`, `validation` and other splits on which models are scored. The files of a split are a
    file name, a pattern or a list. A task that only scores models fine-tuned on other tasks (HANS) has no split
    `train`. With the format `labelled_lines`, the keys are labels; with the format `treebanks`, the keys are languages.
    """
    columns: tuple[str, ...] = ()
    """Column names of .tsv and .txt files without a header."""
    fields: Annotated[tuple[str, ...], MaxLen(3)] = ()
    """One to three text fields, or templates such as "Question: {question}"."""
    label_field: str = "label"
    """Field of the label; dots select a field of an object (`idx.question`). With the formats `conllu` and `treebanks`:
    `XPOS`, `UPOS` or `DEPREL`. With the format `conll2012`: `pos`, `ner`, `srl` or `coref`.
    """
    labels: Annotated[tuple[LabelValue, ...], Unique()] = ()
    """Labels in the order of their ids; the second label is the positive class. Empty for tasks whose labels are
    numbers or choices, and for tasks whose labels are collected from the training rows.
    """
    sorted_labels: bool = omitted_at_default(False)
    """With `format: rows` and without `labels`: the labels are the distinct labels of the training rows, sorted as
    texts.
    """
    label_values: dict[str, LabelValue] = field(default_factory=dict)
    """Mapping from spellings of labels in the files to the entries of `labels`."""
    head: HeadSettings = field(default_factory=HeadSettings)
    """Output head, which computes the task's predictions from the hidden states of the model."""
    metrics: Annotated[tuple[MetricName, ...], MinLen(1), Unique()]
    """Metrics of the task; the first metric is the main metric. Definitions: scripts/hatchery/evaluation/metrics/."""
    scored_rows: dict[str, LabelValue] = field(default_factory=dict)
    """Mapping from fields to values. Only rows with these values are scored (in MSGS, the rows with `condition: test`);
    all rows are predicted.
    """
    group_fields: tuple[str, ...] = ()
    """Fields that identify groups of rows. A metric evaluates the rows of a group together."""
    facts: tuple[str, ...] = ()
    """Fields by which results are divided into subsets (HANS: heuristic, subcase)."""
    normalisation: Normalisation = "none"
    """Text normalisation of LTG-BERT; `ltg_detokenised` also joins the tokens of tokenised texts to running text."""
    vocabulary: VocabularyFilter | None = None
    """Vocabulary filter: rows with words outside the vocabulary are dropped (the reduced-vocabulary study). `null`
    keeps all rows.
    """
    transfer: TransferSettings | None = None
    """For a task that is scored with a model fine-tuned on another task (HANS): for each label of this task, the labels
    of the other task that are mapped to it.
    """
    expected_rows: dict[str, Count] = field(default_factory=dict)
    """Number of rows that each split of the published files contains, before filter and limits; files with another
    number of rows raise an error. In MultiRC, each answer is a row; in ReCoRD, each candidate entity of a query.
    """
    train_limit: Annotated[int, Range(ge=2)] | None = None
    """Maximum number of training rows, drawn with `split_seed`; `null` keeps all rows."""
    validation_limit: Count | None = None
    """Maximum number of rows in a scored set; `null` keeps all rows."""
    split_seed: Natural = 0
    """Random seed for drawing limited rows, and for drawing the validation rows if the files have no validation split.
    This seed does not depend on the fine-tuning seed.
    """
    validation_fraction: Annotated[float, Range(gt=0, lt=1)] = 0.2
    """Share of the training rows that becomes the validation set, if the files have no validation set."""


@dataclass(frozen=True, kw_only=True)
class TaskSettings(TaskKeys):
    """A labelled task: its keys and its name."""

    name: str
    """Name of the task."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels as text; true and false are spelled as in JSON."""
        return tuple(label_text(label) for label in self.labels)


def label_text(value: LabelValue) -> str:
    """Return a label as text. The label True becomes `true`, so that labels from JSON and from a configuration are
    equal.
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings_of(task: TaskSettings) -> Mapping[str, Any]:
    """Return the settings of a task that determine its rows: all settings except name, suite, head, metrics and
    transfer."""
    left_out = ("name", "suite", "metrics", "head", "transfer")
    return {key: value for key, value in vars(task).items() if key not in left_out}


@dataclass(frozen=True, kw_only=True)
class ProtocolSettings(Settings):
    """Training of a model on a task, and selection of the model state whose scores are reported."""

    epochs: Count = 10
    """Number of passes over the training rows."""
    batch_size: Count = 16
    """Number of examples per optimiser step; in edge probing, number of sentences."""
    gradient_accumulation: Count = 1
    """Number of parts into which a batch is divided to save memory. The parts are computed one after another, and their
    gradients are averaged. Each part has its own padding and dropout.
    """
    learning_rates: Annotated[tuple[Positive, ...], MinLen(1), Unique()] = (7.0e-5,)
    """Peak learning rates of AdamW; each seed is fine-tuned with each learning rate (MSGS: three rates)."""
    head_learning_rate: Positive | None = None
    """Peak learning rate of parameters that were not pretrained; `null` uses the learning rate of the encoder
    (LTG-BERT's code: 1e-3).
    """
    warmup_fraction: Share = 0.01
    """Share of the steps in which the learning rate rises to its peak."""
    schedule: Literal["cosine", "linear", "linear_as_published", "constant"] = "cosine"
    """Decay of the learning rate after its peak. `linear_as_published` also decays during the warm-up."""
    final_fraction: Share = 0.0
    """Final learning rate as a share of the peak learning rate, for the schedules `cosine` and `linear`."""
    weight_decay: NonNegative = 0.1
    """Coefficient of decoupled weight decay."""
    decay: Literal["matrices", "weights", "all"] = "matrices"
    """Parameters to which weight decay is applied. `matrices`: weight matrices. `weights`: all parameters except biases
    and norms, including embeddings. `all`: all parameters.
    """
    beta1: ShareBelowOne = 0.9
    """Decay rate of the running mean of the gradients."""
    beta2: ShareBelowOne = 0.999
    """Decay rate of the running mean of the squared gradients."""
    epsilon: Positive = 1.0e-8
    """Number added to the square root of the mean squared gradient, for numerical stability."""
    max_gradient_norm: Positive | None = 1.0
    """Global L2 norm to which gradients are clipped; `null` disables clipping (ELC-BERT's paper mentions no clipping).
    """
    dropout: ShareBelowOne = 0.1
    """Dropout probability of the head and, with `edition: 2023`, of an encoder that is not frozen."""
    max_length: Annotated[int, Range(ge=8)] = 128
    """Maximum number of tokens in an input, special tokens included. Longer inputs are truncated at the end of their
    longest segment; in edge probing, longer sentences are dropped."""
    drop_incomplete_batch: bool = False
    """Skip the last batch of an epoch if it is not full."""
    selection: Literal["held_out", "scored", "last"] = "held_out"
    """Rows on which the reported state of the model is selected. `held_out`: training rows that are held out, drawn
    separately for each seed. `scored`: the scored rows, as in the official pipeline of BabyLM 2023, which gives
    optimistic scores. `last`: no selection; the last state is reported.
    """
    development_fraction: ShareBelowOne = 0.1
    """Share of the training rows that is held out if `selection` is `held_out`."""
    # A training that ends before the first evaluation keeps its last state (docs/papers/babylm-evaluation.md, "Official
    # fine-tuning").
    evaluation_interval_steps: Count | None = None
    """Number of steps between two evaluations; `null` evaluates after every epoch."""
    patience_evaluations: Count | None = 3
    """Number of consecutive evaluations without improvement after which training stops; `null` never stops early."""
    minimum_improvement: NonNegative = 0.0
    """Increase of the selection metric that an evaluation must exceed to count as an improvement in
    `patience_evaluations`.
    """
    selection_metric: str | None = None
    """Metric by which the reported state is selected; `null` uses the task's main metric."""
    seeds: Annotated[tuple[Natural, ...], MinLen(1), Unique()] = (12, 642, 369, 1267, 2395)
    """Random seeds; each seed is a separate fine-tuning of the pretrained model."""
    edition: Edition = 2023
    """Year of BabyLM whose fine-tuning is reproduced. Four rules apply since `2025`. The encoder keeps the dropout of
    its pretraining. External tokenizers add only the special tokens of their own template to a text, and no token
    types. Scored rows are evaluated in file order, in batches of 64. Unless `track` is set, predictions.json is written
    with the predictions of the first seed and learning rate, in the format of BabyLM's server, for tasks with classes
    or choices. With `2026` and without `track`, padding is added before the texts instead of after them.
    """
    track: Literal["multilingual"] | None = omitted_at_default(None)
    """Rules of a track; only for the edition 2026. The value `multilingual` applies the rules of the multilingual
    track: Padding is added after the texts, and the leaderboard file contains accuracies and predicted labels.
    """
    official: bool = omitted_at_default(False)
    """With `track: multilingual`: reproduce two errors of the official trainer. The last incomplete batch of 8
    validation rows is not scored, and the state after the last epoch is scored, not the state after the best epoch.
    `false` scores the state that `selection` chooses, on all rows.
    """
    output_bias: Literal["zero", "prior"] = "zero"
    """Initial bias of the output layer. `zero`: 0. `prior`: for classes, the logarithm of each class's smoothed share
    among the training rows; for independent labels, the logit of each label's smoothed share; for regression, the mean
    of the training labels. Multiple choice has no prior.
    """

    @property
    def has_template(self) -> bool:
        """True for BabyLM's editions since 2025. In these editions, the special tokens that an external model reads
        with a text are exactly those of the template in its tokenizer's file. The stage `finetune` also writes
        predictions.json for the leaderboard under three conditions: this property is true, the task has classes or
        choices, and `track` is not set.
        """
        return self.edition != 2023

    def __post_init__(self) -> None:
        fits = self.track is None or self.edition == 2026
        require(fits, "track", self.track, "null unless the edition is 2026")
        require(self.track is not None or not self.official, "official", self.official, "false without a track")


@dataclass(frozen=True, kw_only=True)
class ProtocolChoice(ProtocolSettings):
    """Settings of a fine-tuning protocol. Experiments, their tasks and named protocols list only the keys whose
    settings differ from these defaults.
    """

    base: Annotated[str, Reference("protocol", inherited=True)] | None = None
    """Named protocol (config/protocols/) from which the settings are inherited; `null` inherits the defaults."""
    reported_metric: str | None = None
    """Metric that tables show for the task; `null` uses the task's first metric."""


@dataclass(frozen=True)
class FinetuneSettings(Settings):
    """Settings of fine-tuning: a task, a protocol, and transfer tasks (HANS). The fine-tuned models are scored on
    transfer tasks without training on them.
    """

    task: TaskSettings
    protocol: ProtocolSettings
    transfer: tuple[TaskSettings, ...] = ()

    def __post_init__(self) -> None:
        share = self.protocol.development_fraction
        if (self.protocol.selection == "held_out") != (share > 0):
            raise RefusedError(
                "protocol.development_fraction",
                f"got {shortened(share)}, expected more than 0 with selection held_out, and 0 with other selections",
            )


@dataclass(frozen=True)
class FinetuneRuntime(Settings):
    """Runtime settings of fine-tuning. If one of these settings changes, no result is computed again."""

    device: DeviceName = "auto"
    """Device on which models are trained and evaluated."""
    threads: Count | None = None
    """Number of CPU threads of PyTorch; `null` keeps PyTorch's default."""
    compile: CompilationChoice = "auto"
    """Use torch.compile for the layers in training; `auto` compiles on a GPU if there are many steps."""
    frozen_layers_mib: Natural = 2048
    """Memory in MiB for caching the hidden states of a frozen encoder. Cached states are computed once instead of in
    every epoch; 0 caches no states.
    """

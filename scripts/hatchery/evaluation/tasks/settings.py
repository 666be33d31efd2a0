"""Settings of one task: the sources of its rows, their inputs, and its metrics.

A task is one file in `config/tasks/`; these are its keys after defaults. Impossible values are refused before anything
is read.
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
"""Heads of sentences with labelled spans."""
if TYPE_CHECKING:
    LayoutName = str
    MetricName = str
else:
    LayoutName = Literal[names_in_folder(str(Path(__file__).with_name("layouts") / "__init__.py"))]
    MetricName = Literal[METRICS]
Files = str | Annotated[tuple[str, ...], MinLen(1)]


@dataclass(frozen=True)
class HeadSettings(Settings):
    """A head of `hatchery.modeling.heads.registry` with its options."""

    kind: HeadKind = "sequence_classification"
    """What answers."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the head (scripts/hatchery/modeling/heads/registry.py)."""


@dataclass(frozen=True)
class VocabularyFilter(Settings):
    """Rows are kept only if their words lie in a vocabulary (docs/papers/reduced-vocabulary.md, "Filtered GLUE")."""

    fields: Annotated[tuple[str, ...], MinLen(1)]
    """The fields whose texts are checked, joined by a blank; QNLI's question is not among them."""
    reading: ReadingName = "corrected"
    """How words are compared with the vocabulary."""


@dataclass(frozen=True, kw_only=True)
class NamedVocabularyFilter(VocabularyFilter):
    """Keep only rows whose words lie in a vocabulary (the reduced-vocabulary study)."""

    name: VocabularyName
    """The vocabulary."""


@dataclass(frozen=True)
class TransferSettings(Settings):
    """How the classes of another task's model become the labels of this one (HANS on MNLI models)."""

    labels: Annotated[dict[str, Annotated[tuple[LabelValue, ...], MinLen(1)]], MinLen(2)]
    """For every label of this task, the labels of the other task that count as it."""
    rule: TransferRule = "most_probable"
    """most_probable takes the most probable class and maps it; summed_probabilities compares sums of probabilities."""


@dataclass(frozen=True, kw_only=True)
class TaskKeys(Settings):
    """The rows of a task, their inputs, its head and its metrics."""

    suite: BlockName = "finetuning"
    """Under which heading the results stand."""
    format: Format
    """rows are JSON lines, Parquet or TSV; jiant, conllu and conll2012 (OntoNotes) are those of edge probing; treebanks
    are CoNLL-U files of several languages, pooled and divided anew."""
    layout: LayoutName = "segments"
    """How a row becomes inputs."""
    files: Annotated[dict[str, Files], MinLen(1)]
    """train, validation and further scored sets by name (a file, a pattern or a list), without train in a task that is
    only transferred to; labelled_lines: one entry for each label; treebanks: one entry for each language."""
    columns: tuple[str, ...] = ()
    """Names of the columns of .tsv files that have no header."""
    fields: Annotated[tuple[str, ...], MaxLen(3)] = ()
    """One to three text fields, or templates such as "Question: {question}"."""
    label_field: str = "label"
    """Field of the label; dots reach into nested objects (idx.question); conllu: XPOS, UPOS or DEPREL; conll2012: pos,
    ner, srl or coref."""
    labels: Annotated[tuple[LabelValue, ...], Unique()] = ()
    """In the order of their ids; the second is the positive class. Empty for numbers, choices and label sets taken from
    the training rows."""
    sorted_labels: bool = omitted_at_default(False)
    """Of a task with the format rows and no `labels`: its labels are those of the training rows, sorted as texts."""
    label_values: dict[str, LabelValue] = field(default_factory=dict)
    """Spellings in the files and the labels they stand for."""
    head: HeadSettings = field(default_factory=HeadSettings)
    """What answers."""
    metrics: Annotated[tuple[MetricName, ...], MinLen(1), Unique()]
    """The first one stands for the task. What each is: scripts/hatchery/evaluation/metrics/."""
    scored_rows: dict[str, LabelValue] = field(default_factory=dict)
    """Only rows with these values are scored (MSGS: condition: test); all are predicted."""
    group_fields: tuple[str, ...] = ()
    """Fields that name what is judged together."""
    facts: tuple[str, ...] = ()
    """Fields by which results are broken down (HANS: heuristic, subcase)."""
    normalisation: Normalisation = "none"
    """As LTG-BERT prepared its texts; detokenised for those that are distributed in tokens."""
    vocabulary: VocabularyFilter | None = None
    """Keep only rows whose words lie in a vocabulary (the reduced-vocabulary study)."""
    transfer: TransferSettings | None = None
    """For tasks that are scored with the model of another one (HANS): which of its labels count as each of these."""
    expected_rows: dict[str, Count] = field(default_factory=dict)
    """Rows of the published files by set; another number is an error."""
    train_limit: Annotated[int, Range(ge=2)] | None = None
    """At most so many training rows, drawn with `split_seed`; null keeps all."""
    validation_limit: Count | None = None
    """At most so many rows of a scored set; null keeps all."""
    split_seed: Natural = 0
    """Draws the limits, and the validation rows where the files have no split, the same for every fine-tuning seed."""
    validation_fraction: Annotated[float, Range(gt=0, lt=1)] = 0.2
    """Share of the rows that becomes the validation set, where the files have no split."""


@dataclass(frozen=True, kw_only=True)
class TaskSettings(TaskKeys):
    """One labelled task."""

    name: str
    """Name of the task."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels as text, spelled as in JSON."""
        return tuple(label_text(label) for label in self.labels)


def label_text(value: LabelValue) -> str:
    """Return a label as text: `true`, not `True`, so that labels from JSON and from a configuration are equal."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings_of(task: TaskSettings) -> Mapping[str, Any]:
    """Return the settings that determine a task's rows, without head, metrics and transfer."""
    left_out = ("name", "suite", "metrics", "head", "transfer")
    return {key: value for key, value in vars(task).items() if key not in left_out}


@dataclass(frozen=True, kw_only=True)
class ProtocolSettings(Settings):
    """The training of a model on a task, and the selection of the reported state."""

    epochs: Count = 10
    """Passes through the training rows."""
    batch_size: Count = 16
    """Examples (sentences in edge probing) per optimiser step."""
    gradient_accumulation: Count = 1
    """Parts of a batch that are computed one after the other, for less memory; their gradients are averaged. Each is
    padded by itself and draws its own dropout."""
    learning_rates: Annotated[tuple[Positive, ...], MinLen(1), Unique()] = (7.0e-5,)
    """Peak rates of AdamW; every seed is run with each (MSGS: three)."""
    head_learning_rate: Positive | None = None
    """Peak rate of what was not pretrained; null is that of the encoder (LTG-BERT's code: 1e-3)."""
    warmup_fraction: Share = 0.01
    """Share of the steps in which the rate rises to its peak."""
    schedule: Literal["cosine", "linear", "linear_as_published", "constant"] = "cosine"
    """How it falls from there."""
    final_fraction: Share = 0.0
    """Share of the peak rate at the end."""
    weight_decay: NonNegative = 0.1
    """Decoupled weight decay."""
    decay: Literal["matrices", "weights", "all"] = "matrices"
    """Decay of weight matrices, of all weights but biases and norms (embeddings too), or of all parameters."""
    beta1: ShareBelowOne = 0.9
    """Decay of the mean of the gradients."""
    beta2: ShareBelowOne = 0.999
    """Decay of the mean of their squares."""
    epsilon: Positive = 1.0e-8
    """Added to the root of that mean."""
    max_gradient_norm: Positive | None = 1.0
    """Global L2 norm at which gradients are clipped; null leaves them (ELC-BERT names no clipping)."""
    dropout: ShareBelowOne = 0.1
    """Dropout of the head, and of the encoder unless it is frozen."""
    max_length: Annotated[int, Range(ge=8)] = 128
    """Tokens of an input with its special tokens; longer ones are cut at the end of the longest segment."""
    drop_incomplete_batch: bool = False
    """Leave out the last batch of an epoch when it is not full."""
    selection: Literal["held_out", "scored", "last"] = "held_out"
    """Which rows choose the state that is reported: training rows held out anew for each seed; the scored rows
    themselves (the official pipeline of BabyLM 2023, optimistic); last takes the last state."""
    development_fraction: ShareBelowOne = 0.1
    """Share of the training rows that is held out for the selection."""
    # A run that ends before the first evaluation keeps its last state (docs/papers/babylm-evaluation.md, "Official
    # fine-tuning").
    evaluation_interval_steps: Count | None = None
    """Steps between two evaluations; null evaluates after every epoch."""
    patience_evaluations: Count | None = 3
    """Stop after so many evaluations without improvement; null never stops."""
    minimum_improvement: NonNegative = 0.0
    """What the metric has to rise by to count as an improvement."""
    selection_metric: str | None = None
    """The metric that chooses; null is the one that stands for the task."""
    seeds: Annotated[tuple[Natural, ...], MinLen(1), Unique()] = (12, 642, 369, 1267, 2395)
    """One fine-tuning for each."""
    edition: Edition = 2023
    """The year of BabyLM whose fine-tuning is repeated. Since 2025 the encoder keeps the dropout of its pretraining, a
    tokenizer of others frames texts by its own template alone and numbers none, scored rows are judged in batches of
    64 in the order of the file, and predictions.json has the predictions of the first seed and rate as the server takes
    them. 2026 pads in front of the texts."""
    track: Literal["multilingual"] | None = omitted_at_default(None)
    """In the edition 2026, multilingual has the rules of that track: texts are padded at their end, and the file for
    the leaderboard takes accuracies and predicted labels."""
    official: bool = omitted_at_default(False)
    """In the track multilingual: reproduce two slips of the trainer. Validation rows after the last whole batch of 8
    are not scored, and the last epoch counts, not the best one. By default all rows and the best epoch count."""
    output_bias: Literal["zero", "prior"] = "zero"
    """prior starts the classifier's bias at the logarithm of the class shares of the training rows."""

    @property
    def has_template(self) -> bool:
        """True if a tokenizer of others frames texts by its template alone, and predictions.json is written (since
        2025)."""
        return self.edition != 2023

    def __post_init__(self) -> None:
        fits = self.track is None or self.edition == 2026
        require(fits, "track", self.track, "null unless the edition is 2026")
        require(self.track is not None or not self.official, "official", self.official, "false without a track")


@dataclass(frozen=True, kw_only=True)
class ProtocolChoice(ProtocolSettings):
    """Settings of a protocol; experiments, their tasks and the named protocols state what differs from these."""

    base: Annotated[str, Reference("protocol", inherited=True)] | None = None
    """A named protocol (config/protocols/) whose settings come first."""
    reported_metric: str | None = None
    """The metric that stands for the task in tables; null is its first one."""


@dataclass(frozen=True)
class FinetuneSettings(Settings):
    """A task, a protocol, and the tasks that the fine-tuned models are also scored on (HANS)."""

    task: TaskSettings
    protocol: ProtocolSettings
    transfer: tuple[TaskSettings, ...] = ()

    def __post_init__(self) -> None:
        share = self.protocol.development_fraction
        if (self.protocol.selection == "held_out") != (share > 0):
            raise RefusedError(
                "protocol.development_fraction",
                f"got {shortened(share)}, expected more than 0 with selection held_out, 0 otherwise",
            )


@dataclass(frozen=True)
class FinetuneRuntime(Settings):
    """Runtime settings of fine-tuning; not part of the result's identity."""

    device: DeviceName = "auto"
    """Device of the models."""
    threads: Count | None = None
    """CPU threads of PyTorch; null leaves its choice."""
    compile: CompilationChoice = "auto"
    """torch.compile of the layers in training: auto on a GPU, for many steps."""
    frozen_layers_mib: Natural = 2048
    """Memory for the layers of a frozen encoder, computed once and not in every epoch; 0 computes them every time."""

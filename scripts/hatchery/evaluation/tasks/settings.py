"""What a stage is told about one task: where rows come from, how they become inputs, what is measured.

A task is one file in `config/tasks/`; these are its keys after defaults. Impossible values are refused before
anything is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hatchery.settings.fields import Settings

LabelValue = str | int | bool | float

Format = Literal["rows", "labelled_lines", "rte_xml", "jiant", "conllu"]
Layout = Literal["segments", "copa", "multirc", "record", "wic"]
Normalisation = Literal["none", "ltg", "ltg_detokenised"]
TransferRule = Literal["most_probable", "summed_probabilities"]


@dataclass(frozen=True)
class HeadSettings(Settings):
    """A head of `hatchery.modeling.heads.registry` with its options."""

    kind: str = "sequence_classification"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VocabularyFilter(Settings):
    """Rows are kept only if their words lie in a vocabulary (reduced-vocabulary.md 1.6, column GLUE, and 6.2)."""

    # The fields whose texts are checked, joined by a blank; QNLI's question is not among them.
    fields: tuple[str, ...]
    reading: Literal["as_published", "corrected"] = "corrected"


@dataclass(frozen=True)
class TransferSettings(Settings):
    """How the classes of another task's model become the labels of this one (HANS on MNLI models).

    `labels` maps every label of this task to the labels of the other task that count as it. `most_probable` takes the
    most probable class and maps it; `summed_probabilities` compares the sums of the probabilities.
    """

    labels: dict[str, tuple[LabelValue, ...]]
    rule: TransferRule = "most_probable"


@dataclass(frozen=True)
class TaskSettings(Settings):
    """One labelled task."""

    name: str
    # Under which heading its results stand: glue, babylm_glue, msgs, probing, …
    suite: str
    format: Format
    # rows, rte_xml, jiant, conllu: {"train": name or names, "validation": …, further scored sets by their names};
    # labelled_lines: {label: name or names}. A task that is only transferred to has no "train".
    files: dict[str, str | tuple[str, ...]]
    metrics: tuple[str, ...]
    layout: Layout = "segments"
    # Layout "segments": names of one to three text fields, or templates such as "Question: {question}".
    fields: tuple[str, ...] = ()
    # Dots reach into nested objects (idx.question); conllu: the column (XPOS, UPOS, DEPREL).
    label_field: str = "label"
    # In the order of the outputs; the second one is the positive class of F1. Empty: a number (regression), a choice,
    # or the labels of the training rows, sorted (probing).
    labels: tuple[LabelValue, ...] = ()
    # Spellings in the file that stand for a label: {"0": "not_equivalent"}.
    label_values: dict[str, LabelValue] = field(default_factory=dict)
    head: HeadSettings = field(default_factory=HeadSettings)
    # Rows of scored sets that enter the metrics: those whose fields have these values (MSGS: condition: test).
    scored_rows: dict[str, LabelValue] = field(default_factory=dict)
    # Fields whose values together name what is judged together.
    group_fields: tuple[str, ...] = ()
    # Fields that tables break results down by (HANS: heuristic, subcase).
    facts: tuple[str, ...] = ()
    # Names of the columns of .tsv files without a header.
    columns: tuple[str, ...] = ()
    normalisation: Normalisation = "none"
    vocabulary: VocabularyFilter | None = None
    transfer: TransferSettings | None = None
    # Rows that the published files have, by set; another number ends in an error. Empty: any number.
    expected_rows: dict[str, int] = field(default_factory=dict)
    # At most this many rows, drawn with `split_seed`; null keeps all.
    train_limit: int | None = None
    validation_limit: int | None = None
    # Draws the limits and the validation rows where the files have no split, the same for every fine-tuning seed.
    split_seed: int = 0
    # Share of the rows that becomes the validation (test) set where only training files are given.
    validation_fraction: float = 0.2

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels as text, the way JSON spells them."""
        return tuple(label_text(label) for label in self.labels)


def label_text(value: LabelValue) -> str:
    """A label as text: `true`, not `True`, so that labels from JSON and from a configuration agree."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings_of(task: TaskSettings) -> Mapping[str, Any]:
    """What decides which rows a task has and how they look, without head, metrics and transfer."""
    left_out = ("name", "suite", "metrics", "head", "transfer")
    return {key: value for key, value in vars(task).items() if key not in left_out}

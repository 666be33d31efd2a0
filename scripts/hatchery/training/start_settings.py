"""Settings of the start and the end of a pretraining: an initial model, a prior, a budget, early stopping, an average.

Source of the output bias: "A Natural Bias for Language Generation Models", Sections 3 and 4.1;
docs/papers/natural-bias.md, "Scale of the output matrix". The default is the zero bias of all papers here; values that
exclude each other are refused with the reason.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from hatchery.settings.base import (
    Count,
    Natural,
    NonNegative,
    Positive,
    Range,
    Settings,
    Share,
    ShareBelowOne,
    omitted_at_default,
    refused,
)
from hatchery.settings.fields import ABSENT, CorpusName, NotEmpty, OneOfKeys, ShortNumber

WordCount = Annotated[int, Range(ge=1), ShortNumber()]
"""A number of words: 100000000, or 100M."""
NEARLY = 0.95
"""Smallest share of a budget of words that the epochs must reach: held-out text and cleaning remove a few percent."""
# Keys in which a model and its initial model may differ: they change no tensor's shape or meaning.
FREE_KEYS = ("hidden_dropout_prob", "attention_probs_dropout_prob")


@dataclass(frozen=True)
class InitialModelSettings(Settings):
    """The model that training starts from; which one that is, its manifest among the inputs says."""

    take: Literal["weights", "training"] = "weights"
    """weights: step 0, a new optimiser, the whole schedule. training: go on where that run stopped, with its optimiser,
    its place in the data and its number of steps."""
    step: Count | None = None
    """Which of that run's `milestones` to take; null is the finished model. A run of 0 steps evaluates it as it is."""


@dataclass(frozen=True)
class ModelChoice(Settings):
    """A finished model, by its run in an experiment or by its folder."""

    run: str = ABSENT
    """Name of a run."""
    experiment: str | None = None
    """Whose run; null is this one."""
    seed: Natural | None = None
    """Pretraining seed of that run; null is its only one, or that of this run."""
    path: NotEmpty = ABSENT
    """A folder that scripts/import_checkpoint.py or pretraining wrote, or the name of a `data` entry with its path."""


@dataclass(frozen=True)
class InitialModelChoice(ModelChoice, InitialModelSettings):
    """The model that training starts from, by its name in an experiment or its folder."""


@dataclass(frozen=True)
class EarlyStoppingSettings(Settings):
    """End after so many evaluations in a row that are no new best by more than the minimum: the lowest development
    loss, or the highest BLEU of development text where the objective is translation."""

    patience_evaluations: Count
    """Stop after so many evaluations in a row without improvement."""
    minimum_improvement: NonNegative = 0.0
    """By how much the best has to be bettered to count: nats per labelled token, or points of BLEU."""
    export: Literal["best", "last"] = "best"
    """Weights of the best evaluation (of equal ones the first), or of the last step."""


@dataclass(frozen=True)
class BudgetSettings(OneOfKeys):
    """How much text a model may see, or how long it may train: a run ends with the last step that is within it."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {("words_seen",): "words_seen: 100M", ("minutes",): "minutes: 10"}

    words_seen: WordCount = ABSENT
    """Words, by the `word_count` of the corpus, in the text that the model is shown, repetitions included and those
    that the models saw which it starts from: 100M, or 100000000."""
    epochs: Positive | None = None
    """So many times the words of the text are a limit, too; null sets none."""
    corpus_words: WordCount | None = None
    """A text of more words is refused; null takes any."""
    corpus_bytes: Count | None = None
    """A text of more bytes (UTF-8) is refused; null takes any."""
    minutes: Positive = ABSENT
    """Minutes of training, without evaluation, by the time that some steps take where the run starts. So the number of
    steps, and with it every result, is that of a machine and a moment: the manifest says it as `planned_steps`."""

    @property
    def words(self) -> int | None:
        """The number of words of a budget in words."""
        return None if self.words_seen is ABSENT else self.words_seen


@dataclass(frozen=True)
class WeightAverageSettings(Settings):
    """An average of the weights: by default an exponential one, a copy of the initial weights that is updated after
    every step. `{weights: equal, from_fraction: 0.8}` is stochastic weight averaging; with
    `every_steps` it is the average of late checkpoints."""

    decay: ShareBelowOne = 0.999
    """What is kept of an exponential average in every update; the rest is taken of the weights."""
    keep_raw_weights: bool = False
    """Export the weights of the last step, too, in a folder `raw_weights` beside the model."""
    weights: Literal["exponential", "equal"] = omitted_at_default("exponential")
    """exponential: recent weights count more. equal: the mean of all averaged weights."""
    from_fraction: ShareBelowOne = omitted_at_default(0.0)
    """Share of the steps before the average begins; until then the weights themselves are evaluated."""
    every_steps: Count = omitted_at_default(1)
    """Average the weights after every so many steps, counted back from the last step."""

    def __post_init__(self) -> None:
        if self.weights == "equal" and self.decay != WeightAverageSettings.decay:
            raise refused("decay", self.decay, "no such key with equal weights")

    @property
    def averages_every_step(self) -> bool:
        """True if it is an exponential average of all steps."""
        return self.weights == "exponential" and self.from_fraction == 0 and self.every_steps == 1


@dataclass(frozen=True)
class CurriculumSettings(Settings):
    """The order of the sequences of an epoch by their difficulty."""

    by: Literal["length", "rarity"]
    """length: mean number of tokens in a sentence. rarity: mean surprisal of the tokens by their frequency."""
    first: Literal["easy", "hard"] = "easy"
    """easy: short sentences or frequent tokens come first; hard: the opposite."""
    epochs: Count | None = None
    """So many first epochs are ordered, and later epochs are random; null orders all epochs."""
    spread: NonNegative = 0.1
    """How far a sequence may move from its rank, as a share of the epoch."""


@dataclass(frozen=True)
class OutputBiasSettings(Settings):
    """How the output layer starts. Raises ConfigError for values that exclude each other."""

    kind: Literal["zero", "unigram", "none"] = "zero"
    """Bias 0, unigram for the logarithm of the label frequencies, or none at all; all start from the same matrix."""
    smoothing: NonNegative = 1.0
    """Added to the count of every type."""
    label_smoothing: Share = 0.0
    """If above 0, the share of the uniform distribution that is mixed in, instead of `smoothing`."""
    counts: Literal["labels", "corpus", "larger_corpus"] = "labels"
    """Labels of the run's own examples, all that can be labels in its corpus, or tokens of another, larger corpus."""
    larger_corpus: CorpusName = ABSENT
    """That corpus, which is encoded with the run's tokenizer; its sentences end as targets do."""
    # About 2 million labels at 128 tokens, so that a type with 100 of them is known to 10 %, in seconds to a minute.
    counted_examples: Count | None = 100_000
    """At most so many examples are masked to count labels; null is all."""
    centred: bool = False
    """Whether the mean is subtracted from the log-prior: the same model, a smaller norm."""
    weight_scale: Literal["own", "unit", "unit_uniform", "centred", "frobenius"] | Positive = "own"
    """own keeps the initial matrix; unit or a number s draws s * N(0, 1/d), unit_uniform a uniform distribution of the
    same variance as unit (Appendix A), frobenius is the paper's literal rule; for untied embeddings only."""
    report: bool = False
    """Whether a run with kind zero or none reports its first step too; it has to count labels for that."""

    def __post_init__(self) -> None:
        if self.smoothing + self.label_smoothing <= 0:
            raise refused("smoothing", self.smoothing, "above 0: most labels are rare")
        named = self.larger_corpus is not ABSENT
        if named != (self.counts == "larger_corpus"):
            given = self.larger_corpus if named else None
            raise refused("larger_corpus", given, "a corpus, where counts is larger_corpus, and nothing elsewhere")
        # The paper states its rule for all models, but against a bias of 0 it would leave a matrix of zeros.
        if self.weight_scale in ("centred", "frobenius") and self.kind != "unigram":
            raise refused(
                "weight_scale",
                self.weight_scale,
                f"own, unit or a number: it matches the norm of the bias, and kind {self.kind!r} has none",
            )

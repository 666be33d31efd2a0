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
from hatchery.settings.fields import ABSENT, CorpusName, DataName, NotEmpty, OneOfKeys, ShortNumber

WordCount = Annotated[int, Range(ge=1), ShortNumber()]
"""A number of words: 100000000, or 100M."""
NEARLY = 0.95
"""Smallest share of a budget of words that the epochs must reach: held-out text and cleaning remove a few percent."""
# Keys of the configuration in which a model may differ from its initial model, because they change no tensor's shape or
# meaning.
FREE_KEYS = ("hidden_dropout_prob", "attention_probs_dropout_prob")


@dataclass(frozen=True)
class InitialModelSettings(Settings):
    """The model that training starts from; which one that is, its manifest among the inputs says."""

    take: Literal["weights", "training"] = "weights"
    """weights: start at step 0 with a new optimiser and the whole schedule. training: continue the other run with its
    optimiser, its position in the data and its step count."""
    step: Count | None = None
    """Step of the other run's model, one of its `milestones`; null uses the finished model. A run of 0 steps evaluates
    the model unchanged."""


@dataclass(frozen=True)
class ModelChoice(Settings):
    """Finished model, by its run in an experiment or by its folder."""

    run: str = ABSENT
    """Name of the run."""
    experiment: str | None = None
    """Experiment of the run; null means this experiment."""
    seed: Natural | None = None
    """Pretraining seed of the run; null uses its only seed, or else the seed of the new run."""
    path: NotEmpty = ABSENT
    """Folder written by scripts/import_checkpoint.py or by pretraining, or the name of a `data` entry with its path."""


@dataclass(frozen=True)
class InitialModelChoice(ModelChoice, InitialModelSettings):
    """Model from which training starts, by its name in an experiment or by its folder."""


@dataclass(frozen=True)
class EarlyStoppingSettings(Settings):
    """Stop after a number of evaluations in a row without a new best value that exceeds the minimum improvement. The
    value is the development loss, or BLEU of development text if the objective is translation."""

    patience_evaluations: Count
    """Number of evaluations in a row without improvement after which training stops."""
    minimum_improvement: NonNegative = 0.0
    """Minimum difference from the best value that counts as an improvement: nats per labelled token, or BLEU points."""
    export: Literal["best", "last"] = "best"
    """Exported weights: those of the best evaluation (the first, if several are equal), or those of the last step."""


@dataclass(frozen=True)
class BudgetSettings(OneOfKeys):
    """Maximum amount of text or training time. A run ends with the last step within the budget."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {("words_seen",): "words_seen: 100M", ("minutes",): "minutes: 10"}

    words_seen: WordCount = ABSENT
    """Number of words in the text that the model reads, such as 100M or 100000000. Words are counted by the
    `word_count` of the corpus, including repetitions and the words read by the model from which the run starts."""
    epochs: Positive | None = None
    """Additional limit: maximum number of passes over the words of the text; null sets no limit."""
    corpus_words: WordCount | None = None
    """Maximum number of words in the corpus; a larger corpus is refused. null accepts any size."""
    corpus_bytes: Count | None = None
    """Maximum size of the corpus in bytes of UTF-8; a larger corpus is refused. null accepts any size."""
    minutes: Positive = ABSENT
    """Duration of the training in minutes, without evaluation. The number of steps is calculated from the duration of
    some steps at the start of the run, so all results depend on the machine and its load; the manifest records it as
    `planned_steps`."""

    @property
    def words(self) -> int | None:
        """The number of words of a budget in words."""
        return None if self.words_seen is ABSENT else self.words_seen


@dataclass(frozen=True)
class WeightAverageSettings(Settings):
    """Average of the weights. The default is an exponential average: a copy of the initial weights that is updated
    after every step. `{weights: equal, from_fraction: 0.8}` is stochastic weight averaging; with `every_steps`, it
    averages late checkpoints."""

    decay: ShareBelowOne = 0.999
    """Weight of the previous average in every update of an exponential average; the current weights have the remaining
    weight."""
    keep_raw_weights: bool = False
    """Also export the weights of the last step, in the folder `raw_weights` of the model."""
    weights: Literal["exponential", "equal"] = omitted_at_default("exponential")
    """exponential: recent weights count more. equal: mean of all averaged weights."""
    from_fraction: ShareBelowOne = omitted_at_default(0.0)
    """Share of the steps before averaging begins; until then, the current weights are evaluated."""
    every_steps: Count = omitted_at_default(1)
    """Number of steps between two updates of the average, counted backwards from the last step."""

    def __post_init__(self) -> None:
        if self.weights == "equal" and self.decay != WeightAverageSettings.decay:
            raise refused("decay", self.decay, "no such key with equal weights")

    @property
    def averages_every_step(self) -> bool:
        """True if it is an exponential average of all steps."""
        return self.weights == "exponential" and self.from_fraction == 0 and self.every_steps == 1


@dataclass(frozen=True)
class CurriculumSettings(Settings):
    """Order of the sequences in an epoch by difficulty, or one random order for all epochs."""

    by: Literal["length", "rarity", "first_epoch", "loss", "words"]
    """Measure of difficulty. length: mean number of tokens in a sentence. rarity: mean surprisal of the tokens by their
    frequency. loss: mean loss of the finished model `model`. words: mean value of the words in the table `words`, such
    as their age of acquisition. first_epoch: no difficulty; every epoch has the random order of the first."""
    first: Literal["easy", "hard"] = "easy"
    """Beginning of an epoch. easy: short sentences or frequent tokens come first. hard: the opposite order."""
    epochs: Count | None = None
    """Number of ordered epochs at the start; later epochs are shuffled. null orders all epochs."""
    spread: NonNegative = 0.1
    """Maximum distance by which a sequence is moved from its rank, as a share of the epoch."""
    word_column: NotEmpty = omitted_at_default("word")
    """With by: words: column of the words in the table."""
    value_column: NotEmpty = omitted_at_default("value")
    """With by: words: column of the values in the table; words with low values are easy."""

    def __post_init__(self) -> None:
        if self.by == "first_epoch" and self.first != "easy":
            raise refused("first", self.first, "no such key with by: first_epoch, which measures no difficulty")
        for key, default in (("word_column", "word"), ("value_column", "value")):
            if (value := getattr(self, key)) != default and self.by != "words":
                raise refused(key, value, f"no such key with by: {self.by}; by: words has it")


@dataclass(frozen=True)
class CurriculumChoice(CurriculumSettings):
    """Order of the sequences in an epoch by difficulty, or one random order for all epochs."""

    model: ModelChoice | None = None
    """With by: loss: finished model with the tokenizer and the objective of the run."""
    words: DataName = ABSENT
    """With by: words: raw input with one table (.csv or .tsv) of words and values, an entry under `data` of
    config.yaml."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, given, by in (("model", self.model is not None, "loss"), ("words", self.words is not ABSENT, "words")):
            if given != (self.by == by):
                value = getattr(self, key) if given else None
                raise refused(key, value, f"a value with by: {by}, and no such key with another measure")


@dataclass(frozen=True)
class OutputBiasSettings(Settings):
    """Initial values of the output layer. Raises ConfigError for values that exclude each other."""

    kind: Literal["zero", "unigram", "none"] = "zero"
    """Initial bias: zero, unigram for the logarithm of the label frequencies, or none for a layer without bias. All
    start from the same matrix."""
    smoothing: NonNegative = 1.0
    """Number added to the count of every token type."""
    label_smoothing: Share = 0.0
    """Share of the uniform distribution that is mixed into the frequencies; above 0, it replaces `smoothing`."""
    counts: Literal["labels", "corpus", "larger_corpus"] = "labels"
    """Source of the frequencies. labels: labels of the run's own examples. corpus: all possible labels in the run's
    corpus. larger_corpus: tokens of another, larger corpus."""
    larger_corpus: CorpusName = ABSENT
    """Larger corpus for `counts: larger_corpus`. It is encoded with the run's tokenizer; its sentences end in the same
    way as targets."""
    # The default gives about 2 million labels at 128 tokens per sequence, counted within a minute: the frequency of a
    # type with 100 labels then has a standard error of 10 %.
    counted_examples: Count | None = 100_000
    """Maximum number of examples that are masked to count labels; null uses all examples."""
    centred: bool = False
    """Subtract the mean from the log frequencies: the same model with a smaller norm."""
    weight_scale: Literal["own", "unit", "unit_uniform", "centred", "frobenius"] | Positive = "own"
    """Initial output matrix, for untied embeddings only. own keeps the usual matrix. unit, or a number s, draws from s
    * N(0, 1/d). unit_uniform draws from a uniform distribution with the variance of unit (Appendix A). frobenius is the
    paper's literal rule."""
    report: bool = False
    """Report the first step of runs with kind zero or none, too; this requires counting labels."""

    def __post_init__(self) -> None:
        if self.smoothing + self.label_smoothing <= 0:
            raise refused("smoothing", self.smoothing, "above 0: most labels are rare")
        named = self.larger_corpus is not ABSENT
        if named != (self.counts == "larger_corpus"):
            given = self.larger_corpus if named else None
            raise refused("larger_corpus", given, "a corpus, where counts is larger_corpus, and nothing elsewhere")
        # The paper states its rule for all models, but relative to a bias of 0 the rule would scale the matrix to zero.
        if self.weight_scale in ("centred", "frobenius") and self.kind != "unigram":
            raise refused(
                "weight_scale",
                self.weight_scale,
                f"own, unit or a number: it matches the norm of the bias, and kind {self.kind!r} has none",
            )

"""Settings of the start and the end of a pretraining: initial model, output bias, budget, early stopping, weight
average.

Source of the output bias: "A Natural Bias for Language Generation Models", Sections 3 and 4.1;
docs/papers/natural-bias.md, "Scale of the output matrix". All other papers that Hatchery reproduces use the default, a
zero bias. Values that exclude each other are refused.
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
    conflict,
    omitted_at_default,
    refused,
)
from hatchery.settings.fields import ABSENT, CorpusName, DataName, NotEmpty, OneOfKeys, ShortNumber

WordCount = Annotated[int, Range(ge=1), ShortNumber()]
"""A number of words: 100000000, or 100M."""
NEARLY = 0.95
"""Minimum share of a word budget that the epochs must reach, because held-out text and cleaning remove a few percent of
the words."""
# Configuration keys in which a model may differ from its initial model, because they change neither shape nor meaning
# of a tensor.
FREE_KEYS = ("hidden_dropout_prob", "attention_probs_dropout_prob")


@dataclass(frozen=True)
class InitialModelSettings(Settings):
    """Settings of the start from an initial model. The model's manifest is an input of the stage."""

    take: Literal["weights", "training"] = "weights"
    """`weights`: start at step 0 with a new optimiser and a complete schedule. `training`: continue the training of the
    initial model with its optimiser, its position in the data and its step number.
    """
    step: Count | None = None
    """Number of a step in the initial model's `milestones`: training starts from the weights of this milestone. `null`
    uses the finished model. With `steps: 0` and the default `output_bias`, the run's model has the milestone's weights
    unchanged.
    """


@dataclass(frozen=True)
class ModelChoice(Settings):
    """Finished model: a run of an experiment, or a folder."""

    run: str = ABSENT
    """Name of the run."""
    experiment: str | None = None
    """Name of the run's experiment; `null` means this experiment."""
    seed: Natural | None = None
    """Pretraining seed of the named run. `null` uses the only seed of the named run or, if the named run has several
    seeds, the seed of this run.
    """
    path: NotEmpty = ABSENT
    """Folder that scripts/import_checkpoint.py or a pretraining has written, or the name of a `data` entry with such a
    folder as its path."""


@dataclass(frozen=True)
class InitialModelChoice(ModelChoice, InitialModelSettings):
    """Model from which training starts: a run of an experiment, or a folder."""


@dataclass(frozen=True)
class EarlyStoppingSettings(Settings):
    """Stop training if several consecutive evaluations do not improve on the best value so far by more than the minimum
    improvement. The compared value is the development loss. For the task `preference`, it is the preference loss of
    development pairs. For the task `translation`, it is the BLEU score of development text, or the development loss if
    `development_translations` is 0.
    """

    patience_evaluations: Count
    """Number of consecutive evaluations without improvement after which training stops."""
    minimum_improvement: NonNegative = 0.0
    """Minimum difference from the best value that counts as improvement. The unit is nats per predicted token, BLEU
    points, or preference loss per pair.
    """
    export: Literal["best", "last"] = "best"
    """Exported weights. `best`: the weights of the best evaluation; if several evaluations are equally good, of the
    first of these. `last`: the weights of the last step.
    """


@dataclass(frozen=True)
class BudgetSettings(OneOfKeys):
    """Maximum amount of text or training time. The last step of a run is the last step that does not exceed the budget.
    With `minutes`, this step is estimated.
    """

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {("words_seen",): "words_seen: 100M", ("minutes",): "minutes: 10"}

    words_seen: WordCount = ABSENT
    """Maximum number of words that the model reads, such as 100M or 100000000, counted by the `word_count` of the
    corpus. Repetitions, and the words that the initial model has read, count.
    """
    epochs: Positive | None = None
    """Additional limit: maximum number of passes over the text, computed from the number of words; `null` sets no
    limit.
    """
    corpus_words: WordCount | None = None
    """Maximum number of words in the training text; a larger text is refused. `null` accepts any size."""
    corpus_bytes: Count | None = None
    """Maximum size of the training text in bytes of UTF-8; a larger text is refused. `null` accepts any size."""
    minutes: Positive = ABSENT
    """Duration of the training in minutes, without evaluations and checkpoints. The number of steps is calculated from
    the duration of some trial steps, so all results depend on the machine and its load; the manifest records the number
    of steps as `planned_steps`.
    """

    @property
    def words(self) -> int | None:
        """Number of words of the budget; None for a budget in minutes."""
        return None if self.words_seen is ABSENT else self.words_seen


@dataclass(frozen=True)
class WeightAverageSettings(Settings):
    """Average of the weights. The default is an exponential average that starts with the initial weights and is updated
    after every step. `{weights: equal, from_fraction: 0.8}` is stochastic weight averaging; with `every_steps`, only
    the weights at this interval of steps are averaged.
    """

    decay: ShareBelowOne = 0.999
    """Weight of the previous average in an update of the exponential average; the weight of the current weights is 1
    minus this number."""
    keep_raw_weights: bool = False
    """Also export the weights of the last step, in the folder `raw_weights` of the model."""
    weights: Literal["exponential", "equal"] = omitted_at_default("exponential")
    """`exponential`: moving average, in which more recent weights have larger factors. `equal`: mean, in which all
    averaged weights have the same factor.
    """
    from_fraction: ShareBelowOne = omitted_at_default(0.0)
    """Share of all steps that precede the averaging; until averaging begins, evaluations use the current weights."""
    every_steps: Count = omitted_at_default(1)
    """Number of steps between two updates of the average; the last step is always an update."""

    def __post_init__(self) -> None:
        if self.weights == "equal" and self.decay != WeightAverageSettings.decay:
            raise conflict("decay", self.decay, "`weights: equal`", "equal weights have no decay")

    @property
    def averages_every_step(self) -> bool:
        """True for an exponential average over all steps."""
        return self.weights == "exponential" and self.from_fraction == 0 and self.every_steps == 1


@dataclass(frozen=True)
class CurriculumSettings(Settings):
    """Curriculum: the sequences of an epoch are ordered by difficulty, or all epochs have the same random order."""

    by: Literal["length", "rarity", "first_epoch", "loss", "words", "column"]
    """Measure of difficulty. `length`: mean number of tokens in a sentence. `rarity`: mean surprisal of the tokens,
    computed from token frequencies. `loss`: mean loss of the finished model `model`. `words`: mean value of the words
    in the table `words`, such as the age of acquisition. `column`: mean value of the sequence's documents in the column
    `column` of your table. `first_epoch`: no measure; all epochs have the random order of the first epoch.
    """
    first: Literal["easy", "hard"] = "easy"
    """Sequences at the beginning of an epoch. `easy`: the sequences with the lowest difficulty, such as short sentences
    or frequent tokens. `hard`: the sequences with the highest difficulty.
    """
    epochs: Count | None = None
    """Number of ordered epochs at the start; later epochs are shuffled. `null` orders all epochs."""
    spread: NonNegative = 0.1
    """Maximum random shift of a sequence from its rank by difficulty, as a share of the epoch. 0 orders strictly by
    difficulty.
    """
    word_column: NotEmpty = omitted_at_default("word")
    """Column of the words in the table, for `by: words`."""
    value_column: NotEmpty = omitted_at_default("value")
    """Column of the values in the table, for `by: words`; words with low values are easy."""
    column: NotEmpty | None = omitted_at_default(None)
    """Column with a number for each document, for `by: column`; each source of the corpus names the column in the
    option `numeric_columns`. Documents with low values are easy.
    """

    def __post_init__(self) -> None:
        if self.by == "first_epoch" and self.first != "easy":
            raise conflict(
                "first", self.first, "`by: first_epoch`", "the order of the first epoch does not depend on difficulty"
            )
        for key, default in (("word_column", "word"), ("value_column", "value")):
            if getattr(self, key) != default and self.by != "words":
                raise conflict(key, getattr(self, key), f"`by: {self.by}`", "only `by: words` uses this key")
        if (self.column is not None) != (self.by == "column"):
            raise refused("column", self.column, "a name if `by` is column, and null if `by` has another value")


@dataclass(frozen=True)
class CurriculumChoice(CurriculumSettings):
    """Curriculum: the sequences of an epoch are ordered by difficulty, or all epochs have the same random order."""

    model: ModelChoice | None = None
    """Finished model with the tokenizer and the objective of the run, for `by: loss`."""
    words: DataName = ABSENT
    """Raw input (an entry under `data` of config.yaml) that contains one table (.csv or .tsv) of words and values, for
    `by: words`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, given, by in (("model", self.model is not None, "loss"), ("words", self.words is not ABSENT, "words")):
            if given != (self.by == by):
                value = getattr(self, key) if given else None
                raise refused(key, value, f"a value if `by` is {by}, and no key `{key}` if `by` has another value")


@dataclass(frozen=True)
class OutputBiasSettings(Settings):
    """Initial bias and initial matrix of the output layer."""

    kind: Literal["zero", "unigram", "none"] = "zero"
    """Initial bias. `zero`: all elements are 0 or, with an initial model, equal to its bias. `unigram`: logarithm of
    the label frequencies. `none`: a layer without bias. The initial matrix is the same for all three kinds.
    """
    smoothing: NonNegative = 1.0
    """Number added to the count of every vocabulary entry."""
    label_smoothing: Share = 0.0
    """Share of the uniform distribution in the mixture with the label frequencies; a value above 0 replaces
    `smoothing`."""
    counts: Literal["labels", "corpus", "larger_corpus"] = "labels"
    """Source of the frequencies. `labels`: the labels of the run's own examples. `corpus`: all possible labels in the
    run's corpus. `larger_corpus`: the tokens of another, larger corpus.
    """
    larger_corpus: CorpusName = ABSENT
    """Larger corpus for `counts: larger_corpus`, encoded with the run's tokenizer. An end token is counted for each
    sentence of the larger corpus, as for targets.
    """
    # With 128 tokens per sequence, 100,000 examples have about 2 million labels, which are counted within a minute. If
    # a token is the label 100 times, its frequency has a standard error of 10 %.
    counted_examples: Count | None = 100_000
    """Maximum number of examples whose labels are counted; `null` uses all examples."""
    centred: bool = False
    """Subtract the mean from the log frequencies. The predictions stay the same, and the norm of the bias becomes
    smaller.
    """
    weight_scale: Literal["own", "unit", "unit_uniform", "centred", "frobenius"] | Positive = "own"
    """Initial output matrix [V, d], for untied embeddings only. `own` keeps the model's usual initialisation. `unit`
    draws from N(0, 1/d); a number s multiplies this matrix by s. `unit_uniform` draws from a uniform distribution with
    the variance of `unit` (natural-bias paper, Appendix A). `frobenius` scales the matrix so that its Frobenius norm
    equals the norm of the bias, as the natural-bias paper's rule states literally. `centred` first subtracts the mean
    from the bias, and scales the matrix to the norm of the difference.
    """
    report: bool = False
    """Report measures of the initial output layer, such as its loss, also if `kind` is `zero` or `none`. Labels are
    then counted. With `kind: unigram`, the measures are reported even if this key is false.
    """

    def __post_init__(self) -> None:
        if self.smoothing + self.label_smoothing <= 0:
            raise refused(
                "smoothing",
                self.smoothing,
                "a number above 0, because the logarithm of a count of 0 is not finite",
            )
        named = self.larger_corpus is not ABSENT
        if named != (self.counts == "larger_corpus"):
            given = self.larger_corpus if named else None
            raise refused(
                "larger_corpus",
                given,
                "a corpus if and only if `counts` is larger_corpus",
            )
        # The natural-bias paper states for all models that the norm of the matrix equals the norm of the bias. But if
        # the bias is 0, this rule would scale the matrix to zero.
        if self.weight_scale in ("centred", "frobenius") and self.kind != "unigram":
            raise refused(
                "weight_scale",
                self.weight_scale,
                "own, unit, unit_uniform or a number, "
                f"because {self.weight_scale} needs a unigram bias, and the kind is {self.kind!r}",
            )

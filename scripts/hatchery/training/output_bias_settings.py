"""Where the output layer of a pretraining run starts; `hatchery.training.output_bias` does it.

Source: "A Natural Bias for Language Generation Models", Sections 3 and 4.1; docs/papers/natural-bias.md, "Scale of the
output matrix". The default is the zero bias of all papers here; values that exclude each other are refused with the
reason.
"""

from dataclasses import dataclass
from typing import Literal

from hatchery.settings.base import Count, NonNegative, Positive, Settings, Share, require
from hatchery.settings.fields import ABSENT, CorpusName


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
        require(self.smoothing + self.label_smoothing > 0, "smoothing", self.smoothing, "above 0: most labels are rare")
        named = self.larger_corpus is not ABSENT
        expected = "a corpus, where counts is larger_corpus, and nothing elsewhere"
        require(
            named == (self.counts == "larger_corpus"), "larger_corpus", self.larger_corpus if named else None, expected
        )
        # The paper states its rule for all models, but against a bias of 0 it would leave a matrix of zeros.
        matches = self.weight_scale in ("centred", "frobenius")
        require(
            not matches or self.kind == "unigram",
            "weight_scale",
            self.weight_scale,
            f"own, unit or a number: it matches the norm of the bias, and kind {self.kind!r} has none",
        )

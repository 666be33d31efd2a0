"""Settings for the evaluation of a pretrained model: minimal pairs, perplexity, and external models.

If one of these settings changes, the result is computed again, except for the settings in `EvaluationRuntime`.
Impossible values raise an error before any data is read. The settings of fine-tuning tasks and protocols are in
`tasks.settings`; the settings of translation are in `translation_settings`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import MinLen

from hatchery.artifacts.manifests import Manifest
from hatchery.evaluation.ways_of_scoring import WAYS, Architecture, Edition
from hatchery.settings.base import (
    CompilationChoice,
    Count,
    DeviceName,
    Natural,
    Positive,
    Range,
    Settings,
    Share,
    ShareAboveZero,
    omitted_at_default,
    require,
)
from hatchery.settings.fields import SegmentsName, Unique

IMPORT = "import_model"
"""Name of the stage that imports external models. A manifest with this `stage` belongs to an external model."""


@dataclass(frozen=True)
class BaselineSettings(Settings):
    """An external model: a folder in the format of the library `transformers`, listed as a raw input in config.yaml."""

    architecture: Architecture
    """Architecture of the model. `masked` predicts masked words, `causal` predicts the next word, and `encoder_decoder`
    generates text from the output of an encoder (T5, BART).
    """
    leading_blank: bool | None = None
    """Add a space before every sentence of minimal pairs; `null` uses the suite's setting `leading_blank`."""
    predicts_next: bool = False
    """For a masked model: true if the model predicts a token at the position before this token, as GPT-BERT does
    (backend `mntp`).
    """

    def __post_init__(self) -> None:
        fits = self.architecture == "masked" or not self.predicts_next
        require(fits, "predicts_next", self.predicts_next, f"false with architecture {self.architecture}")


def is_imported(model: Manifest) -> bool:
    """Return True if `model` is the manifest of an imported (external) model."""
    return model.stage == IMPORT


Unit = Literal["paradigm", "file"]
PairFormat = Literal[
    "blimp",
    "rows",
    "alternating_lines",
    "multiple_choice",
    "ewok",
    "entity_tracking",
    "comps",
    "global_piqa",
    "wug",
]
FORMATS_SINCE_2025: tuple[PairFormat, ...] = ("ewok", "entity_tracking", "comps", "global_piqa", "wug")
if TYPE_CHECKING:
    ScoringName = str
else:
    ScoringName = Literal["auto", *WAYS]


@dataclass(frozen=True)
class ExpectedSize(Settings):
    """Expected numbers of paradigms and sentence pairs in a suite; other numbers in its files raise an error."""

    paradigms: Count | None = None
    """Number of paradigms; `null` accepts any number."""
    pairs: Count | None = None
    """Number of pairs; `null` accepts any number."""


MatrixPrecision = Literal["fp32", "tf32", "screened"]


@dataclass(frozen=True)
class PairColumns(Settings):
    """Names of the columns that contain a sentence pair and its paradigm. In JSON lines, these names are the names of
    fields.
    """

    good: str
    """Column of the correct sentence."""
    bad: str | Annotated[tuple[str, ...], MinLen(1)]
    """Column of the wrong sentence, or several columns of wrong sentences."""
    paradigm: str | None = None
    """Column of the paradigm's name; `null` makes each file a paradigm, named after the file."""
    phenomenon: str | None = None
    """Column by which paradigms are grouped into phenomena; `null` makes each paradigm a phenomenon."""
    prefix: str | None = None
    """Column of a context before the two sentences, which the model reads but which is not scored; `null` means that
    there is no context.
    """

    @property
    def wrong(self) -> tuple[str, ...]:
        """The columns of wrong sentences, one or several."""
        return (self.bad,) if isinstance(self.bad, str) else self.bad


@dataclass(frozen=True)
class ChoiceColumns(Settings):
    """Columns of a multiple-choice item; the defaults are MuBench's columns."""

    prompt: str = "prompt"
    """Column of the text before the choices; the model reads this text, and its tokens are not scored."""
    choices: str | Annotated[tuple[str, ...], MinLen(2)] = "choices"
    """Column with a list of choices, or one column for each choice; `null` choices are skipped."""
    label: str = "label"
    """Column of the correct choice: its index from 0, the index as digits, or the text of the choice."""


TieRule = Literal["shared", "wrong", "first_in_row"]
FORMATS_OF_MULTILINGUAL: tuple[PairFormat, ...] = ("rows", "multiple_choice")


@dataclass(frozen=True, kw_only=True)
class SuiteSettings(Settings):
    """Settings of a suite: the format of its files, and the scoring of its items."""

    format: PairFormat = "blimp"
    """File format. `blimp`: JSON lines with `sentence_good` and `sentence_bad`. `rows`: tables with a header (.csv,
    .tsv), JSON lines or Parquet with the columns named in `columns`. `multiple_choice`: files as for `rows`, with a
    prompt and several choices in the columns named in `choices`. `alternating_lines`: the two sentences of a pair on
    consecutive lines, as in Zorro; each file is a paradigm. `ewok`, `entity_tracking`, `comps`, `global_piqa` and
    `wug`: JSON lines as in BabyLM's files.
    """
    columns: PairColumns | None = None
    """Columns of a pair of sentences, for the format `rows`."""
    choices: ChoiceColumns | None = omitted_at_default(None)
    """Columns of prompt, choices and label, for the format `multiple_choice`; `null` uses MuBench's columns."""
    good_line: Literal["first", "second"] | None = None
    """Line of a pair that contains the correct sentence, for the format `alternating_lines`."""
    files: str = "*.jsonl"
    """Shell pattern of the suite's files in the source."""
    unit: Unit = "paradigm"
    """Meaning of a row in result tables: a paradigm, whose name is in the records, or a file. BabyLM uses files, so
    that every example of a file has the same weight.
    """
    leading_blank: bool = False
    """Add a space before every sentence, as the pipeline of BabyLM 2023 does."""
    expected: ExpectedSize | None = None
    """Expected size of the suite, to detect files of another suite; `null` for your own data."""
    pairs_per_paradigm: Count | None = None
    """Number of pairs per paradigm, drawn with `seed`; `null` scores all pairs."""
    seed: Natural = 0
    """Random seed of the drawn subset (`pairs_per_paradigm`), and of the draw of the preferred text if several texts
    have the best score.
    """
    scoring: ScoringName = "auto"
    """Scoring method. `auto` is `pll` for masked and hybrid models, and `left_to_right` for all other models. `pll`
    reads the prediction of a masked token at the position at which the model was trained to predict this token.
    `masked` always reads the prediction at the token's own position; `mntp` always reads the prediction at the previous
    position, as in hybrid models. `pll_within_word_l2r` also masks the later subwords of a word. `fused` adds `pll` and
    `left_to_right`, for hybrid models. `diffusion` is masked diffusion's bound of the log-likelihood, for models
    trained with `objective.rates` from 0 to 1.
    """
    precision: MatrixPrecision = "fp32"
    """Precision of matrix products. `tf32` is TensorFloat-32 on GPUs that support it; other devices use fp32. In one
    measurement, `tf32` took half the time of fp32 and changed the decision for 3 of 6,700 pairs; the two scores of each
    of these pairs were almost equal. `screened` computes all scores in bf16. If the difference between the scores of an
    item's texts is below a bound that is measured on the model, these scores are computed again in fp32. All decisions
    then equal the decisions in fp32, but the scores of items that were not computed again are in bf16. On devices
    without bf16 instructions, all scores are computed in fp32.
    """
    edition: Edition = 2023
    """Year of BabyLM whose rules apply. `2023`: a tie is wrong, and external models read EOS before a text. Since
    `2025`: if k texts tie and the correct text is among them, the item counts 1/k; external models read the special
    tokens that their tokenizer's template adds before a text; predictions are written as JSON. In the format `ewok`,
    `2025` compares two targets, and `2026` compares two contexts of a target. In the format `entity_tracking`, `2026`
    skips rows in which an option contains "nothing".
    """
    official: bool = False
    """Reproduce the decisions of the official code, including its errors; only for the editions since 2025. Ties are
    decided by a random draw (2026, here seeded) or in favour of the correct text (2025). If the tokenizer of a causal
    model drops characters before a completion, some tokens of the completion are not scored. One error is not
    reproduced: the official code reads a wrong position if the tokenizer of a causal model defines a BOS that its
    template does not add before a text.
    """
    counted_by: Literal["server", "collator"] | None = None
    """Compute the accuracy as BabyLM's organisers do, including the errors of their code; only for the edition 2026.
    `null` computes the share of correct decisions. `server`: in `entity_tracking`, the preferred texts of a paradigm
    are compared in order with the correct texts of its rows. These rows include rows with "nothing" in a wrong option,
    which have no preferred text, so that later texts are compared with the correct texts of other rows. `collator` (for
    checkpoints): in `ewok`, whole texts are compared with bare targets, so that no text is correct. Ties are decided by
    a random draw.
    """
    temperatures: bool = False
    """Also score with logits divided by 61 temperatures from 0 to 3, and report the accuracy at the best temperature as
    a separate metric, as in GPT-BERT's paper. The temperature is selected on the scored items, so the accuracy is an
    upper bound."""
    per_token: bool = False
    """Compare candidates by the mean log-probability per scored token, not by the sum."""
    track: Literal["multilingual"] | None = omitted_at_default(None)
    """Rules of a track; only for the edition 2026. The value `multilingual` applies the rules of the multilingual
    track: External models read one BOS before a text, and no other token of their tokenizer's template. The prompt is
    tokenised alone to count the tokens that are not scored. The suite's mean weights all pairs equally. The paradigm of
    a file named after a split (train-00000-of-00001.parquet) is the name of its folder.
    """
    ties: TieRule | None = omitted_at_default(None)
    """Credit of an item whose correct text ties with other texts; only for the edition 2026. `shared`: 1/k for k tied
    texts. `wrong`: 0. `first_in_row`: the first tied text of the row is preferred. `null` uses the rule of `edition`.
    """
    unknown_tokens: Literal["scored", "wrong"] = omitted_at_default("scored")
    """Treatment of candidates that contain unknown tokens. `scored`: these candidates are scored like other candidates.
    `wrong`: the item counts as wrong if any part of a candidate contains an unknown token (Hanzi).
    """

    @property
    def has_template(self) -> bool:
        """True for BabyLM's editions since 2025. In these editions, an external model reads each text with the
        special tokens that the template in its tokenizer's file adds. This property is also true in the multilingual
        track (`track`), in which an external model reads one BOS before each text instead.
        """
        return self.edition != 2023

    def __post_init__(self) -> None:
        """Raise ConfigError if a key that the format requires is missing, if a key belongs to another format, if a key
        requires another `edition`, or if keys exclude each other.
        """
        since_2025 = self.edition != 2023
        require(
            since_2025 or self.format not in FORMATS_SINCE_2025,
            "edition",
            self.edition,
            f"2025 or 2026 with the format {self.format}",
        )
        require(since_2025 or not self.official, "official", self.official, "false with the edition 2023")
        places = self.edition == 2026 and self.format != "wug" and self.pairs_per_paradigm is None
        wanted = "null unless all pairs are scored, the edition is 2026, and the format is not wug"
        require(self.counted_by is None or places, "counted_by", self.counted_by, wanted)
        is_2026 = self.edition == 2026 and not self.official and self.counted_by is None
        choosable = is_2026 and self.format in FORMATS_OF_MULTILINGUAL and self.unit == "paradigm"
        formats = " or ".join(FORMATS_OF_MULTILINGUAL)
        wanted = f"null; every other value needs `edition: 2026`, the format {formats}, and `unit: paradigm`, without "
        wanted += "`official` and `counted_by`"
        require(self.track is None or choosable, "track", self.track, wanted)
        require(
            self.ties is None or is_2026,
            "ties",
            self.ties,
            "null; every other value needs `edition: 2026` without `official` and `counted_by`",
        )
        judged = self.unknown_tokens == "scored" or (is_2026 and not self.temperatures)
        wanted = "`scored`; every other value needs `edition: 2026` without `official`, `counted_by` and `temperatures`"
        require(judged, "unknown_tokens", self.unknown_tokens, wanted)
        decides = self.format != "wug" and not self.temperatures and self.track is None
        wanted = (
            "fp32 or tf32, because the format wug, `temperatures` and `track` report scores, and `screened` computes "
            "some scores only in bf16"
        )
        require(decides or self.precision != "screened", "precision", self.precision, wanted)
        is_choice = self.format == "multiple_choice"
        wanted = "null, because only the format multiple_choice has this key"
        require(self.choices is None or is_choice, "choices", self.choices, wanted)
        for key, owner, example in (
            ("columns", "rows", "{good: ..., bad: ...}"),
            ("good_line", "alternating_lines", "first or second"),
        ):
            with_it = self.format == owner
            wanted = f"{example}" if with_it else f"null, because only the format {owner} has this key"
            require((getattr(self, key) is not None) == (self.format == owner), key, getattr(self, key), wanted)


@dataclass(frozen=True, kw_only=True)
class ScoringSettings(SuiteSettings):
    """A suite's settings and its name. If one of these values changes, models are scored again on the suite."""

    suite: str
    """Name of the suite."""


HeldOut = Literal["dev", "test"]


@dataclass(frozen=True, kw_only=True)
class PerplexityChoice(Settings):
    """Splits on which the perplexity is measured, and the prediction targets."""

    splits: Annotated[tuple[HeldOut, ...], Unique()] = ()
    """Splits of the corpus on which the perplexity is measured; an empty list skips the measurement."""
    masking: Literal["common", "own"] = "common"
    """Prediction targets of masked and hybrid models; causal models predict every token. `common`: the same tokens for
    every masked or hybrid model with this tokenizer, each token chosen independently of the others. `own`: the targets
    that the model's own training objective selects; perplexities are then comparable between seeds and model sizes but
    not between objectives.
    """
    # A sequence has at least four tokens: two special tokens frame it, and every method of splitting needs space for
    # two more tokens.
    sequence_length: Annotated[int, Range(ge=4)] | None = None
    """Number of tokens in a sequence, special tokens included; `null` uses the length of pretraining."""
    sequences: Count | None = None
    """Maximum number of sequences from each split, drawn with `seed`; `null` uses all sequences."""
    mask_probability: ShareAboveZero = 0.15
    """Share of the tokens that are predicted if `masking` is `common`."""
    random_probability: Share = 0.0
    """Share of the predicted tokens that are replaced by a random token."""
    keep_probability: Share = 0.0
    """Share of the predicted tokens that remain visible. If this share and `random_probability` are 0, every predicted
    token is replaced by [MASK].
    """
    segments: SegmentsName = "babylm"
    """Method that splits documents into sequences, if `masking` is `common`. The key has no effect on models that were
    trained with `segments: blocks`, which read blocks, and on all other causal models, which read packed sequences.
    """
    seed: Natural = 20_231_106
    """Random seed for drawing the sequences, the masks, and the sentences of the pseudo-perplexity."""
    pseudo_perplexity_sentences: Natural = 0
    """Number of sentences for the pseudo-perplexity, which masks each token separately; 0 skips the
    pseudo-perplexity."""
    frequency_bin_nats: Positive | None = None
    """Width, in nats, of bins of tokens. A bin contains the tokens whose log frequency among the possible prediction
    targets of the training split is in an interval of this width. For each bin, the mean log-probability of the tokens
    is measured with and without the bias of the output layer. `null` skips this measurement.
    """

    def __post_init__(self) -> None:
        visible = self.random_probability + self.keep_probability
        require(visible <= 1, "random_probability + keep_probability", visible, "a sum of at most 1")


@dataclass(frozen=True, kw_only=True)
class PerplexitySettings(PerplexityChoice):
    """Settings of perplexity: splits, sequence length and prediction targets."""

    splits: Annotated[tuple[HeldOut, ...], MinLen(1), Unique()]
    """Splits of the corpus on which the perplexity is measured."""
    sequence_length: Annotated[int, Range(ge=4)]
    """Number of tokens in a sequence, special tokens included."""


@dataclass(frozen=True)
class EvaluationRuntime(Settings):
    """Runtime settings of an evaluation. If one of these settings changes, no result is computed again."""

    tokens_per_batch: Count | None = None
    """Maximum number of tokens per batch, special tokens and padding included. `null` uses the evaluation's default.
    For minimal pairs, the default is 4,096 on a CPU, where this number was measured to be fastest
    (benchmarks/score_minimal_pairs.py), and 65,536 on a GPU.
    """
    device: DeviceName = "auto"
    """Device on which the model is evaluated."""
    threads: Count | None = None
    """Number of CPU threads of PyTorch; `null` keeps PyTorch's default."""
    compile: CompilationChoice = "auto"
    """Use torch.compile for the layers; `auto` compiles on a GPU if there are many tokens."""

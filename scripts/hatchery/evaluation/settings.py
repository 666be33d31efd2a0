"""Settings of evaluations of a pretrained model: minimal pairs, perplexity, translation, and models of others.

They are part of a result's identity, except `EvaluationRuntime`. Impossible values are refused before any data is read.
Tasks and their protocols are in `tasks.settings`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import MinLen

from hatchery.artifacts.manifests import Manifest
from hatchery.corpora.settings import SplitName
from hatchery.evaluation.ways_of_scoring import WAYS, Architecture, Edition
from hatchery.settings.base import (
    CompilationChoice,
    Count,
    DeviceName,
    Natural,
    Positive,
    Range,
    RefusedError,
    Settings,
    Share,
    ShareAboveZero,
    omitted_at_default,
    require,
)
from hatchery.settings.fields import BlockName, CorpusName, Names, SegmentsName, Unique

IMPORT = "import_model"
"""Stage of imported models; `manifest.stage` distinguishes them from ours."""


@dataclass(frozen=True)
class BaselineSettings(Settings):
    """A model in the layout of the library `transformers`, registered as a raw input of kind folder."""

    architecture: Architecture
    """Whether it guesses masked words or the next one, or writes with a decoder what an encoder has read (T5, BART)."""
    leading_blank: bool | None = None
    """In minimal pairs, put a blank before every sentence; null does what the suite says."""
    predicts_next: bool = False
    """Of a masked model, whether it predicts a token at the position before it, as GPT-BERT does (backend mntp)."""

    def __post_init__(self) -> None:
        fits = self.architecture == "masked" or not self.predicts_next
        require(fits, "predicts_next", self.predicts_next, "false: only masked models have it")


def is_imported(model: Manifest) -> bool:
    """Return whether a manifest is that of an imported model."""
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
    """How large a suite is, so that the files of another one are recognised."""

    paradigms: Count | None = None
    """Number of paradigms; null leaves it open."""
    pairs: Count | None = None
    """Number of pairs; null leaves it open."""


MatrixPrecision = Literal["fp32", "tf32"]


@dataclass(frozen=True)
class PairColumns(Settings):
    """The columns of a table, or the fields of JSON lines, that a pair stands in."""

    good: str
    """Column of the sentence that is right."""
    bad: str | Annotated[tuple[str, ...], MinLen(1)]
    """Column of the sentence that is wrong, or several columns of wrong ones."""
    paradigm: str | None = None
    """Column that names the paradigm of a pair; null: each file is a paradigm, by its name."""
    phenomenon: str | None = None
    """Column of what paradigms are grouped by; null: each paradigm is a phenomenon."""
    prefix: str | None = None
    """Column of a text in front of all of them, which is given and not scored; null: there is none."""

    @property
    def wrong(self) -> tuple[str, ...]:
        """The columns of wrong sentences, one or several."""
        return (self.bad,) if isinstance(self.bad, str) else self.bad


@dataclass(frozen=True)
class ChoiceColumns(Settings):
    """The columns of a row that asks which choice follows a prompt; the defaults are those of MuBench."""

    prompt: str = "prompt"
    """Column of the text before the choices; the model sees this text, and its tokens are not scored."""
    choices: str | Annotated[tuple[str, ...], MinLen(2)] = "choices"
    """Column with a list of choices, or one column for each choice; a choice that is null is left out."""
    label: str = "label"
    """Column of the right choice: its index from 0, this index as digits, or the text of the choice."""


TieRule = Literal["shared", "wrong", "first_in_row"]
FORMATS_OF_MULTILINGUAL: tuple[PairFormat, ...] = ("rows", "multiple_choice")


@dataclass(frozen=True, kw_only=True)
class SuiteSettings(Settings):
    """Settings of a suite's files and of their scoring."""

    format: PairFormat = "blimp"
    """blimp is JSON lines with sentence_good and sentence_bad. rows are tables with a header (.csv, .tsv), JSON lines
    or Parquet with the `columns` that you name. multiple_choice are tables of the same kinds with a prompt and
    choices (`choices`). In files with alternating_lines, the two sentences of a pair stand on
    lines of their own, one pair below the other, as in Zorro; each file is a paradigm. ewok, entity_tracking, comps,
    global_piqa and wug are JSON lines as in the files of BabyLM."""
    columns: PairColumns | None = None
    """With the format rows: which columns hold a pair."""
    choices: ChoiceColumns | None = omitted_at_default(None)
    """With the format multiple_choice: the columns of prompt, choices and label; null has those of MuBench."""
    good_line: Literal["first", "second"] | None = None
    """With the format alternating_lines: which of the two lines of a pair is the right sentence."""
    files: str = "*.jsonl"
    """Shell pattern of the files inside the source."""
    unit: Unit = "paradigm"
    """What a row of the table is: the paradigm that a record names, or the whole file (BabyLM's pooled files, where
    accuracy is example-weighted inside a file)."""
    leading_blank: bool = False
    """Put a blank before every sentence, as the pipeline of BabyLM 2023 does."""
    expected: ExpectedSize | None = None
    """How large the suite is, so that the files of another one are recognised; null for a folder of yours."""
    pairs_per_paradigm: Count | None = None
    """A seeded subset of each paradigm; null scores all."""
    seed: Natural = 0
    """Draws the subset, and which of several best texts is told as the preferred one."""
    scoring: ScoringName = "auto"
    """auto is pll for masked models and left_to_right for others. pll reads a hidden token where the model was trained
    to predict it; masked insists that it is its own place, mntp that it is the one before, as in hybrid models.
    pll_within_word_l2r also masks the later pieces of a word; fused adds pll and left_to_right, for hybrid models.
    diffusion is the bound of masked diffusion, for models that are trained with `objective.rates`."""
    precision: Literal["fp32", "tf32"] = "fp32"
    """Of matrix products on a GPU that has TensorFloat-32. tf32 takes half the time and decides 3 of 6,700 pairs
    otherwise, all near-ties; a CPU computes fp32 in any case."""
    edition: Edition = 2023
    """Whose rules of BabyLM hold. 2023: a tie is wrong, and models of others see EOS in front of a text. Since 2025: of
    k texts that tie with the right one each counts 1/k, models of others see what their tokenizer's template puts in
    front of a text, and predictions are written as JSON. In ewok, 2025 compares two targets, 2026 two contexts of a
    target; in entity_tracking, 2026 leaves out rows of which an option holds "nothing"."""
    official: bool = False
    """Since 2025: decide as the official code does, slips included. Ties are decided by a draw (2026, here seeded) or
    for the right text (2025), and tokens of a completion are lost where the tokenizer of a causal model drops
    characters in front. One slip is not repeated: the code reads another position where the tokenizer of a causal
    model defines a BOS that its template does not put in front of a text."""
    counted_by: Literal["server", "collator"] | None = None
    """In 2026: count the texts that are preferred as BabyLM's organisers do, row by row, slips included; null counts
    right decisions. The server compares entity tracking with other rows, where some option holds "nothing"; the
    collator, which counts checkpoints, compares whole texts of ewok with bare targets, so that none is ever right.
    Ties are decided by the draw."""
    temperatures: bool = False
    """Also divide logits by 61 temperatures from 0 to 3, and tell the accuracy at the one that is best on these very
    items, under a name of its own (GPT-BERT's paper prints it). It is an upper bound."""
    per_token: bool = False
    """Compare the mean log-probability of the scored tokens, and not the sum."""
    track: Literal["multilingual"] | None = omitted_at_default(None)
    """In 2026, multilingual has the rules of that track: a model of others sees one BOS before a text and nothing of
    its tokenizer's template, the tokens of the prompt alone are not scored, the mean of the suite weighs pairs equally,
    and a file that is called after a split (train-00000-of-00001.parquet) has the name of its folder as paradigm."""
    ties: TieRule | None = omitted_at_default(None)
    """In 2026: what counts if the right text ties with others. shared counts 1/k of k texts, wrong counts nothing,
    first_in_row prefers the first of these texts in the row; null is the rule of the edition."""
    unknown_tokens: Literal["scored", "wrong"] = omitted_at_default("scored")
    """wrong: an item counts as wrong if the tokenizer has an unknown token for any part of a candidate (Hanzi)."""

    @property
    def has_template(self) -> bool:
        """True if models of others see their tokenizer's template in front of a text (since 2025)."""
        return self.edition != 2023

    def __post_init__(self) -> None:
        """Refuse a format without its key, or with the key of another format. Raises ConfigError."""
        since_2025 = self.edition != 2023
        require(since_2025 or self.format not in FORMATS_SINCE_2025, "edition", self.edition, "2025 or 2026 here")
        require(since_2025 or not self.official, "official", self.official, "false before the edition 2025")
        places = self.edition == 2026 and self.format != "wug" and self.pairs_per_paradigm is None
        wanted = "null unless all pairs are scored in the edition 2026"
        require(self.counted_by is None or places, "counted_by", self.counted_by, wanted)
        is_2026 = self.edition == 2026 and not self.official and self.counted_by is None
        choosable = is_2026 and self.format in FORMATS_OF_MULTILINGUAL and self.unit == "paradigm"
        wanted = f"null unless the edition is 2026 and the format {' or '.join(FORMATS_OF_MULTILINGUAL)}"
        require(self.track is None or choosable, "track", self.track, wanted)
        require(self.ties is None or is_2026, "ties", self.ties, "null unless the edition is 2026, without `official`")
        judged = self.unknown_tokens == "scored" or (is_2026 and not self.temperatures)
        wanted = "scored unless the edition is 2026, without `official` and `temperatures`"
        require(judged, "unknown_tokens", self.unknown_tokens, wanted)
        is_choice = self.format == "multiple_choice"
        wanted = "null: it belongs to the format multiple_choice"
        require(self.choices is None or is_choice, "choices", self.choices, wanted)
        for key, owner, example in (
            ("columns", "rows", "{good: ..., bad: ...}"),
            ("good_line", "alternating_lines", "first or second"),
        ):
            with_it = self.format == owner
            wanted = f"{example} with the format {owner}" if with_it else f"null: it belongs to the format {owner}"
            require((getattr(self, key) is not None) == (self.format == owner), key, getattr(self, key), wanted)


@dataclass(frozen=True, kw_only=True)
class ScoringSettings(SuiteSettings):
    """The items and their scoring; part of the result's identity."""

    suite: str
    """Name of the suite."""


HeldOut = Literal["dev", "test"]


@dataclass(frozen=True, kw_only=True)
class PerplexityChoice(Settings):
    """Which splits are scored, with masks that are the same for every model."""

    splits: Annotated[tuple[HeldOut, ...], Unique()] = ()
    """Splits of the corpus; none measures no perplexity."""
    masking: Literal["common", "own"] = "common"
    """common asks every model with this tokenizer the same guesses, single subwords; own masks as the model was
    trained, which compares seeds and sizes but not objectives."""
    # Two tokens frame a sequence, and every way of cutting needs room for two more.
    sequence_length: Annotated[int, Range(ge=4)] | None = None
    """Tokens of a sequence with its special tokens; null is that of pretraining."""
    sequences: Count | None = None
    """At most so many of each split, drawn with `seed`; null takes all."""
    mask_probability: ShareAboveZero = 0.15
    """Share of the tokens that common masks ask for."""
    random_probability: Share = 0.0
    """Share of these that are shown as a random token."""
    keep_probability: Share = 0.0
    """Share of these that are shown as they are; with neither, every guess is behind a [MASK]."""
    segments: SegmentsName = "babylm"
    """How documents are cut into sequences."""
    seed: Natural = 20_231_106
    """Draws sequences, masks and the sentences of the pseudo-perplexity."""
    pseudo_perplexity_sentences: Natural = 0
    """Also mask every token of so many sentences alone; 0 leaves it out."""
    frequency_bin_nats: Positive | None = None
    """Also the mean log-probability of tokens by the logarithm of their frequency in the training text, with the bias
    of the output layer and without it, in bins of so many nats; null leaves it out."""

    def __post_init__(self) -> None:
        visible = self.random_probability + self.keep_probability
        require(visible <= 1, "random_probability and keep_probability", visible, "together at most 1")


@dataclass(frozen=True, kw_only=True)
class PerplexitySettings(PerplexityChoice):
    """The held-out text and the predictions that are measured."""

    splits: Annotated[tuple[HeldOut, ...], MinLen(1), Unique()]
    """Splits of the corpus."""
    sequence_length: Annotated[int, Range(ge=4)]
    """Tokens of a sequence with its special tokens."""


TRANSLATED_LINES, REFERENCE_LINES = ".txt", ".reference.txt"
"""Suffixes of the files with a test set's translations, and with its references."""
TRANSLATION_SUITE = "translation"
"""Name in tables of the suite of all test sets."""
BEAM = "beam"
"""Name in manifests of the chosen beam size."""
ALC_STEPS = 20_000
"""Number of updates over which "A Natural Bias for Language Generation Models", Section 4.2, computes the area under
a learning curve."""


@dataclass(frozen=True, kw_only=True)
class HeldOutPairs(Settings):
    """Pairs that are translated and compared with their references."""

    corpus: CorpusName
    """A parallel corpus of the same two languages; the model segments it with its own tokenizer."""
    split: SplitName = "test"
    """The split that is translated."""


@dataclass(frozen=True, kw_only=True)
class BeamChoice(Settings):
    """How many translations the search follows at once: so many that BLEU of validation text is highest."""

    test: BlockName
    """The test set that decides, of validation text."""
    sizes: Annotated[tuple[Count, ...], MinLen(1), Unique()]
    """Sizes that are tried; of equally good ones the smallest is taken."""


@dataclass(frozen=True, kw_only=True)
class TranslationChoice(Settings):
    """The test sets of an experiment."""

    tests: dict[BlockName, HeldOutPairs] = field(default_factory=dict)
    """Test sets by the names that the tables show; none measures no translation."""
    leave_out: Names = ()
    """Runs that translate no test sets, such as those that another run goes on from; `*` stands for any text."""
    beams: BeamChoice | None = None
    """Choose the size of the beam for each model; null takes that of the objective (`search.beam`)."""
    alc_steps: Count = ALC_STEPS
    """The area under the learning curve of development text (alc_bleu, alc_chrf) is that of the first so many steps;
    models that did not train so long have none."""

    def __post_init__(self) -> None:
        require_test(self.beams, self.tests)


def require_test(beams: BeamChoice | None, tests: Mapping[str, HeldOutPairs]) -> None:
    """Raise RefusedError unless the test set that decides on the beam is one of `tests`.

    If a beam is chosen, a test set with the name of the beam's measure is refused, too.
    """
    if beams is not None and beams.test not in tests:
        there = ", ".join(tests) or "none"
        raise RefusedError("beams.test", f"got {beams.test!r}, expected one of `tests`: {there}")
    if beams is not None and BEAM in tests:
        raise RefusedError(
            f"tests.{BEAM}", f"got the name {BEAM!r}, expected another: {BEAM!r} names the size that `beams` chooses"
        )


def translated_runs(chosen: TranslationChoice, runs: Iterable[str]) -> list[str]:
    """Return the runs of an experiment that translate its test sets, in their order."""
    translating = runs if chosen.tests else ()
    return [run for run in translating if not any(fnmatchcase(run, pattern) for pattern in chosen.leave_out)]


@dataclass(frozen=True, kw_only=True)
class TranslationTests(Settings):
    """The settings of the stage."""

    tests: Annotated[dict[BlockName, HeldOutPairs], MinLen(1)]
    """Test sets by the names that the tables show."""
    beams: BeamChoice | None = None
    """Sizes of the beam to choose from; null takes that of the model's objective."""

    def __post_init__(self) -> None:
        require_test(self.beams, self.tests)


@dataclass(frozen=True)
class EvaluationRuntime(Settings):
    """Runtime settings of an evaluation; not part of the result's identity."""

    tokens_per_batch: Count | None = None
    """Tokens per batch, with special tokens and padding; null is what the evaluation takes by itself: of minimal pairs
    what was measured to be fastest on the device (benchmarks/score_minimal_pairs.py)."""
    device: DeviceName = "auto"
    """Device of the model."""
    threads: Count | None = None
    """CPU threads of PyTorch; null leaves its choice."""
    compile: CompilationChoice = "auto"
    """torch.compile of the layers: auto on a GPU, for many tokens."""

"""Settings classes for files of corpora, vocabularies, selections, tokenizers and tokenizer sweeps."""

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import MinLen

from hatchery.corpora.raw_texts import RawTextOptions
from hatchery.corpora.readers import CorpusSource
from hatchery.corpora.readers.plain_text import PlainTextSource
from hatchery.corpora.settings import (
    ENGLISH,
    ConversionKeys,
    SampleKeys,
    SequenceGroup,
    SequenceKeys,
    refuse_repeated_names,
)
from hatchery.corpora.word_counting import (
    BytePremium,
    WordCounting,
    WordCountName,
    bytes_per_word,
    premium_of,
)
from hatchery.settings.base import Count, RefusedError, Settings, conflict, refused
from hatchery.settings.fields import (
    ABSENT,
    BlockName,
    CorpusName,
    DataName,
    NotEmpty,
    OneOfKeys,
    PartOf,
    SelectionName,
    Text,
    TokenizerName,
    Unique,
    VocabularyName,
)
from hatchery.tokenization.selection.settings import CandidateKeys, SweepKeys
from hatchery.tokenization.trainer_settings import EncodedUnit, TokenizerKind, TokenizerSettings
from hatchery.training.start_settings import WordCount
from hatchery.typed import keys_of
from hatchery.vocabulary.settings import SelectionKeys, VocabularySettings

Language = Annotated[str, Text("^[a-z]{2,3}$", "a code of two or three letters a-z, such as en")]


@dataclass(frozen=True, kw_only=True)
class LanguagePart(Settings):
    """Amount of text of one language in a multilingual sample."""

    sources: Annotated[tuple[BlockName, ...], MinLen(1), Unique()]
    """Sources of the corpus whose text is in this language."""
    adjusted_words: WordCount
    """Amount of text, given as the equivalent number of English words, such as 50M."""
    byte_premium: BytePremium
    """Number of UTF-8 bytes of this language that correspond to one byte of English: a number, or the name of a
    language and script (`eng_latn`, `nld_latn`, `zho_hans`, `zho_hant`).
    """

    @property
    def bytes(self) -> int:
        """Maximum number of UTF-8 bytes of text."""
        return int(self.adjusted_words * bytes_per_word(premium_of(self.byte_premium)))


@dataclass(frozen=True, kw_only=True)
class Sample(SampleKeys, OneOfKeys):
    """Random sample of another corpus, with a given number of characters or with a given amount of text per
    language.
    """

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("size_of",): "size_of: bnc",
        ("characters",): "characters: 1000000",
        ("languages",): "languages: {dutch: {sources: [dutch], adjusted_words: 50M, byte_premium: nld_latn}}",
    }

    corpus: CorpusName
    """Corpus from which documents are drawn."""
    size_of: CorpusName = ABSENT
    """Corpus that determines the size of the sample: both have the same number of characters."""
    characters: Count = ABSENT
    """Number of characters in the sample."""
    languages: Annotated[dict[BlockName, LanguagePart], MinLen(1)] = ABSENT
    """Amount of text of each language, as the equivalent number of English words. You can choose the names of the
    languages freely.
    """

    def __post_init__(self) -> None:
        """Raise RefusedError if two languages name the same source."""
        parts = {} if self.languages is ABSENT else self.languages
        for name, count in Counter(source for part in parts.values() for source in part.sources).items():
            if count > 1:
                raise RefusedError(
                    "languages", f"got the source {name!r} in {count} languages, expected each source in one language"
                )

    @property
    def adjusted_words(self) -> int | None:
        """Size of a multilingual sample as the equivalent number of English words, summed over its languages; None for
        other samples.
        """
        return None if self.languages is ABSENT else sum(part.adjusted_words for part in self.languages.values())


@dataclass(frozen=True, kw_only=True)
class Group(SequenceGroup):
    """Selections whose texts are grouped into sequences together."""

    selections: Annotated[tuple[SelectionName, ...], MinLen(1), Unique()]
    """Selections, by the names of files in config/selections/, in the order in which their texts are grouped."""


@dataclass(frozen=True, kw_only=True)
class Sequences(SequenceKeys):
    """Selected texts, grouped into sequences of a model's input length."""

    groups: Annotated[tuple[Group, ...], MinLen(1)]
    """Groups of selections. The sequences of the corpus are in the order of the groups."""
    held_out_from: CorpusName | None = None
    """Another corpus of sequences whose development and test sequences are reused. `null` holds out new sequences."""


@dataclass(frozen=True, kw_only=True)
class CorpusFile(ConversionKeys, OneOfKeys):
    """Sources, readers and splits of a corpus."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("sources",): "sources: [{name: letters, data: my_text, reader: plain_text}]",
        ("sample",): "sample: {corpus: bnc, characters: 1000000}",
        ("sequences",): "sequences: {groups: [...]}",
    }

    description: str = ""
    """Description of the corpus in one or two sentences."""
    languages: Annotated[tuple[Language, ...], Unique()] = ()
    """Languages of the text, as two- or three-letter codes (ISO 639). Exported models contain these codes. If the list
    contains only en, paragraphs of plain text are split into sentences. An empty list means unknown.
    """
    byte_premium: BytePremium | dict[BlockName, BytePremium] | None = None
    """Number of UTF-8 bytes of the corpus's language that correspond to one byte of English. The value is a number, the
    name of a language and script (`eng_latn`, `nld_latn`, `zho_hans`, `zho_hant`), or a mapping from sources to such
    values. A multilingual sample has its byte premiums under `languages`. `word_count: adjusted` requires this key.
    """
    word_count: WordCountName = "white_space"
    """Definition of a word for budgets, checkpoints and tracks. `white_space`: text between white space. `adjusted`:
    the number of UTF-8 bytes divided by 5.43 times `byte_premium` (BabyLM's multilingual track). `jieba`: words found
    by jieba (Chinese BabyLM).
    """
    sources: Annotated[tuple[CorpusSource, ...], MinLen(1)] = ABSENT
    """Raw sources of the corpus, each with its reader."""
    sample: Sample = ABSENT
    """Random sample of the documents of another corpus."""
    sequences: Sequences = ABSENT
    """Selected texts that are grouped into sequences of a model's input length."""
    sentence_model: DataName | None = None
    """Raw input with Punkt parameters (NLTK's punkt_tab/english) for splitting text into sentences. `null` uses the
    parameters that Hatchery ships.
    """
    card_tokenizer: TokenizerName | None = None
    """Tokenizer whose subwords are also counted on the corpus card; `null` counts only words."""

    @property
    def made_from(self) -> Literal["sources", "sample", "sequences"]:
        """The key that defines the corpus: `sources`, `sample` or `sequences`."""
        return "sources" if self.sources is not ABSENT else "sample" if self.sample is not ABSENT else "sequences"

    @property
    def word_counting(self) -> WordCounting:
        """The rule by which the words of this corpus are counted. For the rule `adjusted`, the returned object also
        contains the byte premium of each source.
        """
        if self.word_count != "adjusted":
            return WordCounting(word_count=self.word_count)
        premiums: dict[str, float] = {}
        if self.sample is not ABSENT and self.sample.languages is not ABSENT:
            for part in self.sample.languages.values():
                premiums |= dict.fromkeys(part.sources, premium_of(part.byte_premium))
        if isinstance(self.byte_premium, dict):
            premiums |= {source: premium_of(value) for source, value in self.byte_premium.items()}
            single = None
        else:
            single = None if self.byte_premium is None else premium_of(self.byte_premium)
        return WordCounting(word_count="adjusted", byte_premium=single, byte_premiums=premiums)

    def _check_premiums(self) -> None:
        """Raise RefusedError in three cases: a multilingual sample has the key `byte_premium`, a byte premium belongs
        to an unknown source, or a byte premium is missing.
        """
        mixed = self.sample is not ABSENT and self.sample.languages is not ABSENT
        if mixed and self.byte_premium is not None:
            raise conflict("byte_premium", self.byte_premium, "`languages`", "each language has its own byte premium")
        if self.word_count == "adjusted" and self.byte_premium is None and not mixed:
            raise RefusedError(
                "byte_premium",
                "the key is missing; `word_count: adjusted` divides the number of bytes by the byte premium",
            )
        if isinstance(self.byte_premium, dict) and self.sources is not ABSENT:
            names = [source.name for source in self.sources]
            for name in sorted({*names} ^ {*self.byte_premium}):
                if name in names:
                    raise RefusedError("byte_premium", f"got no premium for the source {name!r}, expected one number")
                problem = f"got a premium for {name!r}, which is not a source; the sources are {', '.join(names)}"
                raise RefusedError("byte_premium", problem)

    def __post_init__(self) -> None:
        self._check_premiums()
        if self.sources is ABSENT:
            for key in ("decontamination", "near_duplicates"):
                if getattr(self, key) is not None:
                    expected = f"null with `{self.made_from}`; set `{key}` in the corpus with the sources"
                    raise refused(key, getattr(self, key), expected)
            return
        refuse_repeated_names(self.sources)
        for index, source in enumerate(self.sources):
            language = source.options.punkt_language if isinstance(source, PlainTextSource) else None
            if self.sentence_model is None and language not in (None, ENGLISH):
                raise RefusedError(
                    f"sources.{index}.options.sentences",
                    f"got 'punkt:{language}', but only the model of English comes with Hatchery; set "
                    "`sentence_model: nltk_punkt`, which has many languages, or `sentences: none`",
                )


@dataclass(frozen=True, kw_only=True)
class VocabularyFile(VocabularySettings, OneOfKeys):
    """A vocabulary for reduced-vocabulary text: words of child-directed transcripts, or a published word list."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: my_transcripts",
        ("embedded",): "embedded: childes",
    }

    description: str = ""
    """Description of the vocabulary in one or two sentences."""
    data: DataName = ABSENT
    """Raw input, by its name under `data` in config.yaml."""
    embedded: Literal["childes"] = ABSENT
    """Folder of the generated demo data."""
    dictionary: DataName | None = None
    """Raw input with one word per line. A transcribed word is included if it is in this dictionary or ends in `ion`,
    `ing`, `est`, `er`, `ed` or `s`. `null` includes every word. The key has no effect on word lists.
    """
    released: DataName | None = None
    """Raw input with a published vocabulary, a CSV list (word, frequency). The built vocabulary is compared with this
    published vocabulary. `null`: no comparison.
    """


@dataclass(frozen=True, kw_only=True)
class SelectionFile(SelectionKeys, OneOfKeys):
    """Text selected from raw files or from a corpus: sentences or spans of words that all belong to a vocabulary, or
    randomly drawn windows.
    """

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data", "options"): "data: my_text, options: {format: text}",
        ("embedded", "options"): "embedded: c4, options: {format: by_suffix}",
        ("corpus",): "corpus: my_text",
    }

    description: str = ""
    """Description of the selection in one or two sentences."""
    data: DataName = ABSENT
    """Raw input, by its name under `data` in config.yaml."""
    embedded: Literal["bookcorpus", "c4", "cbt", "text", "wikipedia"] = ABSENT
    """Folder of the generated demo data."""
    options: RawTextOptions = ABSENT
    """Format and names of the raw files."""
    corpus: CorpusName = ABSENT
    """Corpus from which text is selected: its documents of all splits, after cleaning."""
    vocabulary: VocabularyName
    """Vocabulary, by the name of a file in config/vocabularies/. With `level: windows`, a selected text may also
    contain other words.
    """
    sentence_model: DataName | None = None
    """Raw input with Punkt parameters (NLTK's punkt_tab/english) for splitting text into sentences. `null` uses the
    parameters that Hatchery ships.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.corpus is ABSENT:
            return
        if self.options is not ABSENT:
            reason = "the sources of the corpus have their own options"
            raise conflict("options", self.options, "`corpus`", reason)
        if self.sentence_model is not None:
            reason = "the documents of the corpus are already split into sentences"
            raise conflict("sentence_model", self.sentence_model, "`corpus`", reason)


@dataclass(frozen=True, kw_only=True)
class TokenizerFile(TokenizerSettings, OneOfKeys):
    """Settings of the training of a tokenizer, and the corpus on which it is trained."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("corpus", "kind"): "corpus: my_text, kind: wordpiece",
        ("corpora", "kind"): "corpora: [german, english], kind: bpe",
        ("path",): "path: ~/model/tokenizer.json",
    }

    kind: TokenizerKind = ABSENT
    """Tokenizer algorithm: WordPiece (greedy, longest match first; LTG-BERT, ELC-BERT), byte-level BPE
    (reduced-vocabulary study), BPE of characters as in SentencePiece (translation), or Unigram, which chooses the most
    probable pieces and learns by pruning, as in SentencePiece."""
    description: str = ""
    """Description of the tokenizer in one or two sentences."""
    corpus: CorpusName = ABSENT
    """Corpus on whose training split the tokenizer is trained."""
    corpora: Annotated[tuple[CorpusName, ...], MinLen(1), Unique()] = ABSENT
    """Corpora on which one tokenizer is trained, for example corpora of two languages between which models
    translate."""
    path: NotEmpty = ABSENT
    """Pretrained tokenizer: a tokenizer.json, or a SentencePiece model (*.model). The key `vocabulary_size` is
    required, and must agree with the file; all other training keys have no effect.
    """

    encoded_units: EncodedUnit = "sentences"
    """Units in which corpora are encoded: separate sentences, or whole documents with a newline between paragraphs and
    a space between sentences (GPT-BERT)."""

    def __post_init__(self) -> None:
        # Do nothing if `kind` is missing, because the validation of the keys reports the missing key.
        if self.path is ABSENT and self.kind is not ABSENT:
            super().__post_init__()

    @property
    def trained_on(self) -> tuple[str, ...]:
        """The corpora on which the tokenizer is trained; empty if the tokenizer is read from a file."""
        if self.path is not ABSENT:
            return ()
        return self.corpora if self.corpora is not ABSENT else (self.corpus,)

    def training(self) -> dict[str, object]:
        """Return the settings of the tokenizer's training (`TokenizerSettings`), or the settings for reading the
        tokenizer from a file.
        """
        if self.path is not ABSENT:
            return {"imported": True, "vocabulary_size": self.vocabulary_size}
        return keys_of(self, only=TokenizerSettings)


@dataclass(frozen=True, kw_only=True)
class SweepType(CandidateKeys):
    """A tokenizer type in a sweep, with its candidate tokenizers."""

    definition: Annotated[dict[str, Any], PartOf(TokenizerSettings)]
    """Keys of the tokenizer's definition, except `vocabulary_size`, which the sweep sets. Omitted keys have their
    default values.
    """
    reference: DataName | None = None
    """Raw input, by its name in config.yaml: tokenizer.json of a pretrained tokenizer of this tokenizer type. Its
    word-split ratio is measured on the same sample. `null`: no pretrained tokenizer.
    """


@dataclass(frozen=True, kw_only=True)
class TokenizerSweepFile(SweepKeys):
    """Candidate tokenizers, the corpus on which they are measured, and the rule that selects a tokenizer."""

    description: str = ""
    """Description of the sweep in one or two sentences."""
    corpus: CorpusName
    """Corpus on which the candidates are trained and measured."""
    types: Annotated[dict[BlockName, SweepType], MinLen(1)]
    """Tokenizer types by name, in the order of the tables. If several tokenizer types have equal ESMS, the first of
    these tokenizer types is selected.
    """
    morphemes_data: DataName | None = None
    """Raw input, by its name in config.yaml: a CSV list with the columns `word` and `morphemes` (separated by spaces).
    `null` uses the list that the key `morphemes` names.
    """
    published: str | None = None
    """Table of published values in config/published/ (without .csv); `null` shows no published values."""

"""Training a tokenizer on the train split of a corpus: the BabyLM/ELC-BERT WordPiece, or byte-level BPE.

Source: LTG-BERT §2.1 and ELC-BERT §2 of the reference (byte-level pre-tokeniser with prefix space, individual digits,
WordPiece with an empty continuation prefix). The same documents give the same `tokenizer.json`, byte for byte,
whatever the number of threads or the order of the documents.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from hatchery.errors import ConfigError, CorpusError, TokenizationError
from hatchery.progress import Progress
from hatchery.storage.atomic import atomic_path
from hatchery.storage.manifests import read_manifest, stage_run
from hatchery.tokenization.documents import count_documents, read_batches, shards_by_split
from hatchery.tokenization.special_tokens import CLS, SEP, SPECIAL_IDS, SPECIAL_PATTERN, SPECIAL_TOKENS, TAB, UNKNOWN
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.typed import build, stage_body

TRAIN_SPLIT = "train"
DOCUMENTS_PER_BATCH = 256
BYTE_SYMBOLS = 256


@dataclass(frozen=True)
class TokenizerSettings:
    """What determines a tokenizer, beside the corpus."""

    kind: Literal["wordpiece", "byte_bpe"]
    """`wordpiece` splits greedily, longest match first; `byte_bpe` applies merges. Both learn by merging pairs."""
    vocabulary_size: int
    """Entries including the seven special tokens and the byte alphabet. A small corpus may not fill it."""
    min_frequency: int
    """Pairs rarer than this are not merged."""
    special_tokens: tuple[str, ...] = SPECIAL_TOKENS
    """Must be the seven of this house in their order; spelled out so that the configuration shows them."""
    sentences_limit: int | None = None
    """Train on this many lines, spread evenly over the corpus; `null` takes all."""
    continuing_subword_prefix: str = ""
    """Only the empty prefix: with another one the library's trainer gives another vocabulary at every run."""
    normalizer: Literal["none", "nfkc"] = "none"
    """Unicode normalisation before everything else; the published tokenizers have none."""
    byte_alphabet: Literal["full", "observed"] = "full"
    """`full` has all 256 byte symbols, so no character is unknown. The published tokenizers have `observed`: they
    lack about 50 bytes and turn every word with a rare character into [UNK]."""
    individual_digits: bool = True
    """Every digit is a token of its own."""
    max_input_chars_per_word: int = 100
    """WordPiece only: a word of more bytes becomes one [UNK]."""

    def __post_init__(self) -> None:
        """Refuse what cannot be trained. Raises ConfigError naming the key."""
        if self.special_tokens != SPECIAL_TOKENS:
            raise ConfigError(f"special_tokens: must be {', '.join(SPECIAL_TOKENS)} in this order")
        if self.continuing_subword_prefix != "":
            raise ConfigError(
                f"continuing_subword_prefix: {self.continuing_subword_prefix!r} is not supported, only the empty "
                "prefix is: with any other the trainer is not deterministic"
            )
        smallest = len(SPECIAL_TOKENS) + (BYTE_SYMBOLS if self.byte_alphabet == "full" else 1)
        if self.vocabulary_size < smallest:
            raise ConfigError(
                f"vocabulary_size: {self.vocabulary_size} is too small, the {len(SPECIAL_TOKENS)} special tokens and "
                f"the {self.byte_alphabet} byte alphabet need at least {smallest}"
            )
        for key in ("min_frequency", "sentences_limit", "max_input_chars_per_word"):
            value = getattr(self, key)
            least = 0 if key == "min_frequency" else 1
            if value is not None and value < least:
                raise ConfigError(f"{key}: expected at least {least}, got {value}")


def training_lines(text: str) -> Iterator[str]:
    """The lines of a document as the tokenizer learns from them: stripped, none empty, no special token in them.

    As published, `[TAB] ` is removed. A line with another special token is cut there, as encoding cuts it, because
    the trainer would otherwise learn the letters of `[UNK]` as a word.
    """
    for line in text.split("\n"):
        for piece in SPECIAL_PATTERN.split(line.strip().replace(f"{TAB} ", "")):
            if piece and not piece.isspace():
                yield piece


def untrained(settings: TokenizerSettings) -> Backend:
    """A tokenizer with every part but its vocabulary."""
    if settings.kind == "wordpiece":
        model: models.Model = models.WordPiece(
            vocab={},
            unk_token=UNKNOWN,
            max_input_chars_per_word=settings.max_input_chars_per_word,
            continuing_subword_prefix="",
        )
    else:
        model = models.BPE(unk_token=UNKNOWN)
    backend = Backend(model)
    if settings.normalizer == "nfkc":
        backend.normalizer = normalizers.NFKC()
    parts: list[pre_tokenizers.PreTokenizer] = [pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)]
    if settings.individual_digits:
        parts.append(pre_tokenizers.Digits(individual_digits=True))
    backend.pre_tokenizer = pre_tokenizers.Sequence(parts)
    backend.decoder = decoders.ByteLevel()
    # The published STRICT tokenizers have a byte-level post-processor that adds no [CLS]; evaluation needs them.
    backend.post_processor = processors.TemplateProcessing(
        single=f"{CLS} $A {SEP}",
        pair=f"{CLS} $A {SEP} $B:1 {SEP}:1",
        special_tokens=[(CLS, SPECIAL_IDS[CLS]), (SEP, SPECIAL_IDS[SEP])],
    )
    return backend


def train(lines: Iterator[str] | Iterator[list[str]], settings: TokenizerSettings) -> Backend:
    """Train on lines or lists of lines. Raises TokenizationError when the alphabet exceeds the vocabulary size."""
    backend = untrained(settings)
    # All characters of byte-level text are in the alphabet, which the library sorts, and pairs of equal count are
    # ordered by their ids: nothing here depends on the order of a hash table (unlike with a continuation prefix).
    options: dict[str, Any] = {
        "vocab_size": settings.vocabulary_size,
        "min_frequency": settings.min_frequency,
        "special_tokens": list(SPECIAL_TOKENS),
        "initial_alphabet": sorted(pre_tokenizers.ByteLevel.alphabet()) if settings.byte_alphabet == "full" else [],
        "show_progress": False,
    }
    if settings.kind == "wordpiece":
        backend.train_from_iterator(lines, trainers.WordPieceTrainer(continuing_subword_prefix="", **options))
    else:
        backend.train_from_iterator(lines, trainers.BpeTrainer(**options))
    if backend.get_vocab_size() > settings.vocabulary_size:
        raise TokenizationError(
            f"vocabulary_size: {settings.vocabulary_size} is too small, special tokens and the bytes that occur "
            f"already make {backend.get_vocab_size()} entries"
        )
    return backend


class _LineStream:
    """Lists of training lines, document by document; counts what it gives out."""

    def __init__(self, shards: list[Path], progress: Progress, keep: tuple[int, int] | None) -> None:
        self.shards = shards
        self.progress = progress
        self.keep = keep
        self.seen = self.lines = self.documents = 0

    def __iter__(self) -> Iterator[list[str]]:
        for path in self.shards:
            for batch in read_batches(path, DOCUMENTS_PER_BATCH):
                for text in batch.texts:
                    yield [line for line in training_lines(text) if self._kept()]
                self.documents += len(batch.texts)
                self.progress.update(len(batch.texts))

    def _kept(self) -> bool:
        index = self.seen
        self.seen += 1
        if self.keep is not None:
            limit, total = self.keep
            if (index + 1) * limit // total == index * limit // total:
                return False
        self.lines += 1
        return True


def train_tokenizer(settings: dict[str, Any], corpus: str | Path, output: str | Path) -> None:
    """Stage `train_tokenizer`: train on the train split of the corpus whose manifest is `corpus`.

    Writes `tokenizer.json` beside the manifest at `output`, with measures `vocabulary_size` (the real one, which is
    smaller than the one asked for when the corpus has too few frequent pairs), `training_documents` and
    `training_lines`. Raises ConfigError, CorpusError or TokenizationError.
    """
    tokenizer_settings = build(TokenizerSettings, stage_body(settings))
    with stage_run(output, settings, {"corpus": corpus}) as run:
        manifest = read_manifest(corpus)
        manifest.verify()
        shards = shards_by_split(manifest).get(TRAIN_SPLIT)
        if not shards:
            raise CorpusError(f"{manifest.path}: has no split {TRAIN_SPLIT!r}")
        documents = count_documents(shards)
        keep = None
        if tokenizer_settings.sentences_limit is not None:
            with Progress(documents, "counting training lines", "documents") as progress:
                total = sum(len(lines) for lines in _LineStream(shards, progress, None))
            keep = (tokenizer_settings.sentences_limit, total) if total > tokenizer_settings.sentences_limit else None
        with Progress(documents, "training the tokenizer", "documents") as progress:
            stream = _LineStream(shards, progress, keep)
            backend = train(iter(stream), tokenizer_settings)
        if stream.lines == 0:
            raise CorpusError(f"{manifest.path}: the split {TRAIN_SPLIT!r} has no text to train a tokenizer on")
        path = run.folder / "tokenizer.json"
        with atomic_path(path) as partial:
            backend.save(str(partial), pretty=True)
            tokenizer = load_tokenizer(partial)
        run.add_output(path)
        run.measures.update(
            vocabulary_size=tokenizer.vocabulary_size,
            training_documents=stream.documents,
            training_lines=stream.lines,
        )

"""Deterministic training of a tokenizer on the documents of corpora.

Kinds and sources: docs/papers/ltg-bert.md, "Tokenizer" (BNC) and "Tokenizers for BabyLM"; docs/papers/elc-bert.md,
"Tokenizers"; docs/papers/reduced-vocabulary.md, "Tokenizers". The parts other than the vocabulary are in
`definitions.py`. The same text gives the same `tokenizer.json`, byte for byte, for any number of threads and (if all
lines are used) any order of the documents. The library's trainers are used if they are deterministic: for BPE, and for
WordPiece with an empty prefix. `train_wordpiece` makes WordPiece with a prefix deterministic, and `unigram_training.py`
replaces the library's Unigram trainer.

The library's WordPiece trainer numbers the single characters that continue a word (`@@a`) in the order of a randomly
seeded hash table, and ties between pairs of equal count are broken by these ids: six runs give six files. So WordPiece
with a prefix is trained in two passes with the library's trainer. The first pass allows no merges and finds these
characters; the second pass gets them as fixed entries in the order of their code points, so that no randomness remains.
The vocabulary equals the library's except for the order of these characters; a test compares the vocabulary with a
plain merge loop, which would be much slower.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tokenizers import AddedToken, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from hatchery.artifacts.atomic import atomic_path, write_json
from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.errors import CorpusError, TokenizationError
from hatchery.progress import Progress
from hatchery.tokenization import definitions
from hatchery.tokenization.documents import Lines, LineStream, count_documents, shards_of
from hatchery.tokenization.spaceless_text import SAMPLED_BYTES, share_to_train_on
from hatchery.tokenization.special_tokens import SpecialTokens
from hatchery.tokenization.tokenizer_file import load_tokenizer, special_tokens_map, tokenizer_config
from hatchery.tokenization.trainer_settings import BYTE_LEVEL, TokenizerSettings
from hatchery.tokenization.unigram_training import train_unigram


def train_wordpiece(
    untrained: Callable[[], Backend],
    lines: Lines,
    vocabulary_size: int,
    min_frequency: int,
    special_tokens: list[str],
    prefix: str,
    initial_alphabet: list[str],
) -> dict[str, int]:
    """Return the ids of the entries: special tokens, then the characters that continue a word and the other characters
    (each by code point), then the merged entries in the order of their merges.

    `untrained` creates a tokenizer with the normaliser and pre-tokeniser to use; `lines` are read once with an empty
    prefix and twice otherwise, so with a prefix they must not be an iterator. The result exceeds `vocabulary_size` if
    special tokens and characters alone exceed it.
    """

    def learn(fixed: list[str], size: int) -> dict[str, int]:
        backend = untrained()
        trainer = trainers.WordPieceTrainer(
            vocab_size=size,
            min_frequency=min_frequency,
            special_tokens=fixed,
            initial_alphabet=initial_alphabet,
            continuing_subword_prefix=prefix,
            show_progress=False,
        )
        backend.train_from_iterator(lines, trainer)
        return backend.get_vocab(with_added_tokens=True)

    if not prefix:
        return learn(special_tokens, vocabulary_size)
    unmerged = learn(special_tokens, len(special_tokens))
    # Without merges an entry is a single character or the prefix with a character, so an entry of this length that
    # begins with the prefix is a character that continues a word.
    continuing = sorted(
        entry
        for entry in unmerged
        if len(entry) == len(prefix) + 1 and entry.startswith(prefix) and entry not in special_tokens
    )
    return learn([*special_tokens, *continuing], vocabulary_size)


def wordpiece_model(vocabulary: dict[str, int], settings: TokenizerSettings) -> models.WordPiece:
    """Return the WordPiece model of a vocabulary: greedy, longest match first; a word that entries cannot cover becomes
    one unknown token.
    """
    return models.WordPiece(
        vocab=vocabulary,
        unk_token=settings.special.unknown,
        max_input_chars_per_word=settings.max_input_chars_per_word,
        continuing_subword_prefix=settings.continuing_subword_prefix,
    )


def untrained(settings: TokenizerSettings) -> Backend:
    """Return a tokenizer with all parts except its vocabulary."""
    special = settings.special
    if settings.kind == "wordpiece":
        model: models.Model = wordpiece_model({}, settings)
    elif settings.kind in ("byte_bpe", "bpe"):
        # For GPT-BERT, a word that is an entry becomes one token, even if merges would not produce it
        # (docs/papers/gpt-bert.md, "Tokenizer").
        model = models.BPE(unk_token=special.unknown, ignore_merges=settings.pre_tokenizer == "gpt_bert")
    else:
        model = models.Unigram()
    backend = Backend(model)
    normalizer = definitions.normalizer(settings.normalizer)
    if normalizer is not None:
        backend.normalizer = normalizer
    backend.pre_tokenizer = definitions.pre_tokenizer(
        settings.pre_tokenizer,
        settings.reading,
        settings.individual_digits,
        settings.prefix_space,
        settings.max_input_chars_per_word,
    )
    backend.decoder = definitions.decoder(settings.pre_tokenizer, settings.continuing_subword_prefix)
    if settings.post_processor == "template":
        backend.post_processor = definitions.post_processor(special)
    return backend


def train(lines: Lines, settings: TokenizerSettings) -> Backend:
    """Return a tokenizer trained on lines or lists of lines, which must be repeatable (no iterator) for a continuation
    prefix.

    Raises TokenizationError if special tokens and alphabet alone exceed the vocabulary size. A vocabulary below the
    requested size is returned unchanged; see `check_size`.
    """
    backend = untrained(settings)
    names = list(settings.special.order)
    full = settings.pre_tokenizer in BYTE_LEVEL and settings.byte_alphabet == "full"
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if full else []
    if settings.kind == "wordpiece":
        prefix = settings.continuing_subword_prefix
        vocabulary = train_wordpiece(
            lambda: untrained(settings),
            lines,
            settings.vocabulary_size,
            settings.min_frequency,
            names,
            prefix,
            alphabet,
        )
        backend.model = wordpiece_model(vocabulary, settings)
    elif settings.kind in ("byte_bpe", "bpe"):
        # All characters of the text are in the alphabet, which the library sorts, and pairs of equal count are ordered
        # by their ids, so the result does not depend on the order of a hash table.
        trainer = trainers.BpeTrainer(
            vocab_size=settings.vocabulary_size,
            min_frequency=settings.min_frequency,
            special_tokens=names,
            initial_alphabet=alphabet,
            show_progress=False,
        )
        backend.train_from_iterator(lines, trainer)
    else:
        pieces = train_unigram(backend, lines, settings.vocabulary_size - len(names), settings.min_frequency)
        backend.model = models.Unigram(
            [(name, 0.0) for name in names] + pieces, settings.special.ids[settings.special.unknown]
        )
    backend.add_special_tokens(_added_tokens(settings.special))
    size = backend.get_vocab_size()
    if size > settings.vocabulary_size:
        raise TokenizationError(
            f"vocabulary_size: {settings.vocabulary_size} is too small, special tokens and the characters that occur "
            f"already make {size} entries"
        )
    return backend


def _added_tokens(special: SpecialTokens) -> list[AddedToken]:
    # As in roberta-base, the mask token absorbs the space before it (lstrip), because byte-level words begin with a
    # space.
    return [
        AddedToken(
            name, special=True, normalized=False, lstrip=name == special.mask and special.separators_in_pair == 2
        )
        for name in special.order
    ]


def check_size(backend: Backend, settings: TokenizerSettings, where: str) -> None:
    """Raise TokenizationError naming `where` if the vocabulary is smaller than requested and this is not allowed."""
    size = backend.get_vocab_size()
    if size < settings.vocabulary_size and not settings.allow_smaller:
        raise TokenizationError(
            f"{where}: vocabulary_size: got {settings.vocabulary_size}, but the text supports only {size} entries with "
            f"min_frequency {settings.min_frequency}; ask for at most {size}, or set allow_smaller: true"
        )


def lines_to_keep(settings: TokenizerSettings, shards: Sequence[Path], documents: int) -> tuple[int, int] | None:
    """Return the number of lines to train on, spread evenly, and the number of all lines; None for all lines.

    Some lines are left out if there are more than `sentences_limit`, or if text without spaces would take too much
    memory.
    """
    total = total_bytes = 0
    with Progress(documents, "counting training lines", "documents") as progress:
        for lines in LineStream(shards, progress, settings.sources):
            total += len(lines)
            total_bytes += sum(len(line.encode()) for line in lines)
    kept = min(total, settings.sentences_limit or total)
    most = 1_000_000 * settings.spaceless_megabytes
    if total_bytes * kept > most * total:
        # At most half of the text is sampled, because the extrapolation assumes a small sample.
        sampled = max(1, min(total * SAMPLED_BYTES // total_bytes, total // 2))
        sample = LineStream(shards, None, settings.sources, (sampled, total))
        share = share_to_train_on(untrained(settings), sample, total_bytes * kept // total, most)
        if share < 1:
            kept = max(1, int(kept * share))
            print(
                f"training on {kept:,} of {total:,} lines, spread evenly: this text has no spaces, and every distinct "
                f"piece of the text takes memory; `spaceless_megabytes` ({settings.spaceless_megabytes:g}) and "
                "`sentences_limit` set the amount of training text",
                file=sys.stderr,
            )
    return (kept, total) if kept < total else None


def learn_tokenizer(settings: TokenizerSettings, corpus: Sequence[Manifest], run: StageRun) -> None:
    """Train a tokenizer on the documents of the corpus, or of several corpora.

    Writes `tokenizer.json` into the folder of `run`, with the two further files that transformers needs, and the
    measures `vocabulary_size`, `training_documents` and `training_lines`. Raises CorpusError, or TokenizationError if
    the text does not support the vocabulary size.
    """
    where = ", ".join(str(manifest.path) for manifest in corpus)
    shards = [shard.path for manifest in corpus for shard in shards_of(manifest, settings.splits)]
    documents = count_documents(shards)
    sources = settings.sources
    keep = lines_to_keep(settings, shards, documents)
    passes = 2 if settings.continuing_subword_prefix else 1
    with Progress(documents * passes, "training the tokenizer", "documents") as progress:
        stream = LineStream(shards, progress, sources, keep)
        backend = train(stream, settings)
    if stream.lines == 0:
        of_sources = f" of the sources {', '.join(sources)}" if sources else ""
        splits = ", ".join(map(repr, settings.splits))
        raise CorpusError(f"{where}: the split {splits}{of_sources} has no text to train a tokenizer on")
    check_size(backend, settings, where)
    path = run.folder / "tokenizer.json"
    with atomic_path(path) as partial:
        backend.save(str(partial), pretty=True)
        tokenizer = load_tokenizer(partial)
    run.add_output(path)
    for name, content in (
        ("tokenizer_config.json", tokenizer_config(backend, settings.special)),
        ("special_tokens_map.json", special_tokens_map(settings.special)),
    ):
        write_json(run.folder / name, content)
        run.add_output(run.folder / name)
    run.measures.update(
        vocabulary_size=tokenizer.vocabulary_size,
        training_documents=stream.documents,
        training_lines=stream.lines,
        **({} if keep is None else {"available_lines": keep[1]}),
    )

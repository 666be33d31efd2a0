"""Deterministic training of a tokenizer on the documents of corpora.

Sources: docs/papers/ltg-bert.md, "Tokenizer" (BNC) and "Tokenizers for BabyLM"; docs/papers/elc-bert.md, "Tokenizers";
docs/papers/reduced-vocabulary.md, "Tokenizers". `definitions.py` contains all parts of a tokenizer except the
vocabulary. The same text gives the same `tokenizer.json`, byte for byte, for any number of threads and (if all lines
are used) any order of the documents. BPE and WordPiece with an empty prefix use the trainers of the library
`tokenizers`, which are deterministic. `train_wordpiece` makes WordPiece with a prefix deterministic, and
`unigram_training.py` replaces the Unigram trainer of `tokenizers`.

The library's WordPiece trainer numbers the single characters that continue a word (`@@a`) in the order of a randomly
seeded hash table, and orders pairs of equal count by these numbers. So the tokenizer file differs between runs. To
avoid this, WordPiece with a prefix is trained here in two passes. The first pass makes no merges and finds these
characters; the second pass receives these characters as fixed entries, in the order of their code points. Apart from
the order of these characters and of pairs with equal counts, the vocabulary equals the library's vocabulary. A test
compares the vocabulary with the result of a plain merge loop, which would be much slower.
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
    """Return the id of each entry: special tokens, characters that continue a word, other characters, then merged
    entries.

    Characters are ordered by code point; merged entries are in the order of their merges. `untrained` returns a
    tokenizer with the normaliser and pre-tokeniser to use. With a prefix, `lines` are read twice, so `lines` must not
    be an iterator. The result exceeds `vocabulary_size` if special tokens and characters alone exceed this size.
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
    # Without merges, every entry is one character, with or without the prefix. Entries with the prefix are characters
    # that continue a word.
    continuing = sorted(
        entry
        for entry in unmerged
        if len(entry) == len(prefix) + 1 and entry.startswith(prefix) and entry not in special_tokens
    )
    return learn([*special_tokens, *continuing], vocabulary_size)


def wordpiece_model(vocabulary: dict[str, int], settings: TokenizerSettings) -> models.WordPiece:
    """Return the WordPiece model of a vocabulary: greedy, longest match first.

    A word that is not a sequence of entries becomes one unknown token.
    """
    return models.WordPiece(
        vocab=vocabulary,
        unk_token=settings.special.unknown,
        max_input_chars_per_word=settings.max_input_chars_per_word,
        continuing_subword_prefix=settings.continuing_subword_prefix,
    )


def untrained(settings: TokenizerSettings) -> Backend:
    """Return a tokenizer that is complete except for its vocabulary."""
    special = settings.special
    if settings.kind == "wordpiece":
        model: models.Model = wordpiece_model({}, settings)
    elif settings.kind in ("byte_bpe", "bpe"):
        # In GPT-BERT, a word that is an entry becomes one token, even if merges would not produce this token
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
    """Return a tokenizer trained on `lines` (lines or lists of lines). With a continuation prefix, `lines` must not be
    an iterator, because it is read twice.

    Raises TokenizationError if special tokens and alphabet alone exceed the vocabulary size. The vocabulary may be
    smaller than requested: see `check_size`.
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
        # The result does not depend on a hash table: the library sorts the alphabet, which contains all characters of
        # the text, and orders pairs of equal count by id.
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
            f"vocabulary_size: got {settings.vocabulary_size}, expected at least {size}, the number of special tokens "
            "and of different characters in the text"
        )
    return backend


def _added_tokens(special: SpecialTokens) -> list[AddedToken]:
    # In the set `roberta`, as in roberta-base, the mask token includes the space before the token (lstrip), because
    # byte-level words begin with a space.
    return [
        AddedToken(
            name, special=True, normalized=False, lstrip=name == special.mask and special.separators_in_pair == 2
        )
        for name in special.order
    ]


def check_size(backend: Backend, settings: TokenizerSettings, where: str) -> None:
    """Raise TokenizationError, naming `where`, if the vocabulary is smaller than requested, unless
    `settings.allow_smaller` is true.
    """
    size = backend.get_vocab_size()
    if size < settings.vocabulary_size and not settings.allow_smaller:
        raise TokenizationError(
            f"{where}: vocabulary_size: got {settings.vocabulary_size}, but the text supports only {size} entries "
            f"with min_frequency {settings.min_frequency}; set at most {size}, or set allow_smaller: true"
        )


def lines_to_keep(settings: TokenizerSettings, shards: Sequence[Path], documents: int) -> tuple[int, int] | None:
    """Return the number of evenly spaced lines to train on, and the number of all lines; None to train on all lines.

    Lines are left out if there are more than `sentences_limit` lines, or if distinct words in scripts without spaces
    would need too much memory.
    """
    total = total_bytes = 0
    with Progress(documents, "counting training lines", "documents") as progress:
        for lines in LineStream(shards, progress, settings.sources):
            total += len(lines)
            total_bytes += sum(len(line.encode()) for line in lines)
    kept = min(total, settings.sentences_limit or total)
    most = 1_000_000 * settings.spaceless_megabytes
    if total_bytes * kept > most * total:
        # The sample is at most half of the text, because the extrapolation assumes a sample much smaller than the text.
        sampled = max(1, min(total * SAMPLED_BYTES // total_bytes, total // 2))
        sample = LineStream(shards, None, settings.sources, (sampled, total))
        share = share_to_train_on(untrained(settings), sample, total_bytes * kept // total, most)
        if share < 1:
            kept = max(1, int(kept * share))
            print(
                f"training on {kept:,} of {total:,} lines, spread evenly, because distinct words in scripts without "
                f"spaces would need too much memory; `spaceless_megabytes` ({settings.spaceless_megabytes:g}) and "
                "`sentences_limit` set the amount of training text",
                file=sys.stderr,
            )
    return (kept, total) if kept < total else None


def learn_tokenizer(settings: TokenizerSettings, corpus: Sequence[Manifest], run: StageRun) -> None:
    """Train a tokenizer on the documents of one or several corpora.

    Writes `tokenizer.json`, `tokenizer_config.json` and `special_tokens_map.json` into the folder of `run`, and the
    measures `vocabulary_size`, `training_documents`, `training_lines` and, if lines are left out, `available_lines`.
    Raises CorpusError for a corpus without text, and TokenizationError if the vocabulary size is too large for the
    text, or too small for special tokens and alphabet.
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

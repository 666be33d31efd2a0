"""Encoding of a corpus into token shards, with word starts, sentence boundaries, and statistics such as the fertility
(number of subwords per word).

Sentences are encoded one by one, without [CLS] and [SEP], as in the code of LTG-BERT and ELC-BERT
(docs/papers/ltg-bert.md, "Split and shards"; docs/papers/elc-bert.md, "Segments"); [PAR] ends the last sentence of each
paragraph if the tokenizer has this token. Alternatively, each document is encoded as one text (docs/papers/gpt-bert.md,
"Packing"). Each document shard becomes one token shard, whose bytes do not depend on the number of threads or the batch
size. Sentences, words and tokens are counted exactly, as in the tables of corpus sizes in papers (LTG-BERT, Table 1).
"""

import time
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np

from hatchery.artifacts.atomic import write_json, write_text
from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.corpora.word_counting import BETWEEN_WHITE_SPACE, WordCounting
from hatchery.errors import CorpusError
from hatchery.progress import Progress
from hatchery.sanitize import csv_text
from hatchery.tokenization.documents import count_documents, read_batches, shards_by_split, split_sentences
from hatchery.tokenization.special_tokens import TEXT_MARKERS
from hatchery.tokenization.token_bytes import paragraph_bytes, represented_bytes
from hatchery.tokenization.token_counts import Counts, count_by_source, frequency_at_95_percent, n_text_words
from hatchery.tokenization.token_shards import TokenTable, id_dtype, write_shard
from hatchery.tokenization.token_words import (
    WordCounter,
    counting_measures,
    counts_of_document,
    sentence_token_ends,
    whole_token_ends,
    word_counter,
)
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer, use_threads
from hatchery.tokenization.trainer_settings import EncodedUnit
from hatchery.tokenization.word_starts import SENTENCES_PER_CALL, WordStarts, text_word_starts

# If unknown tokens are more than this share of all subwords, the share is shown to the user.
UNKNOWN_TOLD = 0.001


class DocumentEncoder:
    """Encodes batches of documents to token tables. Each document is encoded either sentence by sentence or as one
    text.
    """

    def __init__(
        self, tokenizer: Tokenizer, units: EncodedUnit = "sentences", counter: WordCounter | None = None
    ) -> None:
        """`counter` counts words by a rule other than white space; if `counter` is None, words between white space are
        counted.
        """
        self.tokenizer, self._units, self.counter = tokenizer, units, counter
        self._word_starts = WordStarts(tokenizer)
        self._dtype = id_dtype(tokenizer.vocabulary_size)
        self.token_bytes: Counter[str] = Counter()
        """Number of bytes of text that the encoded tokens represent: one sum for all ordinary tokens, and one sum for
        each special token.
        """

    def encode(self, doc_ids: Sequence[str], texts: Sequence[str], sources: Sequence[str] = ()) -> TokenTable:
        """Return the token table of documents; `sources`, the source of each document, is needed only with a `counter`.

        A document without sentences gives a row without tokens.
        """
        if self._units == "documents":
            return self._encode_whole(doc_ids, texts, sources)
        sentences: list[str] = []
        ends_paragraph: list[bool] = []
        sentence_bounds = np.zeros(len(texts) + 1, dtype=np.int64)
        for index, text in enumerate(texts):
            document_sentences, document_ends = split_sentences(text)
            sentences += document_sentences
            ends_paragraph += document_ends
            sentence_bounds[index + 1] = len(sentences)
            self.token_bytes += paragraph_bytes(self.tokenizer, document_ends)
        ids, bounds = self._encode_sentences(sentences, ends_paragraph)
        self.token_bytes += represented_bytes(self.tokenizer, sentences, bounds, ids)
        sentence_starts = bounds[:-1]
        document_starts = bounds[sentence_bounds]
        # For a tokenizer with a continuation prefix, `word_starts` marks the starts of pre-tokens, of which a word
        # between white space may contain several. Therefore the starts of words between white space are a separate
        # column.
        by_pre_tokens = self.tokenizer.word_mark.kind == "continuation"
        return TokenTable(
            doc_ids=list(doc_ids),
            ids=ids,
            word_starts=self._word_starts(ids, sentence_starts, sentences),
            document_starts=document_starts,
            sentence_starts=sentence_starts - np.repeat(document_starts[:-1], np.diff(sentence_bounds)),
            sentence_bounds=sentence_bounds,
            text_word_starts=text_word_starts(self.tokenizer, sentences, sentence_starts, ids)
            if by_pre_tokens and self.counter is None
            else None,
            word_counts=self._sentence_words(doc_ids, texts, sources, sentences, sentence_bounds, np.diff(bounds)),
        )

    def _encode_whole(self, doc_ids: Sequence[str], texts: Sequence[str], sources: Sequence[str]) -> TokenTable:
        """Return the token table of documents that are each encoded as one text. The first token of a sentence is the
        token that contains the sentence's first character.
        """
        wholes, begins = zip(*map(whole_text, texts), strict=True) if texts else ((), ())
        encodings = self.tokenizer.backend.encode_batch(list(wholes), add_special_tokens=False)
        ids = [np.array(encoding.ids, dtype=self._dtype) for encoding in encodings]
        starts = [
            # `np.unique` is needed, because two sentences may start in the same token.
            np.unique(np.searchsorted([end for _, end in encoding.offsets], begin, side="right"))
            for encoding, begin in zip(encodings, begins, strict=True)
        ]
        starts = [found[found < len(own)] for found, own in zip(starts, ids, strict=True)]
        flat = np.concatenate([np.zeros(0, self._dtype), *ids])
        document_starts = np.concatenate([[0], np.cumsum([len(own) for own in ids])]).astype(np.int64)
        self.token_bytes += represented_bytes(self.tokenizer, wholes, document_starts, flat)
        filled = [number for number, own in enumerate(ids) if len(own)]
        by_pre_tokens = self.tokenizer.word_mark.kind == "continuation"
        named = [wholes[number] for number in filled]
        return TokenTable(
            doc_ids=list(doc_ids),
            ids=flat,
            word_starts=self._word_starts(flat, document_starts[filled], named),
            document_starts=document_starts,
            sentence_starts=np.concatenate([np.zeros(0, np.int64), *starts]).astype(np.int64),
            sentence_bounds=np.concatenate([[0], np.cumsum([len(found) for found in starts])]).astype(np.int64),
            text_word_starts=text_word_starts(self.tokenizer, named, document_starts[filled], flat)
            if by_pre_tokens and self.counter is None
            else None,
            word_counts=self._words(
                doc_ids,
                texts,
                sources,
                (
                    whole_token_ends(text, begin, [end for _, end in encoding.offsets])
                    for text, begin, encoding in zip(texts, begins, encodings, strict=True)
                ),
            ),
        )

    def _sentence_words(
        self,
        doc_ids: Sequence[str],
        texts: Sequence[str],
        sources: Sequence[str],
        sentences: Sequence[str],
        sentence_bounds: np.ndarray,
        sizes: np.ndarray,
    ) -> np.ndarray | None:
        """Return the number of words that begin in each token of `texts`; None if the encoder has no `counter`, because
        words are then separated by white space. The documents `texts` were encoded sentence by sentence.

        `sentences` are the sentences of all documents, and `sizes` contains the number of tokens of each sentence.
        Document d has the sentences `sentence_bounds[d]` to `sentence_bounds[d + 1]` - 1.
        """
        if self.counter is None:
            return None
        parts = range(0, len(sentences), SENTENCES_PER_CALL)
        spans = chain.from_iterable(
            self.tokenizer.token_spans(sentences[first : first + SENTENCES_PER_CALL]) for first in parts
        )
        ends = (
            sentence_token_ends(text, sentences[first:end], list(islice(spans, end - first)), sizes[first:end].tolist())
            for text, (first, end) in zip(texts, pairwise(sentence_bounds.tolist()), strict=True)
        )
        return self._words(doc_ids, texts, sources, ends)

    def _words(
        self, doc_ids: Sequence[str], texts: Sequence[str], sources: Sequence[str], ends: Iterable[np.ndarray]
    ) -> np.ndarray | None:
        """Return the number of words that begin in each token of `texts`; None if words are counted by white space.

        For each document, `ends` contains the index of the first character after each token.
        """
        if self.counter is None:
            return None
        documents = zip(doc_ids, texts, sources, ends, strict=True)
        counts = [counts_of_document(self.counter, *document) for document in documents]
        return np.concatenate([np.zeros(0, np.uint16), *counts])

    def _encode_sentences(self, sentences: list[str], ends_paragraph: list[bool]) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays: the concatenated token ids of all sentences, and the index of each sentence's first id,
        followed by the total number of ids.
        """
        flat = array("H" if self._dtype == np.uint16 else "I")
        bounds = np.zeros(len(sentences) + 1, dtype=np.int64)
        par_id = self.tokenizer.par_id
        position = 0
        for start in range(0, len(sentences), SENTENCES_PER_CALL):
            for ids in self.tokenizer.encode_sentences(sentences[start : start + SENTENCES_PER_CALL]):
                flat.extend(ids)
                if par_id is not None and ends_paragraph[position]:
                    flat.append(par_id)
                position += 1
                bounds[position] = len(flat)
        return np.frombuffer(flat, dtype=self._dtype) if flat else np.zeros(0, self._dtype), bounds


def whole_text(text: str) -> tuple[str, np.ndarray]:
    """Return a document as one text, and the index of each sentence's first character in this text (int64 [sentences]).

    In the text, a newline separates paragraphs and a space separates sentences.
    """
    sentences, ends = split_sentences(text)
    behind = ["\n" if end else " " for end in ends]
    begins = np.cumsum([0, *(len(sentence) + 1 for sentence in sentences)])[: len(sentences)]
    return "".join(map("".join, zip(sentences, behind, strict=True)))[:-1], begins


def concatenate(tables: Sequence[TokenTable], dtype: np.dtype) -> TokenTable:
    """Return a table with the rows of all tables, in order."""

    def shifted(bounds: list[np.ndarray]) -> np.ndarray:
        offsets = np.cumsum([0] + [part[-1] for part in bounds])
        parts = [part[:-1] + offset for part, offset in zip(bounds, offsets[:-1], strict=True)]
        return np.concatenate([*parts, offsets[-1:]]).astype(np.int64)

    text_words = [table.text_word_starts for table in tables if table.text_word_starts is not None]
    word_counts = [table.word_counts for table in tables if table.word_counts is not None]
    return TokenTable(
        doc_ids=[doc_id for table in tables for doc_id in table.doc_ids],
        ids=np.concatenate([np.zeros(0, dtype), *(table.ids for table in tables)]),
        word_starts=np.concatenate([np.zeros(0, bool), *(table.word_starts for table in tables)]),
        document_starts=shifted([table.document_starts for table in tables]),
        sentence_starts=np.concatenate([np.zeros(0, np.int64), *(table.sentence_starts for table in tables)]),
        sentence_bounds=shifted([table.sentence_bounds for table in tables]),
        text_word_starts=np.concatenate(text_words) if text_words else None,
        word_counts=np.concatenate(word_counts) if word_counts else None,
    )


def _encode_shard(encoder: DocumentEncoder, shard: Path, progress: Progress) -> tuple[TokenTable, list[str], int, int]:
    """Encode a document shard. Return its token table, the source of the document in each row, the number of empty
    documents, and the number of bytes (UTF-8) of all documents.
    """
    tables: list[TokenTable] = []
    sources: list[str] = []
    empty = n_bytes = 0
    for batch in read_batches(shard):
        kept = [index for index, text in enumerate(batch.texts) if text and not text.isspace()]
        empty += len(batch.texts) - len(kept)
        n_bytes += sum(len(text.encode()) for text in batch.texts)
        kept_sources = [batch.sources[index] for index in kept]
        sources += kept_sources
        kept_texts = [batch.texts[index] for index in kept]
        tables.append(encoder.encode([batch.doc_ids[index] for index in kept], kept_texts, kept_sources))
        progress.update(len(batch.texts))
    return concatenate(tables, id_dtype(encoder.tokenizer.vocabulary_size)), sources, empty, n_bytes


def encode(
    corpus: Manifest,
    tokenizer: Manifest,
    run: StageRun,
    threads: int | None = None,
    units: EncodedUnit = "sentences",
    counting: WordCounting = BETWEEN_WHITE_SPACE,
) -> None:
    """Encode a corpus and write its token shards; see the stage `encode_corpus`."""
    use_threads(threads)
    loaded = load_tokenizer(tokenizer.file("tokenizer.json"), recognise=TEXT_MARKERS)
    encoder = DocumentEncoder(loaded, units, word_counter(counting))
    shards = shards_by_split(corpus)
    for stale in run.folder.glob("*-of-*.arrow"):
        stale.unlink()
    unigrams = np.zeros(loaded.vocabulary_size, dtype=np.int64)
    counts: dict[tuple[str, str], Counts] = {}
    text_words: dict[str, int] = {}
    text_bytes: dict[str, int] = {}
    token_bytes: dict[str, dict[str, int]] = {}
    empty_documents = 0
    started = time.monotonic()
    total = count_documents([path for paths in shards.values() for path in paths])
    progress = Progress(total, "encoding", "documents")
    with progress:
        for split, paths in shards.items():
            encoder.token_bytes = Counter()
            if encoder.counter is not None:
                encoder.counter.begin_split()
            for path in paths:
                table, sources, empty, n_bytes = _encode_shard(encoder, path, progress)
                empty_documents += empty
                for source, added in count_by_source(table, sources, loaded.special).items():
                    counts.setdefault((split, source), Counts()).add(added)
                text_words[split] = text_words.get(split, 0) + n_text_words(table, loaded.special)
                text_bytes[split] = text_bytes.get(split, 0) + n_bytes
                if split == "train":
                    unigrams += np.bincount(table.ids, minlength=loaded.vocabulary_size)
                target = run.folder / f"{path.stem}.arrow"
                write_shard(target, table, loaded.vocabulary_size)
                run.add_output(target)
            token_bytes[split] = dict(sorted(encoder.token_bytes.items()))
    if not counts:
        raise CorpusError(f"{corpus.path}: all {empty_documents:,} documents of the corpus are empty, expected text")
    seconds = time.monotonic() - started
    totals = {split: Counts() for split in shards}
    for (split, _), added in counts.items():
        totals[split].add(added)
    for split, counted in totals.items():
        if counted.unknown > UNKNOWN_TOLD * counted.subwords:
            progress.note(
                f"{100 * counted.unknown / counted.subwords:.2f} % of the subwords of {split} are "
                f"{loaded.special.unknown}: the tokenizer has no entry for the characters of these subwords, "
                "or words exceed the tokenizer's maximum word length"
            )
    rows = ((*key, *counted.as_measures().values()) for key, counted in sorted(counts.items()))
    statistics = csv_text(("split", "source", *Counts().as_measures()), rows)
    write_text(run.folder / "statistics.csv", statistics)
    run.add_output(run.folder / "statistics.csv")
    write_json(
        run.folder / "unigram.json",
        {"vocabulary_size": loaded.vocabulary_size, "split": "train", "counts": unigrams.tolist()},
    )
    run.add_output(run.folder / "unigram.json")
    run.measures.update(
        vocabulary_size=loaded.vocabulary_size,
        id_type=id_dtype(loaded.vocabulary_size).name,
        special_tokens=loaded.special.record(),
        splits={split: total_counts.as_measures() for split, total_counts in totals.items()},
        text_words=text_words,
        text_bytes=text_bytes,
        **counting_measures(counting),
        token_bytes=token_bytes,
        empty_documents=empty_documents,
        train_frequency_at_95_percent=frequency_at_95_percent(unigrams),
    )
    run.volatile.update(
        threads=threads,
        encoding_seconds=round(seconds, 3),
        tokens_per_second=round(sum(counted.tokens for counted in totals.values()) / max(seconds, 1e-9), 1),
    )

"""A pretrained model's predictions for a word left out of a sentence.

Causal and translation models do not fill gaps: a causal model continues the beginning of a sentence, and a translation
model translates whole sentences. Only the results page shows these predictions. They are computed on the CPU, so that
the page is the same on every machine.

The sentences come from the development split, on which no model was trained. Without a development split, they come
from the first shard of the training split. Of the sentences of limited length (`is_readable`), those with the smallest
SHA-256 digests are used. This choice is not random, and it does not depend on the order of the sentences. The longest
word that is one token is left out, because long words carry most meaning.
"""

import hashlib
import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import torch

from hatchery.artifacts.atomic import write_json
from hatchery.artifacts.manifests import Manifest, StageRun, read_manifest
from hatchery.errors import CorpusError, EvaluationError
from hatchery.evaluation.asked_model import AskedModel
from hatchery.evaluation.runtime import load_pretrained, open_trained
from hatchery.evaluation.sentences_file import GAP, SENTENCES_FILE, Answer, FilledSentence, FilledSentences
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.tokenization.documents import read_batches, shards_by_split, split_sentences
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.training.objectives.translation import TranslationSettings
from hatchery.training.settings import pretrain_settings
from hatchery.translation.translate import translate

FEWEST_WORDS, MOST_WORDS = 5, 14
LEAST_LETTERS = 3
MOST_CHARACTERS = 120
# Number of candidate sentences. Sentences without a one-token word are rejected, so there are more candidates than
# sentences on the page.
CANDIDATES = 100
_DOCUMENTS_AT_ONCE = 256
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_MARKER = re.compile(r"\[[A-Z]+\]|<[a-z]+>|____")


def candidates(
    corpus: Manifest, number: int = CANDIDATES, sentences_of: Callable[[str], Iterable[str]] | None = None
) -> tuple[str, list[str]]:
    """Return the name of the split that is read, and at most `number` distinct sentences of this split: the sentences
    with the smallest SHA-256 digests.

    `sentences_of` returns the sentences of a document, by default the `suitable` ones. The split is `dev`. For a corpus
    without `dev`, the first shard of `train` is read. Raises CorpusError for damaged shards, and for a corpus with
    neither `dev` nor `train`.
    """
    splits = shards_by_split(corpus)
    split = "dev" if "dev" in splits else "train"
    shards = splits.get(split, [])[: None if split == "dev" else 1]
    if not shards:
        raise CorpusError(
            f"{corpus.path}: has neither a development nor a training split, expected at least one of them to "
            "draw sentences from"
        )
    # Remove duplicates first, so that a sentence counts once even if a thousand documents contain it.
    best: dict[str, str] = {}
    for shard in shards:
        for batch in read_batches(shard, _DOCUMENTS_AT_ONCE):
            for text in batch.texts:
                best.update((_key(sentence), sentence) for sentence in (sentences_of or suitable)(text))
            if len(best) > 10 * number:
                best = dict(heapq.nsmallest(number, best.items()))
    return split, [sentence for _, sentence in heapq.nsmallest(number, best.items())]


def suitable(text: str) -> Iterator[str]:
    """Return the sentences of a document for which `is_readable` is true."""
    return filter(is_readable, split_sentences(text)[0])


def beginnings(text: str) -> Iterator[str]:
    """Return the first MOST_WORDS words of each line of a document, for a text that was not split into sentences. Lines
    for which `is_readable` is false are omitted.
    """
    return filter(is_readable, (" ".join(line.split()[:MOST_WORDS]) for line in split_sentences(text)[0]))


def is_readable(sentence: str) -> bool:
    """Return True if a sentence has FEWEST_WORDS to MOST_WORDS words, at most MOST_CHARACTERS characters, no markers
    such as [UNK], and no unprintable characters.
    """
    return (
        FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
        and len(sentence) <= MOST_CHARACTERS
        and not _MARKER.search(sentence)
        and sentence.isprintable()
    )


def words_by_length(sentence: str) -> list[tuple[int, int]]:
    """Return the character ranges [start, end) of the words that may be left out: all words of at least LEAST_LETTERS
    characters except the first word. The longest word is first; among equally long words, the later word is first.
    """
    # The first word of a sentence is never left out: it is usually short, and its capital letter would be a hint.
    found = [match.span() for match in _WORD.finditer(sentence) if match.start() > 0]
    long = [(start, end) for start, end in found if end - start >= LEAST_LETTERS]
    return sorted(long, key=lambda span: (span[0] - span[1], -span[0]))


def _key(sentence: str) -> str:
    return hashlib.sha256(f"fill/{sentence}".encode()).hexdigest()


SEED = 20_231_106


def continued_sentence(model: AskedModel, sentence: str) -> FilledSentence:
    """Return the first half of a sentence's words, the second half, and two continuations of the first half by the
    model: the most probable continuation, and a sampled continuation.
    """
    words = sentence.split()
    half = (len(words) + 1) // 2
    before, original = " ".join(words[:half]), " ".join(words[half:])
    answers = (Answer(model.continuation(before, seed)) for seed in (None, SEED))
    return FilledSentence(before, original, tuple(answers))


def translated_sentences(
    model: TranslationModel, tokenizer: Tokenizer, pretraining: Manifest, corpus: Manifest, number: int
) -> tuple[str, list[FilledSentence]]:
    """Return the name of the split that `candidates` reads, and at most `number` sentence pairs of this split, each
    with the model's translation of the source sentence.

    `model` is in evaluation mode, and `pretraining` is the manifest of its training. The search settings are those of
    the training. Raises EvaluationError for the manifest of another objective, and CorpusError for damaged shards.
    """
    settings = pretrain_settings(pretraining.settings)
    objective = settings.objective
    if not isinstance(objective, TranslationSettings):
        raise EvaluationError(
            f"{pretraining.path}: this model was trained with task {objective.task}, expected task translation"
        )
    source, target = (0, 1) if objective.direction == "forward" else (1, 0)

    def readable_pair(text: str) -> Iterator[str]:
        sides = text.split("\n")
        if len(sides) == 2 and is_readable(sides[source]):
            yield text

    split, texts = candidates(corpus, number, readable_pair)
    pairs = [text.split("\n") for text in texts]
    sources = [pair[source] for pair in pairs]
    device = torch.device("cpu")
    found = translate(model, tokenizer, sources, objective.search, settings.sequence_length, device)
    return split, [
        FilledSentence(pair[source], pair[target], (Answer(text),)) for pair, text in zip(pairs, found, strict=True)
    ]


SENTENCES = 5
GUESSES = 5


def fill(pretraining: Path, corpus: Manifest, run: StageRun) -> None:
    """Write the model's continuations, filled gaps or translations of held-out sentences to `sentences.json`; see the
    stage `fill_sentences`.
    """
    trained = read_manifest(pretraining)
    if trained.settings.get("objective", {}).get("task") == "translation":
        network, tokenizer = load_pretrained(pretraining, translates=True)
        assert isinstance(network, TranslationModel)
        split, translated = translated_sentences(network.eval(), tokenizer, trained, corpus, SENTENCES)
        written = FilledSentences("translate", tuple(translated))
    else:
        split, sentences = candidates(corpus)
        if not sentences:
            split, sentences = candidates(corpus, sentences_of=beginnings)
            run.measures["beginnings"] = True
        written = filled(AskedModel(open_trained(trained)), sentences)
    write_json(run.folder / SENTENCES_FILE, asdict(written))
    run.add_output(run.folder / SENTENCES_FILE)
    run.measures.update(sentences=len(written.examples), split=split)


def filled(model: AskedModel, sentences: Sequence[str], number: int = SENTENCES) -> FilledSentences:
    """Return the model's answers for at most `number` sentences. If the model can continue texts, these are
    continuations of the first sentences. If not, these are predictions for the first sentences in which the model can
    fill a gap.

    For a model that can neither continue a text nor fill a gap, such as an ensemble of causal models, there are no
    answers.
    """
    if model.continues:
        return FilledSentences("continue", tuple(continued_sentence(model, one) for one in sentences[:number]))
    if not model.fills_gaps:
        return FilledSentences("continue", ())
    return FilledSentences("fill", tuple(islice(_filled_in(model, sentences), number)))


def _filled_in(model: AskedModel, sentences: Iterable[str]) -> Iterator[FilledSentence]:
    for sentence in sentences:
        if (gap := left_out(model, sentence)) is not None:
            start, end = gap
            given = f"{sentence[:start]}{GAP}{sentence[end:]}"
            answers = model.fill(given, GUESSES).select("text", "probability").iter_rows()
            guesses = tuple(Answer(text, round(100 * probability, 1)) for text, probability in answers)
            yield FilledSentence(given, sentence[start:end], guesses)


def left_out(model: AskedModel, sentence: str) -> tuple[int, int] | None:
    """Return the character range [start, end) of the longest word that is one token of the model.

    The first word of the sentence and words of fewer than LEAST_LETTERS characters are not considered. Return None if
    the sentence has no such word, or if the sentence is longer than the model's longest input.
    """
    tokenizer = model.tokenizer
    assert isinstance(tokenizer, Tokenizer)
    encoding = tokenizer.backend.encode(sentence, add_special_tokens=False)
    if model.longest_input is not None and len(encoding.ids) + 2 > model.longest_input:
        return None
    spans = [
        (start + len(piece) - len(piece.lstrip()), end)
        for start, end in encoding.offsets
        for piece in [sentence[start:end]]
    ]
    for word in words_by_length(sentence):
        touching = [index for index, (start, end) in enumerate(spans) if start < word[1] and end > word[0]]
        if len(touching) == 1 and spans[touching[0]] == word and encoding.ids[touching[0]] != tokenizer.unknown_id:
            return word
    return None

"""What a pretrained model writes where a word of a sentence was left out.

A causal model goes on with the beginning of a sentence instead, and one that translates translates whole ones.

For people who want to see a model at work; no number of a table comes from it. Always on the CPU, so that a page says
the same wherever its jobs ran. Sentences are short ones of the development split, which no model was trained on, with
the smallest SHA-256: the choice depends on neither order nor chance. The longest word that the tokenizer keeps whole is
left out; long words say most. The sentence is cut into tokens before the word is masked, as in pretraining.

Every token of a continuation, the most probable or a drawn one, is computed once, and predicted from all before it.
Draws are uniform numbers of a seeded generator, looked up in the cumulative probabilities, so that the same weights
give the same text.
"""

import hashlib
import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from hatchery.artifacts.atomic import write_json
from hatchery.artifacts.manifests import Manifest, StageRun, read_manifest
from hatchery.errors import CorpusError, EvaluationError
from hatchery.evaluation.baselines.loading import BaselineTokenizer
from hatchery.evaluation.runtime import load_pretrained
from hatchery.evaluation.sentences_file import GAP, SENTENCES_FILE, Answer, FilledSentence, FilledSentences
from hatchery.evaluation.trained_objective import use_of
from hatchery.modeling.attention import TokenCache
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.documents import read_batches, shards_by_split, split_sentences
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.training.objectives.translation import TranslationSettings
from hatchery.training.settings import pretrain_settings
from hatchery.translation.translate import translate

FEWEST_WORDS, MOST_WORDS = 5, 14
LEAST_LETTERS = 3
MOST_CHARACTERS = 120
# More than are shown: in some no word is one token.
CANDIDATES = 100
_DOCUMENTS_AT_ONCE = 256
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_MARKER = re.compile(r"\[[A-Z]+\]|<[a-z]+>|____")


def candidates(
    corpus: Manifest, number: int = CANDIDATES, sentences_of: Callable[[str], Iterable[str]] | None = None
) -> tuple[str, list[str]]:
    """The split that is taken, and at most `number` different sentences of it, in the order of their hashes.

    `sentences_of` gives those of a document, by default the `suitable` ones. The split is `dev`; the first shard of
    `train` where there is no such split. Raises CorpusError for shards that are missing or damaged.
    """
    splits = shards_by_split(corpus)
    split = "dev" if "dev" in splits else "train"
    shards = splits.get(split, [])[: None if split == "dev" else 1]
    if not shards:
        raise CorpusError(f"{corpus.path}: has neither a development nor a training split to take sentences from")
    # Distinct before they are counted: the same sentence in a thousand documents is one.
    best: dict[str, str] = {}
    for shard in shards:
        for batch in read_batches(shard, _DOCUMENTS_AT_ONCE):
            for text in batch.texts:
                best.update((_key(sentence), sentence) for sentence in (sentences_of or suitable)(text))
            if len(best) > 10 * number:
                best = dict(heapq.nsmallest(number, best.items()))
    return split, [sentence for _, sentence in heapq.nsmallest(number, best.items())]


def suitable(text: str) -> Iterator[str]:
    """The sentences of a document that are short, whole, and free of markers such as [UNK]."""
    return filter(is_readable, split_sentences(text)[0])


def beginnings(text: str) -> Iterator[str]:
    """The first words of the lines of a document, for a text that was not cut into sentences."""
    return filter(is_readable, (" ".join(line.split()[:MOST_WORDS]) for line in split_sentences(text)[0]))


def is_readable(sentence: str) -> bool:
    """Whether a sentence is short, and free of markers and of what cannot be printed."""
    return (
        FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
        and len(sentence) <= MOST_CHARACTERS
        and not _MARKER.search(sentence)
        and sentence.isprintable()
    )


def words_by_length(sentence: str) -> list[tuple[int, int]]:
    """Start and end of the words that may be left out, the longest first; of equally long ones the later."""
    # The first word of a sentence is mostly a small one, and its capital gives it away.
    found = [match.span() for match in _WORD.finditer(sentence) if match.start() > 0]
    long = [(start, end) for start, end in found if end - start >= LEAST_LETTERS]
    return sorted(long, key=lambda span: (span[0] - span[1], -span[0]))


def _key(sentence: str) -> str:
    return hashlib.sha256(f"fill/{sentence}".encode()).hexdigest()


MOST_TOKENS = 20
SEED = 20_231_106


def continued_sentence(model: LanguageModel, tokenizer: Tokenizer, sentence: str) -> FilledSentence:
    """The first half of the words of `sentence`, how it goes on, and two ways of `model`, in evaluation mode."""
    words = sentence.split()
    half = (len(words) + 1) // 2
    before, original = " ".join(words[:half]), " ".join(words[half:])
    (ids,) = tokenizer.encode_sentences([before])
    answers = (
        Answer(tokenizer.decode(continuation(model, tokenizer, [tokenizer.cls_id, *ids], generator)).strip())
        for generator in (None, np.random.Generator(np.random.Philox(SEED)))
    )
    return FilledSentence(before, original, tuple(answers))


@torch.no_grad()
def continuation(
    model: LanguageModel,
    tokenizer: Tokenizer,
    ids: Sequence[int],
    generator: np.random.Generator | None = None,
    most_tokens: int = MOST_TOKENS,
) -> list[int]:
    """The ids that follow `ids`, which begin with the start of a text, `most_tokens` of them at most.

    The most probable one each time (of equally probable ones the first), or drawn by `generator`. The end of the text
    or of the paragraph ends them: where every sentence is a paragraph of its own, a model learns that a paragraph ends
    behind each, and has nothing to say in its place. Other special tokens are never written.
    """
    limit = model.config.position_limit or len(ids) + most_tokens
    ends = {tokenizer.sep_id, tokenizer.par_id}
    forbidden = [index for index in range(tokenizer.n_special) if index not in ends]
    text, known = list(ids), 0
    caches = [TokenCache() for _ in model.encoder.layers]
    for _ in range(min(most_tokens, limit - len(ids))):
        hidden = model.encoder.states_behind(torch.tensor([text]), None, caches, known)[-1][0, -1]
        known = len(text)
        probabilities = model.logits_at(hidden).double().softmax(-1)[: tokenizer.vocabulary_size].numpy()
        probabilities[forbidden] = 0
        if generator is None:
            following = int(probabilities.argmax())
        else:
            bounds = np.cumsum(probabilities)
            following = int(np.searchsorted(bounds, generator.random() * bounds[-1], side="right"))
        if following in ends:
            break
        text.append(following)
    return text[len(ids) :]


def translated_sentences(
    model: TranslationModel, tokenizer: Tokenizer, pretraining: Manifest, corpus: Manifest, number: int
) -> tuple[str, list[FilledSentence]]:
    """The split that is taken, and at most `number` of its pairs with the model's own translation.

    `model` is in evaluation mode and searches as in its training, whose manifest is `pretraining`. Raises
    EvaluationError for the manifest of another objective, and CorpusError for damaged shards.
    """
    settings = pretrain_settings(pretraining.settings)
    objective = settings.objective
    if not isinstance(objective, TranslationSettings):
        raise EvaluationError(f"{pretraining.path}: this model was not trained with task translation")
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
    """Write what a model fills in; see the stage `fill_sentences`."""
    model, tokenizer = load_pretrained(pretraining, translates=True)
    model.eval()
    trained = read_manifest(pretraining)
    use = use_of(trained, model)
    if isinstance(model, TranslationModel):
        split, translated = translated_sentences(model, tokenizer, trained, corpus, SENTENCES)
        written = FilledSentences("translate", tuple(translated))
    else:
        split, sentences = candidates(corpus)
        if not sentences:
            split, sentences = candidates(corpus, sentences_of=beginnings)
            run.measures["beginnings"] = True
        if "causal" in use.learned:
            continued = [continued_sentence(model, tokenizer, sentence) for sentence in sentences[:SENTENCES]]
            written = FilledSentences("continue", tuple(continued))
        else:
            written = FilledSentences(
                "fill", tuple(islice(_filled_in(model, tokenizer, sentences, use.predicted_before), SENTENCES))
            )
    write_json(run.folder / SENTENCES_FILE, asdict(written))
    run.add_output(run.folder / SENTENCES_FILE)
    run.measures.update(sentences=len(written.examples), split=split)


def _filled_in(
    model: LanguageModel, tokenizer: Tokenizer, sentences: Iterable[str], predicted_before: int
) -> Iterator[FilledSentence]:
    limit = model.config.position_limit
    for sentence in sentences:
        gap = left_out(tokenizer, sentence)
        if gap is not None and (limit is None or len(gap.ids) <= limit):
            before, word, after = gap.parts
            yield FilledSentence(
                f"{before}{GAP}{after}", word, tuple(guesses(model, tokenizer, gap.ids, GUESSES, predicted_before))
            )


class Gap:
    """A framed sentence with one masked token: its `ids`, and the `parts` of the text before, at and after the gap."""

    def __init__(self, ids: Sequence[int], sentence: str, start: int, end: int) -> None:
        self.ids = list(ids)
        self.parts = (sentence[:start], sentence[start:end], sentence[end:])


def left_out(tokenizer: Tokenizer, sentence: str) -> Gap | None:
    """The sentence without the longest of its words that is one token; None where there is no such word."""
    encoding = tokenizer.backend.encode(sentence, add_special_tokens=False)
    spans = [
        (start + len(piece) - len(piece.lstrip()), end)
        for start, end in encoding.offsets
        for piece in [sentence[start:end]]
    ]
    for word in words_by_length(sentence):
        touching = [index for index, (start, end) in enumerate(spans) if start < word[1] and end > word[0]]
        if len(touching) == 1 and spans[touching[0]] == word and encoding.ids[touching[0]] != tokenizer.unknown_id:
            ids = list(encoding.ids)
            ids[touching[0]] = tokenizer.mask_id
            return Gap([tokenizer.cls_id, *ids, *tokenizer.end_ids], sentence, *word)
    return None


@torch.no_grad()
def guesses(
    model: LanguageModel, tokenizer: Tokenizer, ids: Sequence[int], number: int, predicted_before: int = 0
) -> list[Answer]:
    """The most probable subwords for the one mask among `ids`, which are predicted so many positions before it."""
    hidden = model.encoder(torch.tensor([ids]))[-1][0, list(ids).index(tokenizer.mask_id) - predicted_before]
    best = best_subwords(tokenizer, model.logits_at(hidden), number)
    return [Answer(text, round(100 * probability, 1)) for text, probability in best]


def best_subwords(
    tokenizer: Tokenizer | BaselineTokenizer, logits: torch.Tensor, number: int
) -> list[tuple[str, float]]:
    """The most probable subwords under `logits` [V], as people read them, with their probabilities.

    Equally probable ones come by id. Special tokens are left out; of a model of others, nobody knows which are.
    """
    probabilities = logits.double().softmax(-1)
    if isinstance(tokenizer, Tokenizer):
        probabilities = probabilities[: tokenizer.vocabulary_size]
        # Never among the first: a mark of structure is nothing that could be written.
        probabilities[: tokenizer.n_special] = 0
    probabilities, order = probabilities.sort(descending=True, stable=True)
    return [*zip(subword_texts(tokenizer, order[:number].tolist()), probabilities[:number].tolist(), strict=True)]


def subword_texts(tokenizer: Tokenizer | BaselineTokenizer, ids: Sequence[int]) -> list[str]:
    """Subwords as people read them: one that does not begin a word has an ellipsis before it."""
    if not isinstance(tokenizer, Tokenizer):
        return [tokenizer.backend.decode([index]).strip() for index in ids]
    spelled = tokenizer.tokens
    return [_readable(tokenizer, index, spelled[index]) for index in ids]


def _readable(tokenizer: Tokenizer, index: int, spelled: str) -> str:
    mark = tokenizer.word_mark
    if mark.kind == "byte_level":
        text = tokenizer.decode([index])
        inside = not text[:1].isspace()
    elif mark.kind == "metaspace":
        text, inside = spelled.replace(mark.symbol, " "), not spelled.startswith(mark.symbol)
    else:
        text, inside = spelled.removeprefix(mark.symbol), spelled.startswith(mark.symbol)
    text = text.strip()
    if "\ufffd" in text:
        return "(part of a character)"
    return f"…{text}" if inside and text[:1].isalnum() else text or "(space)"

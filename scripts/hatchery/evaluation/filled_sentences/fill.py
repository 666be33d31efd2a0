"""What a pretrained model writes where a word of a sentence was left out.

A causal model goes on with the beginning of a sentence instead, and one that translates translates whole ones.

For people who want to see a model at work; no number of a table comes from it. Always on the CPU, so that a page says
the same wherever its jobs ran. The sentence is cut into tokens before the word is masked, as in pretraining.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import torch

from hatchery.artifacts.atomic import write_json
from hatchery.artifacts.manifests import Manifest, StageRun, read_manifest
from hatchery.evaluation.filled_sentences.choice import beginnings, candidates, words_by_length
from hatchery.evaluation.filled_sentences.continuation import continued_sentence, translated_sentences
from hatchery.evaluation.filled_sentences.results import GAP, SENTENCES_FILE, Answer, Example, Examples
from hatchery.evaluation.runtime import load_pretrained
from hatchery.evaluation.trained_objective import use_of
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.tokenizer_file import Tokenizer

SENTENCES = 5
GUESSES = 5


def fill(pretraining: Path, corpus: Manifest, run: StageRun) -> None:
    """Write what a model fills in; see the stage `fill_sentences`."""
    model, tokenizer = load_pretrained(pretraining, translates=True)
    model.eval()
    trained = read_manifest(pretraining)
    kinds = use_of(trained, model).kinds
    if isinstance(model, TranslationModel):
        split, translated = translated_sentences(model, tokenizer, trained, corpus, SENTENCES)
        written = Examples("translate", tuple(translated))
    else:
        split, sentences = candidates(corpus)
        if not sentences:
            split, sentences = candidates(corpus, sentences_of=beginnings)
            run.measures["beginnings"] = True
        if "causal" in kinds:
            continued = [continued_sentence(model, tokenizer, sentence) for sentence in sentences[:SENTENCES]]
            written = Examples("continue", tuple(continued))
        else:
            written = Examples("fill", tuple(islice(_filled_in(model, tokenizer, sentences), SENTENCES)))
    write_json(run.folder / SENTENCES_FILE, asdict(written))
    run.add_output(run.folder / SENTENCES_FILE)
    run.measures.update(sentences=len(written.examples), split=split)


def _filled_in(model: LanguageModel, tokenizer: Tokenizer, sentences: Iterable[str]) -> Iterator[Example]:
    limit = model.config.position_limit
    for sentence in sentences:
        gap = left_out(tokenizer, sentence)
        if gap is not None and (limit is None or len(gap.ids) <= limit):
            before, word, after = gap.parts
            yield Example(f"{before}{GAP}{after}", word, tuple(guesses(model, tokenizer, gap.ids, GUESSES)))


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
            return Gap([tokenizer.cls_id, *ids, tokenizer.sep_id], sentence, *word)
    return None


@torch.no_grad()
def guesses(model: LanguageModel, tokenizer: Tokenizer, ids: Sequence[int], number: int) -> list[Answer]:
    """The most probable subwords at the one mask among `ids`, special tokens left out; equally probable ones by id."""
    hidden = model.encoder(torch.tensor([ids]))[-1][0, list(ids).index(tokenizer.mask_id)]
    probabilities = model.logits_at(hidden).double().softmax(-1)[: tokenizer.vocabulary_size]
    # Never among the first: a mark of structure is nothing that could be written.
    probabilities[: tokenizer.n_special] = 0
    probabilities, order = probabilities.sort(descending=True, stable=True)
    spelled = tokenizer.tokens
    return [
        Answer(_readable(tokenizer, int(index), spelled[int(index)]), round(100 * float(probability), 1))
        for probability, index in zip(probabilities[:number], order[:number], strict=True)
    ]


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

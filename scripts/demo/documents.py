"""Documents of the generated English: stories, encyclopaedia articles and conversations.

A document is a title and paragraphs of sentences (tuples of words). In a conversation, each paragraph is a turn with a
speaker. This module also contains functions that spell a sentence as in raw corpora: natural text, space-separated
tokens, and Penn Treebank quotes. The modules `layouts` and `bnc` write documents in the raw formats. Conversations
contain no quoted speech.
"""

import random
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from demo import scenes
from demo.grammar import choose, noun_phrase, text_of
from demo.lexicon import ANIMALS, HYPERNYMS, NAMES, OBJECTS, PLACES, Noun
from demo.scenes import Scene, Words

Kind = Literal["story", "article", "conversation"]

_STORY: tuple[tuple[int, Callable[[Scene], Words | list[Words]]], ...] = (
    (8, scenes.statement),
    (3, scenes.negation),
    (2, lambda scene: scenes.any_or_some(scene, negated=False)),
    (2, lambda scene: scenes.quantified(scene, negative=scene.rng.random() < 0.5)),
    (5, scenes.reflexive),
    (2, scenes.description),
    (2, scenes.existence),
    (2, scenes.report),
    (3, scenes.follow_up),
    (2, scenes.restatement),
    (7, scenes.echo),
)
_STORY_KINDS = tuple(kind for weight, kind in _STORY for _ in range(weight))


@dataclass(frozen=True)
class EmbeddedDocument:
    """A generated document. In a conversation, `speakers` contains the speaker of each paragraph; otherwise, it is
    empty.
    """

    title: Words
    kind: Kind
    paragraphs: tuple[tuple[Words, ...], ...]
    speakers: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[Words]:
        """All sentences of the document, in order."""
        return [words for paragraph in self.paragraphs for words in paragraph]


def _next_sentences(scene: Scene) -> list[Words]:
    sentences = choose(scene.rng, _STORY_KINDS)(scene)
    return sentences if isinstance(sentences, list) else [sentences]


def story(rng: random.Random) -> EmbeddedDocument:
    """Return a story about one scene: two to four paragraphs. The minimum number of sentences of a paragraph is drawn
    for each paragraph, from 3 to 6.
    """
    scene = Scene.draw(rng)
    paragraphs = []
    for _ in range(2 + int(rng.random() * 3)):
        length = 3 + int(rng.random() * 4)
        paragraph: list[Words] = []
        while len(paragraph) < length:
            paragraph.extend(_next_sentences(scene))
        paragraphs.append(tuple(paragraph))
    title = (*scene.name().words, "and", *noun_phrase("the", choose(rng, scene.things), "singular").words)
    return EmbeddedDocument(title, "story", tuple(paragraphs))


def article(rng: random.Random) -> EmbeddedDocument:
    """Return an article about one noun: each paragraph begins with a definition of the noun and continues with a
    story.
    """
    scene = Scene.draw(rng)
    noun: Noun = choose(rng, [noun for noun in (*ANIMALS, *OBJECTS, *PLACES) if noun.category in HYPERNYMS])
    if noun.category == "animal":
        scene.animals = [noun, noun, *scene.animals[:1]]
    elif noun.category == "building":
        scene.places = [noun, noun, *scene.places[:1]]
    else:
        scene.things = [noun, noun, *scene.things[:1]]
    paragraphs = []
    for _ in range(2 + int(rng.random() * 2)):
        paragraph = [scenes.definition(scene, noun)]
        for _ in range(2 + int(rng.random() * 4)):
            paragraph.extend(_next_sentences(scene))
        paragraphs.append(tuple(paragraph))
    return EmbeddedDocument((noun.singular.capitalize(),), "article", tuple(paragraphs))


def conversation(rng: random.Random) -> EmbeddedDocument:
    """Return a conversation between two speakers with ten or more turns: questions, answers and statements."""
    scene = Scene.draw(rng)
    turns: list[tuple[Words, ...]] = []
    while len(turns) < 10 + int(rng.random() * 10):
        point = rng.random()
        if point < 0.2:
            turns.extend((words,) for words in scenes.where_question(scene))
        elif point < 0.5:
            answer = (choose(rng, ("Yes", "No", "Well", "Oh")), ".")
            turns.extend(((scenes.question(scene),), (answer, *_next_sentences(scene)[:1])))
        else:
            turns.append(tuple(_next_sentences(scene)))
    first, second = (name.word for name in scene.names)
    speakers = tuple(first if index % 2 == 0 else second for index in range(len(turns)))
    title = ("A", "talk", *scene.place())
    return EmbeddedDocument(title, "conversation", tuple(turns), speakers)


MAKERS: dict[Kind, Callable[[random.Random], EmbeddedDocument]] = {
    "story": story,
    "article": article,
    "conversation": conversation,
}


_NAME_WORDS = frozenset(name.word for name in NAMES)


def spoken_by(words: Words, name: str) -> Words:
    """Return the sentence as quoted speech, such as "The dog sleeps," said Tom."""
    mark = "," if words[-1] == "." else words[-1]
    return ("“", *words[:-1], mark, "”", "said", name, ".")


def with_speech(document: EmbeddedDocument, rng: random.Random, probability: float = 0.08) -> list[list[Words]]:
    """Return the paragraphs of a document, in which each sentence becomes quoted speech with the given probability."""
    return [
        [
            spoken_by(words, choose(rng, NAMES).word) if rng.random() < probability and words[-1] in ".?" else words
            for words in paragraph
        ]
        for paragraph in document.paragraphs
    ]


def natural(words: Sequence[str]) -> str:
    """Return a sentence as ordinary text with straight double quotes."""
    return text_of(words).replace("“", '"').replace("”", '"')


def lower_first(words: Sequence[str]) -> list[str]:
    """Return the words, with a lower-case initial in the first word. If the first word is a name, the words are
    unchanged.
    """
    first, *rest = words
    return [first if first in _NAME_WORDS else first[0].lower() + first[1:], *rest]


def spaced(words: Sequence[str]) -> str:
    """Return a sentence as space-separated tokens that begin in lower case, as in transcripts."""
    return " ".join(lower_first(words))


def treebank(words: Sequence[str]) -> str:
    """Return a sentence as space-separated tokens, with two back-ticks and two apostrophes as quotation marks, as in
    the Penn Treebank.
    """
    return " ".join({"“": "``", "”": "''"}.get(word, word) for word in words)


def paragraph_text(paragraph: Sequence[Words]) -> str:
    """Return the sentences of a paragraph as ordinary text on one line."""
    return " ".join(natural(words) for words in paragraph)


def wrapped(text: str, width: int = 64) -> list[str]:
    """Return the text as lines of at most `width` characters, as in a printed book."""
    return textwrap.wrap(text, width)

"""Documents of the miniature English: stories, encyclopaedia articles and conversations.

A document is a title and paragraphs of sentences (tuples of words); a conversation has one paragraph per turn and a
speaker for each. The layouts of the raw formats are made from these values elsewhere.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from demo import sentence_kinds
from demo.grammar import choose, noun_phrase
from demo.lexicon import ANIMALS, HYPERNYMS, OBJECTS, PLACES, Noun
from demo.scenes import Scene, Words

Kind = Literal["story", "article", "conversation"]

_STORY: tuple[tuple[int, Callable[[Scene], Words | list[Words]]], ...] = (
    (8, sentence_kinds.statement),
    (3, sentence_kinds.negation),
    (2, lambda scene: sentence_kinds.any_or_some(scene, negated=False)),
    (2, lambda scene: sentence_kinds.quantified(scene, negative=scene.rng.random() < 0.5)),
    (5, sentence_kinds.reflexive),
    (2, sentence_kinds.description),
    (2, sentence_kinds.existence),
    (2, sentence_kinds.report),
    (3, sentence_kinds.follow_up),
    (2, sentence_kinds.restatement),
    (7, sentence_kinds.echo),
)
_STORY_KINDS = tuple(kind for weight, kind in _STORY for _ in range(weight))


@dataclass(frozen=True)
class EmbeddedDocument:
    """A generated document. `speakers` has one name per paragraph in a conversation and is empty otherwise."""

    title: Words
    kind: Kind
    paragraphs: tuple[tuple[Words, ...], ...]
    speakers: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[Words]:
        """All sentences in order."""
        return [words for paragraph in self.paragraphs for words in paragraph]


def _next_sentences(scene: Scene) -> list[Words]:
    sentences = choose(scene.rng, _STORY_KINDS)(scene)
    return sentences if isinstance(sentences, list) else [sentences]


def story(rng: random.Random) -> EmbeddedDocument:
    """Two to four paragraphs of three to six sentences about one scene."""
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
    """An article about one noun: what it is, and what one does with it."""
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
        paragraph = [sentence_kinds.definition(scene, noun)]
        for _ in range(2 + int(rng.random() * 4)):
            paragraph.extend(_next_sentences(scene))
        paragraphs.append(tuple(paragraph))
    return EmbeddedDocument((noun.singular.capitalize(),), "article", tuple(paragraphs))


def conversation(rng: random.Random) -> EmbeddedDocument:
    """Ten to twenty turns of two speakers: questions, answers and statements."""
    scene = Scene.draw(rng)
    turns: list[tuple[Words, ...]] = []
    while len(turns) < 10 + int(rng.random() * 10):
        point = rng.random()
        if point < 0.2:
            turns.extend((words,) for words in sentence_kinds.where_question(scene))
        elif point < 0.5:
            answer = (choose(rng, ("Yes", "No", "Well", "Oh")), ".")
            turns.extend(((sentence_kinds.question(scene),), (answer, *_next_sentences(scene)[:1])))
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

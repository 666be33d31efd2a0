"""Sentences with linguistic annotation for edge probing: parts of speech, dependencies, entities, roles and
coreference.

An `Analysis` stores tags (UPOS, Penn Treebank) and a head for each word, an entity type and a referent for each phrase,
and a frame for each predicate. The labels do not follow from single words, so a probe needs the context. Some function
words (that, her) and some verb forms (found: VBD or VBN) are ambiguous, and sentences contain distracting nouns.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from demo import lexicon
from demo.grammar import ADVERBS, Clause, NounPhrase, Tense, pick_adjectives, realise
from demo.lexicon import NAMES, NUMBERS, OBJECTS, Name, Noun, Number, Verb
from demo.rows import ADJECTIVES, PERSON_VERBS, THINGS, Draw
from demo.scenes import Words, fitting_tense, pick_verb

# Range of words in a sentence: index of the first word, and index of the last word plus 1.
Span = tuple[int, int]
_ENTITY_TYPES = {"person": "PERSON", "animal": "ANIMAL", "building": "FAC", "place": "LOC", "fruit": "FOOD"}
_ENTITY_TYPES |= {"plant": "PLANT", **dict.fromkeys(("vehicle", "tool", "toy", "garment", "thing"), "PRODUCT")}
# UPOS tag, Penn Treebank tag and dependency relation, by determiner that denotes a quantity.
_QUANTITIES = dict.fromkeys(("many", "few", "several"), ("ADJ", "JJ", "amod"))
_QUANTITIES |= dict.fromkeys(("two", "three"), ("NUM", "CD", "nummod"))
# UPOS tag, Penn Treebank tag, relation, lemma and role, by word that can precede a main verb. A word that is not listed
# is an adverb of time.
_BEFORE_VERBS = dict.fromkeys(("not", "n't"), ("PART", "RB", "advmod", "not", "ARGM-NEG"))
_BEFORE_VERBS |= {"could": ("AUX", "MD", "aux", "can", "ARGM-MOD"), "did": ("AUX", "VBD", "aux", "do", "")}
for _third, _plain, _lemma in (("has", "have", "have"), ("is", "are", "be"), ("does", "do", "do")):
    _BEFORE_VERBS |= {_third: ("AUX", "VBZ", "aux", _lemma, ""), _plain: ("AUX", "VBP", "aux", _lemma, "")}
_MAIN_VERB_TAGS = {"past": "VBD", "perfect": "VBN", "progressive": "VBG", "modal": "VB"}

_TENSES: tuple[Tense, ...] = ("present", "past", "past", "perfect", "perfect", "progressive", "modal")
# A category is drawn first, and then a noun of this category, so that no entity type is rare.
_CATEGORIES = sorted({noun.category for noun in OBJECTS})
_THINGS = [[noun for noun in OBJECTS if noun.category == category] for category in _CATEGORIES]
_DETERMINERS: dict[Number, tuple[str, ...]] = {
    "singular": ("the", "the", "a", "this", "that", "every"),
    "plural": ("the", "the", "these", "those", "some", "many", "two", "several"),
}


@dataclass
class Token:
    """A word with its tags; `head` is the index of the word that is its head, -1 for the root."""

    form: str
    lemma: str
    upos: str
    xpos: str
    head: int = -1
    relation: str = "root"


class Phrase(NamedTuple):
    """A noun phrase of an analysis: its range of words, the index of its head word, and its grammatical number."""

    span: Span
    head: int
    number: Number = "singular"


@dataclass
class Frame:
    """A predicate's frame: the index of the predicate, and (range of words, role) of each argument."""

    predicate: int
    arguments: list[tuple[Span, str]] = field(default_factory=list)


class Analysis(Draw):
    """An annotated sentence under construction; the methods for phrases and clauses draw words and append them.

    Every entity has a type, and every mention has a referent; mentions with equal referents corefer. `empty` contains
    the omitted words, which CoNLL-U calls empty nodes, as (index of the preceding word, form, index of the head).
    """

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.tokens: list[Token] = []
        self.entities: list[tuple[Span, str]] = []
        self.mentions: list[tuple[Span, str]] = []
        self.frames: list[Frame] = []
        self.empty: list[tuple[int, str, int]] = []

    @property
    def words(self) -> tuple[str, ...]:
        """All words of the sentence, in order."""
        return tuple(token.form for token in self.tokens)

    def add(self, form: str, upos: str, xpos: str, head: int = -1, relation: str = "root", lemma: str = "") -> int:
        """Append a word, and return the index of the word."""
        self.tokens.append(Token(form, lemma or form, upos, xpos, head, relation))
        return len(self.tokens) - 1

    def attach(self, index: int, head: int, relation: str) -> None:
        """Set the head of the word `index`, and the relation between word and head."""
        self.tokens[index].head, self.tokens[index].relation = head, relation

    def mention(self, form: str, referent: str, upos: str = "PRON", xpos: str = "PRP") -> Phrase:
        """Append a pronoun or a name as a mention of `referent`, and return the mention as a phrase."""
        index = self.add(form, upos, xpos)
        self.mentions.append(((index, index + 1), referent))
        return Phrase((index, index + 1), index)

    def name(self, name: Name) -> Phrase:
        """Append a first name, and return the name as a phrase."""
        phrase = self.mention(name.word, name.word, "PROPN", "NNP")
        self.entities.append((phrase.span, "PERSON"))
        return phrase

    def noun(
        self,
        noun: Noun,
        number: Number,
        determiner: str,
        adjectives: Words = (),
        owner: str = "",
        modifier: tuple[str, Noun, Number] | None = None,
    ) -> Phrase:
        """Append a noun phrase and return the phrase.

        If `owner` is set, `determiner` is a possessive pronoun that refers to `owner`. `modifier` is a prepositional
        phrase such as "near the boxes". A noun phrase becomes a mention only if it denotes a person, because no later
        pronoun refers to an animal, a thing or a place.
        """
        start = len(self.tokens)
        head = start + 1 + len(adjectives)
        if owner:
            self.attach(self.mention(determiner, owner, xpos="PRP$").head, head, "nmod:poss")
        else:
            vowel = determiner == "a" and (*adjectives, noun.singular)[0][0] in "aeiou"
            upos, xpos, relation = _QUANTITIES.get(determiner, ("DET", "DT", "det"))
            self.add("an" if vowel else determiner, upos, xpos, head, relation, determiner)
        for word in adjectives:
            self.add(word, "ADJ", "JJ", head, "amod")
        self.add(noun.form(number), "NOUN", "NN" if number == "singular" else "NNS", lemma=noun.singular)
        if modifier:
            self.prepositional(*modifier, (), head, "nmod")
        span = (start, len(self.tokens))
        self.entities.append((span, _ENTITY_TYPES[noun.category]))
        if noun.category == "person":
            self.mentions.append((span, f"{noun.singular}@{start}"))
        return Phrase(span, head, number)

    def prepositional(
        self, preposition: str, noun: Noun, number: Number, adjectives: Words, head: int, relation: str
    ) -> None:
        """Append a prepositional phrase that depends on the word with the index `head`."""
        case = self.add(preposition, "ADP", "IN")
        inner = self.noun(noun, number, "the", adjectives).head
        self.attach(case, inner, "case")
        self.attach(inner, head, relation)

    def some_noun(self, nouns: Sequence[Noun], distractor: float = 0.3) -> Phrase:
        """Append a random noun phrase; with the probability `distractor`, a prepositional phrase with another noun
        follows.
        """
        number: Number = self.one(NUMBERS)
        modifier = None
        if self.rng.random() < distractor:
            others = (*OBJECTS, *lexicon.PERSONS, *lexicon.PLACES)
            modifier = (self.one(lexicon.PREPOSITIONS), self.one(others), self.one(NUMBERS))
        noun, determiner = self.one(nouns), self.one(_DETERMINERS[number])
        return self.noun(noun, number, determiner, pick_adjectives(self.rng, 0.25), modifier=modifier)

    def verb_group(self, subject: Phrase, verb: Verb, role: str = "ARG0", tense: Tense | None = None) -> Frame:
        """Append the verb group of a statement, and return its frame.

        If `tense` is None, the tense is random, and the verb group may be negated or contain an adverb.
        """
        negated, adverb, contracted = False, "", False
        if tense is None:
            negated = self.rng.random() < 0.25
            adverb = self.one(ADVERBS) if not negated and self.rng.random() < 0.2 else ""
            tense = fitting_tense(verb, self.one(_TENSES))
            # Half of the negations are contracted ("could n't", "did n't"), like "does n't"; the other half have "not".
            contracted = negated and self.coin()
        clause = Clause(NounPhrase((), subject.number), verb, (), tense, negated, False, adverb, contracted)
        *before, form = realise(clause)
        main = len(self.tokens) + len(before)
        frame = Frame(main, [(subject.span, role)])
        for word in before:
            upos, xpos, relation, lemma, adjunct = _BEFORE_VERBS.get(word, ("ADV", "RB", "advmod", word, "ARGM-TMP"))
            index = self.add(word, upos, xpos, main, relation, lemma)
            if adjunct:
                frame.arguments.append(((index, index + 1), adjunct))
        tag = _MAIN_VERB_TAGS.get(tense, "VBP" if subject.number == "plural" else "VBZ")
        self.add(form, "VERB", "VB" if negated and tense in ("present", "past") else tag, lemma=verb.base)
        self.attach(subject.head, main, "nsubj")
        self.frames.append(frame)
        return frame

    def object(self, thing: Phrase, frame: Frame) -> None:
        """Make the phrase `thing` the object of the predicate of `frame`."""
        self.attach(thing.head, frame.predicate, "obj")
        frame.arguments.append((thing.span, "ARG1"))

    def ending(self, frame: Frame) -> None:
        """Append a prepositional phrase of place, then an adverb; each is omitted at random.

        If the sentence has fewer than five words, a phrase of place is always appended.
        """
        if self.coin() or len(self.tokens) < 5:
            start = len(self.tokens)
            preposition, place = self.one(lexicon.PLACE_PREPOSITIONS), self.one(lexicon.PLACES)
            adjectives = pick_adjectives(self.rng, 0.2)
            self.prepositional(preposition, place, "singular", adjectives, frame.predicate, "obl")
            frame.arguments.append(((start, len(self.tokens)), "ARGM-LOC"))
        if self.rng.random() < 0.35:
            adverb = self.one(lexicon.TIME_ADVERBS)
            index = self.add(adverb, "ADV", "RB", frame.predicate, "advmod")
            frame.arguments.append(((index, index + 1), "ARGM-MNR" if adverb.endswith("ly") else "ARGM-TMP"))

    def man_and_woman(self) -> tuple[Name, Name]:
        """Return the name of a man and the name of a woman, in random order; a pronoun can then refer to only one of
        these persons.
        """
        first = self.one(NAMES)
        return first, self.one([name for name in NAMES if name.gender != first.gender])

    def finish(self) -> None:
        """End the sentence: append the full stop, and capitalise the first letter of the sentence."""
        root = next(index for index, token in enumerate(self.tokens) if token.head == -1)
        self.add(".", "PUNCT", ".", root, "punct")
        first = self.tokens[0]
        first.form = first.form[0].upper() + first.form[1:]


def transitive(analysis: Analysis) -> None:
    """Append a transitive clause: "The boy near the boxes has found these dogs by the lake"."""
    subject = analysis.some_noun(lexicon.PERSONS)
    noun = analysis.one(analysis.one((lexicon.PERSONS, lexicon.ANIMALS, *_THINGS)))
    frame = analysis.verb_group(subject, pick_verb(analysis.rng, noun))
    analysis.object(analysis.some_noun((noun,), 0.2), frame)
    analysis.ending(frame)


def intransitive(analysis: Analysis) -> None:
    """Append an intransitive clause: "Every boy with a drum slept by the lake".

    The subject of "fall" is not an agent, so it has the role ARG1.
    """
    subject = analysis.some_noun(lexicon.PERSONS, 0.5)
    verb = analysis.one(lexicon.INTRANSITIVE)
    analysis.ending(analysis.verb_group(subject, verb, "ARG1" if verb.base == "fall" else "ARG0"))


def owner(analysis: Analysis) -> None:
    """Append a clause such as "Helen found her hat". Its possessive refers to the subject or to another person."""
    name = analysis.one(NAMES)
    subject, other = analysis.name(name), analysis.coin()
    gender = name.gender if not other else "feminine" if name.gender == "masculine" else "masculine"
    noun = analysis.one(analysis.one(_THINGS))
    frame = analysis.verb_group(subject, pick_verb(analysis.rng, noun))
    number, adjective = analysis.one(NUMBERS), analysis.one(ADJECTIVES)
    referent = "somebody else" if other else name.word
    analysis.object(analysis.noun(noun, number, lexicon.POSSESSIVES[gender], (adjective,), referent), frame)
    analysis.ending(frame)


def report(analysis: Analysis) -> None:
    """Append reported speech with a pronoun that can refer to only one person.

    Examples: "Mary says that Tom blames himself", "... that she saw him", "... that Tom helped her".
    """
    first, second = analysis.man_and_woman()
    outer = analysis.verb_group(analysis.name(first), analysis.one(lexicon.CLAUSAL))
    start = len(analysis.tokens)
    link = analysis.add("that", "SCONJ", "IN")
    kind = analysis.rng.random()
    if kind < 0.7:
        subject, verbs = analysis.name(second), lexicon.REFLEXIVE if kind < 0.4 else PERSON_VERBS
    else:
        subject, verbs = analysis.mention(lexicon.SUBJECT_PRONOUNS[first.gender], first.word), PERSON_VERBS
    frame = analysis.verb_group(subject, analysis.one(verbs))
    if kind < 0.4:
        thing = analysis.mention(lexicon.REFLEXIVE_PRONOUNS[second.gender], second.word)
    elif kind < 0.7:
        thing = analysis.mention(lexicon.OBJECT_PRONOUNS[first.gender], first.word)
    else:
        thing = analysis.name(second)
    analysis.object(thing, frame)
    analysis.ending(frame)
    analysis.attach(link, frame.predicate, "mark")
    analysis.attach(frame.predicate, outer.predicate, "ccomp")
    outer.arguments.append(((start, len(analysis.tokens)), "ARG1"))


def gapping(analysis: Analysis) -> None:
    """Append "Tom found the dog and Helen the cat": the omitted second verb is an empty node, and its object has the
    relation `orphan`.
    """
    first, second = analysis.man_and_woman()
    subject, categories = analysis.name(first), {"animal", "thing", "toy"}
    nouns = analysis.some([noun for noun in THINGS if noun.category in categories], 2)
    verb = analysis.one([verb for verb in PERSON_VERBS if categories <= set(verb.objects)])
    frame = analysis.verb_group(subject, verb, tense="past")
    number, adjective = analysis.one(NUMBERS), analysis.one(ADJECTIVES)
    analysis.object(analysis.noun(nouns[0], number, "the", (adjective,)), frame)
    link = analysis.add("and", "CCONJ", "CC")
    remnant = analysis.name(second).head
    analysis.attach(link, remnant, "cc")
    analysis.attach(remnant, frame.predicate, "conj")
    analysis.empty.append((remnant, analysis.tokens[frame.predicate].form, frame.predicate))
    analysis.attach(analysis.noun(nouns[1], analysis.one(NUMBERS), "the").head, remnant, "orphan")


KINDS = (transitive, owner, report, intransitive, report, owner, gapping, report)

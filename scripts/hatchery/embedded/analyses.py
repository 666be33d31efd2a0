"""Sentences of the grammar with their analyses: parts of speech, dependencies, entities, roles and coreference.

The words of a clause come from the grammar; an `Analysis` collects beside each word its tags (UPOS, Penn Treebank)
and its head, beside each phrase its entity type and referent, and one frame for every predicate. Function words are
ambiguous (that, her), forms too (found: VBD or VBN), and phrases hold distracting nouns, so words alone do not decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hatchery.embedded.grammar import Clause, NounPhrase, realise
from hatchery.embedded.lexicon import Name, Noun, Number

# Half-open range of words.
Span = tuple[int, int]
ENTITY_TYPES = {
    "person": "PERSON",
    "animal": "ANIMAL",
    "building": "FAC",
    "place": "LOC",
    "fruit": "FOOD",
    "plant": "PLANT",
    "vehicle": "PRODUCT",
    "tool": "PRODUCT",
    "toy": "PRODUCT",
    "garment": "PRODUCT",
    "thing": "PRODUCT",
}
_MAIN_VERB_TAGS = {"past": "VBD", "perfect": "VBN", "progressive": "VBG", "modal": "VB"}
_AUXILIARY_TAGS = {"has": "VBZ", "is": "VBZ", "does": "VBZ", "have": "VBP", "are": "VBP", "do": "VBP", "did": "VBD"}
_LEMMAS = {"has": "have", "have": "have", "is": "be", "are": "be", "does": "do", "do": "do", "did": "do", "n't": "not"}


@dataclass
class Token:
    """A word with its tags; `head` is the index of its head, -1 for the root."""

    form: str
    lemma: str
    upos: str
    xpos: str
    head: int = -1
    relation: str = "root"


@dataclass(frozen=True)
class Mention:
    """A phrase that refers; two mentions of one sentence corefer if their referents agree."""

    span: Span
    referent: str


@dataclass(frozen=True)
class Phrase:
    """A finished noun phrase of an analysis: its range, its head word and what grammar needs for agreement."""

    span: Span
    head: int
    phrase: NounPhrase


@dataclass
class Frame:
    """A predicate and its arguments with their roles."""

    predicate: int
    arguments: list[tuple[Span, str]] = field(default_factory=list)


@dataclass
class Analysis:
    """An analysed sentence in the making: phrases and clauses append their words.

    `empty` holds elided words as (index of the word before, form, index of its head): empty nodes of CoNLL-U.
    """

    tokens: list[Token] = field(default_factory=list)
    entities: list[tuple[Span, str]] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    empty: list[tuple[int, str, int]] = field(default_factory=list)

    @property
    def words(self) -> tuple[str, ...]:
        """The words in order."""
        return tuple(token.form for token in self.tokens)

    def add(self, form: str, upos: str, xpos: str, head: int = -1, relation: str = "root", lemma: str = "") -> int:
        """Append a word and return its index."""
        self.tokens.append(Token(form, lemma or form, upos, xpos, head, relation))
        return len(self.tokens) - 1

    def attach(self, index: int, head: int, relation: str) -> None:
        """Give a word its head."""
        self.tokens[index].head, self.tokens[index].relation = head, relation

    def name(self, name: Name) -> Phrase:
        """A first name."""
        index = self.add(name.word, "PROPN", "NNP")
        span = (index, index + 1)
        self.entities.append((span, "PERSON"))
        self.mentions.append(Mention(span, name.word))
        return Phrase(span, index, NounPhrase((name.word,), "singular", name.gender))

    def pronoun(self, form: str, referent: str, number: Number = "singular", possessive: bool = False) -> Phrase:
        """A pronoun for something that was or was not mentioned."""
        index = self.add(form, "PRON", "PRP$" if possessive else "PRP")
        self.mentions.append(Mention((index, index + 1), referent))
        return Phrase((index, index + 1), index, NounPhrase((form,), number))

    def noun(
        self,
        noun: Noun,
        number: Number,
        determiner: str,
        adjectives: Sequence[str] = (),
        owner: str = "",
        modifier: tuple[str, Noun, Number] | None = None,
    ) -> Phrase:
        """A noun phrase; `owner` makes the determiner a possessive pronoun for it, `modifier` is "near the boxes".

        Only persons are mentions: things and places are never referred to again in these sentences.
        """
        start = len(self.tokens)
        if owner:
            first = self.pronoun(determiner, owner, possessive=True).head
        elif determiner in ("many", "few", "several"):
            first = self.add(determiner, "ADJ", "JJ")
        elif determiner in ("two", "three"):
            first = self.add(determiner, "NUM", "CD")
        else:
            vowel = (*adjectives, noun.singular)[0][0] in "aeiou"
            form = "an" if determiner == "a" and vowel else determiner
            first = self.add(form, "DET", "DT", lemma=determiner)
        qualities = [self.add(word, "ADJ", "JJ") for word in adjectives]
        tag = "NN" if number == "singular" else "NNS"
        head = self.add(noun.form(number), "NOUN", tag, lemma=noun.singular)
        upos = self.tokens[first].upos
        relation = {"PRON": "nmod:poss", "ADJ": "amod", "NUM": "nummod"}.get(upos, "det")
        self.attach(first, head, relation)
        for index in qualities:
            self.attach(index, head, "amod")
        if modifier is not None:
            preposition = self.add(modifier[0], "ADP", "IN")
            inner = self.noun(modifier[1], modifier[2], "the")
            self.attach(preposition, inner.head, "case")
            self.attach(inner.head, head, "nmod")
        span = (start, len(self.tokens))
        self.entities.append((span, ENTITY_TYPES[noun.category]))
        if noun.category == "person":
            self.mentions.append(Mention(span, f"{noun.singular}@{start}"))
        return Phrase(span, head, NounPhrase(self.words[start:], number, noun.gender))

    def verb_group(self, clause: Clause, subject: Phrase) -> int:
        """The verb group of a statement with this subject; returns the main verb and opens its frame."""
        group = realise(clause)[len(clause.subject.words) :]
        group = group[: len(group) - len(clause.complement)]
        start = len(self.tokens)
        negated = "not" in group or "n't" in group
        for word in group[:-1]:
            if word in ("not", "n't"):
                self.add(word, "PART", "RB", lemma="not")
            elif word in _AUXILIARY_TAGS or word == "could":
                self.add(word, "AUX", _AUXILIARY_TAGS.get(word, "MD"), lemma=_LEMMAS.get(word, "can"))
            else:
                self.add(word, "ADV", "RB")
        if clause.tense == "present":
            tag = "VB" if negated else "VBP" if clause.subject.number == "plural" else "VBZ"
        else:
            tag = "VB" if clause.tense == "past" and negated else _MAIN_VERB_TAGS[clause.tense]
        main = self.add(group[-1], "VERB", tag, lemma=clause.verb.base)
        frame = Frame(main)
        for index in range(start, main):
            token = self.tokens[index]
            self.attach(index, main, "aux" if token.upos == "AUX" else "advmod")
            if token.upos != "AUX":
                frame.arguments.append(((index, index + 1), "ARGM-NEG" if token.upos == "PART" else "ARGM-TMP"))
            elif token.xpos == "MD":
                frame.arguments.append(((index, index + 1), "ARGM-MOD"))
        self.attach(subject.head, main, "nsubj")
        self.frames.append(frame)
        return main

    def finish(self, mark: str = ".") -> None:
        """End the sentence: final mark under the root, first letter in upper case."""
        root = next(index for index, token in enumerate(self.tokens) if token.head == -1)
        self.add(mark, "PUNCT", ".", root, "punct")
        first = self.tokens[0]
        first.form = first.form[0].upper() + first.form[1:]

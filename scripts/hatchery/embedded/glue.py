"""The other tasks of GLUE and SuperGLUE (evaluation.md 5.1 and 6.1), each called after its data set.

CoLA and SST-2 ask about one sentence, MRPC, QQP and STS-B whether two mean the same, COPA for causes, WiC for senses of
a word. In WSC and WNLI one man and one woman act, and the pronoun of the second sentence has the gender of one of them:
a name's place and role tell nothing. Every passage of BoolQ, MultiRC and ReCoRD tells several facts, and right and
wrong answers all name things that it mentions, so that only the fact that was asked for decides.
"""

import re

from hatchery.embedded import lexicon
from hatchery.embedded.draws import (
    CLASSIFIED,
    PERSON_VERBS,
    THINGS,
    Draw,
    a,
    asked,
    did,
    said,
    the,
    told,
)
from hatchery.embedded.grammar import text_of
from hatchery.embedded.minimal_pairs import PARADIGMS
from hatchery.embedded.rows import Row, grouped, labelled
from hatchery.embedded.scenes import GENERAL_VERBS, Words

PLEASANT = ("happy", "kind", "clever")
UNPLEASANT = ("sad", "angry", "ill", "tired")
_TAKING = tuple(verb for verb in lexicon.TRANSITIVE if verb.base in {"lose", "steal", "hide", "take"})
_TAKEN = tuple(noun for noun in lexicon.OBJECTS if noun.category in {"fruit", "tool", "toy", "garment"})
_AMBIGUOUS = ("that", "her", "is", "are")
_ANSWERS = 4


@grouped("sentence")
def cola(draw: Draw, group: int) -> list[Row]:
    """The good sentence of one pair and the bad one of its mirrored twin: 1 acceptable, 0 not.

    Solved by the grammar of all paradigms; single words tell nothing, since twins exchange them.
    """
    one, other = PARADIGMS[group % len(PARADIGMS)].draw(draw.rng)
    if draw.coin():
        one, other = other, one
    return [{"sentence": text_of(one.good), "label": 1}, {"sentence": text_of(other.bad), "label": 0}]


@labelled("sentence")
def sst2(draw: Draw, label: int, group: int) -> Row:
    """ "The old sailor by the lake is not happy": 0 negative, 1 positive.

    Solved by the mood word and the negation together: either alone stands as often under both labels.
    """
    negated = draw.coin()
    mood = draw.one(PLEASANT if bool(label) != negated else UNPLEASANT)
    subject = the(draw.one(lexicon.PERSONS), "singular", draw.adjective())
    adverb = draw.one(("not", "never")) if negated else "always" if draw.coin() else ""
    return {"sentence": said(subject, draw.place(), draw.one(("is", "was")), adverb, mood)}


def _both(first: Words, second: Words) -> Words:
    return (*first, "and", *second)


@labelled("sentence1", "sentence2")
def mrpc(draw: Draw, label: int, group: int) -> Row:
    """ "Tom and Jane thanked Helen" is equivalent (1) to "Jane and Tom thanked Helen", not (0) to "Helen and Tom
    thanked Jane".

    Solved by who acts; both sentences always have the same words.
    """
    one, two, three = draw.names(3)
    verb, place = draw.one(PERSON_VERBS), draw.place()
    subject, object_ = (_both(two, one), three) if label else (_both(*draw.some((one, three), 2)), two)
    return {"sentence1": told(_both(one, two), verb, three, place), "sentence2": told(subject, verb, object_, place)}


@labelled("question1", "question2")
def qqp(draw: Draw, label: int, group: int) -> Row:
    """ "Does Tom say that Helen saw the cat?" asks the same (1) as "Does Tom say Helen saw the cat?", not (0) as "Does
    Helen say Tom saw the cat?".

    Solved by who says and who does; the words are the same under both labels.
    """
    one, two = draw.names(2)
    outer, verb = draw.one(lexicon.CLAUSAL), draw.verb()
    rest = (the(draw.one(THINGS)), draw.place())
    orders = ((one, two), (one, two) if label else (two, one))
    texts = [
        said("does", speaker, outer.base, link, did(subject, verb, *rest), mark="?")
        for (speaker, subject), link in zip(orders, draw.some(("that", ""), 2), strict=True)
    ]
    return {"question1": texts[0], "question2": texts[1]}


@grouped("sentence1", "sentence2")
def stsb(draw: Draw, group: int) -> list[Row]:
    """Five parts (who, what is done, to what, where, and the place's preposition), one point for each that agrees, half
    a point for another thing of the same category.

    Solved by comparing the sentences part by part; each sentence alone says nothing.
    """
    score = group % 6
    kept = draw.some(range(5), score)
    names, verbs, things = draw.names(2), draw.some(GENERAL_VERBS, 2), draw.some(THINGS, 2)
    places, prepositions = draw.some(lexicon.PLACES, 2), draw.some(lexicon.PLACE_PREPOSITIONS, 2)
    texts = []
    for side in (0, 1):
        who, verb, thing, place, preposition = (0 if part in kept else side for part in range(5))
        where = (prepositions[preposition], *the(places[place]))
        texts.append(told(names[who], verbs[verb], the(things[thing]), where))
    related = 2 not in kept and things[0].category == things[1].category
    return [{"sentence1": texts[0], "sentence2": texts[1], "label": score + 0.5 * related}]


def _story(draw: Draw) -> tuple[str, list[tuple[Words, bool]], Words]:
    """The text, its two names in order, each with whether it is meant, and the last words: copula and mood."""
    (man,), (woman,) = draw.names(1, "masculine"), draw.names(1, "feminine")
    one, other = draw.some((man, woman), 2)
    meant = draw.one((one, other))
    predicate = (draw.one(("is", "was")), draw.one(lexicon.MOODS))
    first = told(one, draw.one(PERSON_VERBS), other, draw.place())
    second = said("he" if meant is man else "she", predicate)
    return f"{first} {second}", [(one, one is meant), (other, other is meant)], predicate


@grouped("text")
def wsc(draw: Draw, group: int) -> list[Row]:
    """Does the pronoun (span 2) mean this name (span 1)? Spans count blank-split words."""
    text, people, _ = _story(draw)
    words = text.split()
    pronoun = len(words) - 3
    return [
        {
            "text": text,
            "span1_index": words.index(name),
            "span2_index": pronoun,
            "span1_text": name,
            "span2_text": words[pronoun],
            "label": int(is_meant),
        }
        for (name,), is_meant in people
    ]


@grouped("sentence1")
def wnli(draw: Draw, group: int) -> list[Row]:
    """The second sentence has a name in the place of the pronoun; 1 if it follows from the first."""
    text, people, predicate = _story(draw)
    return [
        {"sentence1": text, "sentence2": said(name, predicate), "label": int(is_meant)} for name, is_meant in people
    ]


@grouped("premise", "choice1", "choice2")
def copa(draw: Draw, group: int) -> list[Row]:
    """ "Tom stole a hammer": was the tool stolen, or the fruit? Asked for the effect, and for the cause.

    Solved by the category of the thing; the mirrored twin has the same choices and the other answer.
    """
    (person,), verb, place = draw.names(1), draw.one(_TAKING), draw.place()
    nouns = draw.some(_TAKEN, 2)
    while nouns[0].category == nouns[1].category:
        nouns = draw.some(_TAKEN, 2)
    things = [a(noun, draw.adjective()) for noun in nouns]
    events = [told(person, verb, thing, place) for thing in things]
    states = [said(the(lexicon.HYPERNYMS[noun.category]), "was", verb.participle) for noun in nouns]
    question = ("effect", "cause")[group % 2]
    premises, choices = (events, states) if question == "effect" else (states, events)
    return [
        {"premise": premise, "choice1": choices[0], "choice2": choices[1], "question": question, "label": label}
        for label, premise in enumerate(premises)
    ]


def _uses(draw: Draw, word: str, sense: int) -> str:
    """A sentence with the word in its first sense (determiner, possessive, auxiliary) or in its second."""
    one, two = draw.names(2)
    place, thing = draw.place(), draw.one(THINGS)
    if word == "that":
        if sense == 0:
            return told(one, draw.verb(), ("that", thing.singular), place)
        inner, outer = did(two, draw.verb(), the(thing)), draw.one(lexicon.CLAUSAL)
        return said(one, draw.one((outer.past, outer.third)), "that", inner)
    if word == "her":
        owned = ("her", thing.singular) if sense == 0 else ("her",)
        return told(one, draw.one(PERSON_VERBS) if sense else draw.verb(), owned, place)
    subject = the(thing, "plural" if word == "are" else "singular", draw.adjective())
    if sense == 0:
        return said(subject, word, draw.one(lexicon.INTRANSITIVE).progressive, place)
    return said(subject, word, place if draw.coin() else draw.adjective())


@labelled("sentence1", "sentence2")
def wic(draw: Draw, label: int, group: int) -> Row:
    """Does the word do the same in both sentences (1) or not (0)? "saw that dog" and "said that the dog slept".

    The language is too small for nouns with two senses; its function words have them: that, her, is, are. Solved by
    what stands around the word in both sentences: each sentence alone is as frequent under both labels.
    """
    word = _AMBIGUOUS[group % len(_AMBIGUOUS)]
    first = int(draw.rng.random() * 2)
    row: Row = {"word": word}
    for number, sense in enumerate((first, first if label else 1 - first), 1):
        text = _uses(draw, word, sense)
        found = re.search(rf"\b{word}\b", text)
        assert found is not None
        row |= {f"sentence{number}": text, f"start{number}": found.start(), f"end{number}": found.end()}
    return row


@grouped("passage")
def boolq(draw: Draw, group: int) -> list[Row]:
    """ "Did Tom find the dog?" about a passage where Tom found the dog and Helen saw the cat: 1 yes, 0 no.

    Solved by who did what: a wrong question mixes the two facts. Both questions are asked about each passage.
    """
    people, verbs, nouns = draw.names(2), draw.some(GENERAL_VERBS, 2), draw.some(THINGS, 2)
    things = [the(noun, draw.one(lexicon.NUMBERS)) for noun in nouns]
    passage = " ".join(told(*fact, draw.place()) for fact in zip(people, verbs, things, strict=True))
    right = int(draw.rng.random() * 2)
    mixed = (1 - right, right) if draw.coin() else (right, 1 - right)
    questions = [asked("", people[who], verbs[right], things[what]) for who, what in (mixed, (right, right))]
    return [{"question": question, "passage": passage, "label": label} for label, question in enumerate(questions)]


@grouped("paragraph")
def multirc(draw: Draw, group: int) -> list[Row]:
    """What did Tom find, what did Helen find? Four answers each, two of them right; flat rows of the hub.

    Solved by who found what; every answer is right for one of the two questions.
    """
    people, verb = draw.names(2), draw.verb()
    things = [the(noun, draw.one(lexicon.NUMBERS)) for noun in draw.some(THINGS, _ANSWERS)]
    owners = draw.some((0, 0, 1, 1), _ANSWERS)
    facts = [told(people[owner], verb, thing, draw.place()) for owner, thing in zip(owners, things, strict=True)]
    return [
        {
            "paragraph": " ".join(facts),
            "question": asked("what", person, verb),
            "answer": said(thing),
            "idx": {"paragraph": group, "question": question, "answer": question * _ANSWERS + index},
            "label": int(owner == question % 2),
        }
        for question, person in enumerate(people, start=2 * group)
        for index, (owner, thing) in enumerate(zip(owners, things, strict=True))
    ]


@grouped("passage")
def record(draw: Draw, group: int) -> list[Row]:
    """Who fits "@placeholder found an animal", when Tom found a dog, Helen a hammer and Jane a pear?

    Solved by the category of what was found; each of the three names is the answer equally often. The passage ends
    with two lines that `@highlight` introduces.
    """
    people, verb = draw.names(3), draw.verb()
    categories = draw.some(sorted({noun.category for noun in CLASSIFIED}), 3)
    nouns = [draw.one([noun for noun in CLASSIFIED if noun.category == category]) for category in categories]
    facts = [told(person, verb, a(noun), draw.place()) for person, noun in zip(people, nouns, strict=True)]
    highlights = [said(the(noun), "is", draw.one(lexicon.QUALITIES))[:-1] for noun in draw.some(nouns, 2)]
    answer = group % 3
    return [
        {
            "passage": " ".join(facts) + "".join(f"\n@highlight\n{line}" for line in highlights),
            "query": text_of(("@placeholder", verb.past, *a(lexicon.HYPERNYMS[categories[answer]]))),
            "entities": [name for (name,) in people],
            "answers": [*people[answer]],
            "idx": {"passage": group, "query": group},
        }
    ]

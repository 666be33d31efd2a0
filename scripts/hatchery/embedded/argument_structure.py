"""Minimal pairs about what a verb takes, for the BabyLM archive: an object, or none.

Twins exchange the verbs: the one that needs an object stands in the good sentence here and in the bad one there.
"""

import random
from dataclasses import replace

from hatchery.embedded.facts import draw_names, draw_place
from hatchery.embedded.grammar import UNINFLECTED_TENSES, Clause, choose, noun_phrase, realise, sentence
from hatchery.embedded.lexicon import INTRANSITIVE, NUMBERS, OBJECTS, PERSONS
from hatchery.embedded.minimal_pairs import Pair, Paradigm, Twins
from hatchery.embedded.scenes import Words, pick_verb


def object_or_none(rng: random.Random) -> Twins:
    """ "Tom carried / slept the pear" and "Tom slept / carried by the lake"."""
    noun = choose(rng, OBJECTS)
    if rng.random() < 0.5:
        (subject,) = draw_names(rng, 1)
    else:
        subject = noun_phrase("the", choose(rng, PERSONS), choose(rng, NUMBERS))
    clause = Clause(subject, pick_verb(rng, noun), (), choose(rng, UNINFLECTED_TENSES))
    without = replace(clause, verb=choose(rng, INTRANSITIVE))
    thing, place = noun_phrase("the", noun, choose(rng, NUMBERS)).words, draw_place(rng)

    def whole(model: Clause, complement: Words) -> Words:
        return sentence(realise(replace(model, complement=complement)))

    return (
        Pair(whole(clause, thing), whole(without, thing)),
        Pair(whole(without, place), whole(clause, place)),
    )


ARGUMENT_STRUCTURE = Paradigm("transitive_or_intransitive", "syntax", "argument_structure", object_or_none)

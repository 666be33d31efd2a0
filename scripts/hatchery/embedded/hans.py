"""HANS in the miniature English (evaluation.md 7): inferences that look right because premise and hypothesis overlap.

Every heuristic has three kinds of pairs where it is right (label 0, entailment) and three where it is wrong (1). The
words of the hypothesis all stand in the premise: in any order (lexical overlap), side by side (subsequence), or as a
clause of their own (constituent). Solved by the structure of the premise.
"""

import random
from dataclasses import dataclass

from hatchery.embedded.facts import ADJECTIVES, PERSON_VERBS, draw_names, draw_place
from hatchery.embedded.grammar import NounPhrase, choose, noun_phrase, sentence, text_of
from hatchery.embedded.lexicon import ANIMAL_VERBS, CLAUSAL, PERSONS, PREPOSITIONS, VERBS
from hatchery.embedded.rows import Row, RowTask
from hatchery.embedded.scenes import Words

_KNOWING = tuple(verb for verb in VERBS if verb.base in {"know", "forget", "see"})


@dataclass(frozen=True)
class Subcase:
    """One kind of pair; `premise` and `hypothesis` are patterns of blank-separated slots and words.

    Slots: A, B, C persons; V a verb between persons; S, T verbs without object; P a place; N a preposition; K a verb
    that presupposes its clause, H one that does not; Q an adjective, D plural persons.
    """

    heuristic: str
    name: str
    label: int
    premise: str
    hypothesis: str


SUBCASES = (
    Subcase("lexical_overlap", "le_conjunction", 0, "A V B and C P", "A V C P"),
    Subcase("lexical_overlap", "le_around_prepositional_phrase", 0, "A N B V C", "A V C"),
    Subcase("lexical_overlap", "le_around_relative_clause", 0, "A that V B S P", "A S P"),
    Subcase("lexical_overlap", "ln_subject_object_swap", 1, "A V B P", "B V A P"),
    Subcase("lexical_overlap", "ln_relative_clause", 1, "A that V B S P", "B V A"),
    Subcase("lexical_overlap", "ln_conjunction", 1, "A and B V C P", "A V B P"),
    Subcase("subsequence", "se_conjunction", 0, "A and B V C P", "B V C P"),
    Subcase("subsequence", "se_adjective", 0, "Q D V A P", "D V A P"),
    Subcase("subsequence", "se_PP_on_obj", 0, "A V B N C", "A V B"),
    Subcase("subsequence", "sn_PP_on_subject", 1, "A N B V C", "B V C"),
    Subcase("subsequence", "sn_relative_clause_on_subject", 1, "A that V B S P", "B S P"),
    Subcase("subsequence", "sn_NP/S", 1, "A K B S P", "A K B"),
    Subcase("constituent", "ce_embedded_under_verb", 0, "A K that B S P", "B S P"),
    Subcase("constituent", "ce_conjunction", 0, "A S P , and B V C", "B V C"),
    Subcase("constituent", "ce_after_because_clause", 0, "because A V B , C S P", "A V B"),
    Subcase("constituent", "cn_embedded_under_verb", 1, "A H that B S P", "B S P"),
    Subcase("constituent", "cn_disjunction", 1, "A S P , or B V C", "B V C"),
    Subcase("constituent", "cn_embedded_under_if", 1, "if A V B , C S P", "A V B"),
)


def _person(rng: random.Random, name: NounPhrase) -> Words:
    return name.words if rng.random() < 0.4 else noun_phrase("the", choose(rng, PERSONS), "singular").words


def _slots(rng: random.Random) -> dict[str, Words]:
    """Material for every slot, no two persons alike."""
    while True:
        persons = [_person(rng, name) for name in draw_names(rng, 3)]
        if len(set(persons)) == len(persons):
            break
    used = {words[-1] for words in persons}
    plural = choose(rng, [noun.plural for noun in PERSONS if noun.singular not in used])
    return {
        **dict(zip("ABC", persons, strict=True)),
        "V": (choose(rng, PERSON_VERBS).past,),
        "S": (choose(rng, ANIMAL_VERBS).past,),
        "P": draw_place(rng),
        "N": (choose(rng, PREPOSITIONS),),
        "K": (choose(rng, _KNOWING).past,),
        "H": (choose(rng, CLAUSAL).past,),
        "Q": (choose(rng, ADJECTIVES),),
        "D": (plural,),
    }


def _filled(pattern: str, slots: dict[str, Words]) -> str:
    return text_of(sentence([word for piece in pattern.split() for word in slots.get(piece, (piece,))]))


def overlap_rows(rng: random.Random, group: int) -> list[Row]:
    """One row for every subcase, entailed and not entailed ones in equal numbers."""
    rows = []
    for number, subcase in enumerate(SUBCASES):
        slots = _slots(rng)
        rows.append(
            {
                "premise": _filled(subcase.premise, slots),
                "hypothesis": _filled(subcase.hypothesis, slots),
                "label": subcase.label,
                "heuristic": subcase.heuristic,
                "subcase": subcase.name,
                "template": f"temp{number + 1}",
            }
        )
    return rows


HANS = RowTask(overlap_rows, ("premise",))

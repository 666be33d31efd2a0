"""The five files of minimal pairs that supplement BLiMP's in the BabyLM archive.

Pairs come as mirrored twins, as all minimal pairs of the language do: what stands in the good text of one pair stands
in the bad text of its twin (docs/papers/babylm-evaluation.md, "Files of minimal pairs"). Question and answer are
divided by a newline.
"""

from collections.abc import Callable
from itertools import pairwise

from demo.draws import ACTED, CLASSIFIED, MEN, PERSON_VERBS, THINGS, WOMEN, Draw, place
from demo.grammar import pick_adjectives
from demo.lexicon import INTRANSITIVE, MOODS, NAMES, NUMBERS, PERSONS
from demo.rows import Row, RowTask
from demo.scenes import GENERAL_VERBS, Words

Texts = tuple[str, ...]
# The fragment, the contrast, and the pairs of one group: good and bad text.
Contrasts = tuple[str, str, list[Texts]]
_WATCHING = tuple(verb for verb in PERSON_VERBS if verb.base in {"watch", "draw", "follow", "help", "visit"})
# Question and answer of each kind; C and I are the copula and the pronoun of the things.
_TURNS = {
    "where": ("where C the Q T.n ?", "I C P"),
    "whether": ("did A V.base B P ?", "yes"),
    "who": ("who W the Q T.n ?", "B"),
    "what": ("what did A W.base P ?", "the Q T.n"),
}
_EASY = tuple(pairwise(("where", "whether", "who", "where", "what", "whether")))


def _adjectives(draw: Draw) -> Words:
    return pick_adjectives(draw.rng)


def _exchanged(one: Texts, other: Texts) -> list[Texts]:
    """Each of two questions with its answer, not with the other one's."""
    return [(f"{ask}\n{its}", f"{ask}\n{others}") for (ask, its), (_, others) in ((one, other), (other, one))]


def hypernym(draw: Draw, group: int) -> Contrasts:
    """ "Tom found a hammer, so Tom found a tool" and not the other way round; under a negation the other way round."""
    draw(A_=NAMES, V=GENERAL_VERBS, P=place, N=CLASSIFIED)
    up, down = "A {0} a N P , so A {0} a N.category P", "A {0} a N.category P , so A {0} a N P"
    plain, negated = (draw.each(up.format(verb), down.format(verb)) for verb in ACTED)
    return draw.slots["V"].base, "inclusion_direction", [plain, negated[::-1]]


def _turns(draw: Draw, kind: str) -> Texts:
    draw(A_B=NAMES, V=PERSON_VERBS, T=THINGS, n=NUMBERS, W=GENERAL_VERBS, Q=_adjectives, P=place)
    plural = draw.slots["n"] == "plural"
    draw(C="are" if plural else "is", I="they" if plural else "it")
    return draw.each(*_TURNS[kind])


def qa_congruence_easy(draw: Draw, group: int) -> Contrasts:
    """A question of one kind with the answer of its kind, not with the answer of another kind."""
    one, other = _EASY[group % len(_EASY)]
    return f"{one}_{other}", "answer_type", _exchanged(_turns(draw, one), _turns(draw, other))


def qa_congruence_tricky(draw: Draw, group: int) -> Contrasts:
    """The wrong answer repeats words of the question: "Where did Tom see the dog?" - "Near the lake." / "The dog."."""
    draw(A_=NAMES, V=GENERAL_VERBS, P=place, T=THINGS, n=NUMBERS)
    where, what = draw.each("where did A V.base the T.n ?", "P"), draw.each("what did A V.base P ?", "the T.n")
    return "where_what", "answer_type_with_lure", _exchanged(where, what)


def subject_aux_inversion(draw: Draw, group: int) -> Contrasts:
    """ "Has the boy that is watching the dog slept?", not "Is the boy that watching the dog has slept?": the auxiliary
    of the main clause comes first, not the nearer one."""
    draw(N=PERSONS, Q=_adjectives, T=THINGS, V=_WATCHING, W=INTRANSITIVE, P=place)
    pairs = [
        draw.each(
            "has the Q N that is V.progressive the T W.participle P ?",
            "is the Q N that V.progressive the T has W.participle P ?",
        ),
        draw.each(
            "is the Q N that has V.participle the T W.progressive P ?",
            "has the Q N that V.participle the T is W.progressive P ?",
        ),
    ]
    return draw.slots["W"].base, "main_or_embedded_auxiliary", pairs


def turn_taking(draw: Draw, group: int) -> Contrasts:
    """The answer takes up whom the question was about: he for Tom, she for Helen; it or they for one or several."""
    draw(P=place, M=MOODS)
    if group % 2:
        draw(A_=MEN, B_=WOMEN, V=GENERAL_VERBS, T=THINGS)
        he = draw.each("did A V.base the T P ?", "yes , he was M")
        she = draw.each("did B V.base the T P ?", "yes , she was M")
        return "question_answer", "gender_of_pronoun", _exchanged(he, she)
    draw(T=THINGS, Q=_adjectives)
    it, they = draw.each("where is the Q T ?", "it is P"), draw.each("where are the Q T.plural ?", "they are P")
    return "question_answer", "number_of_pronoun", _exchanged(it, they)


def _task(contrasts: Callable[[Draw, int], Contrasts]) -> RowTask:
    def make(draw: Draw, group: int) -> list[Row]:
        fragment, contrast, pairs = contrasts(draw, group)
        fixed = {"fragment": fragment, "contrast": contrast}
        return [
            {"row": len(pairs) * group + index, **fixed, "sentence_good": good, "sentence_bad": bad}
            for index, (good, bad) in enumerate(pairs)
        ]

    return RowTask(make, ("sentence_good", "sentence_bad"), contrasts.__name__)


SUPPLEMENT = tuple(map(_task, (hypernym, qa_congruence_easy, qa_congruence_tricky, subject_aux_inversion, turn_taking)))

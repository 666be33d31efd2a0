"""Zero-shot tasks and GLUE of BabyLM 2026 in the generated language: a full and a fast version, with few rows per file.

The files have the layout of the organisers' files (docs/papers/babylm-2026.md, "Zero-shot tasks"). The correct answer
of an item follows from its context: the place where a person found a thing, the box to which a thing was moved, or the
category of a thing.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from demo import glue, inference, lexicon
from demo.babylm_suites import SUPPLEMENT
from demo.grammar import text_of
from demo.human_data import human_files
from demo.lexicon import MOODS, NAMES
from demo.rows import (
    CLASSIFIED,
    PERSON_VERBS,
    THINGS,
    Draw,
    Pair,
    RowTask,
    TaskRow,
    draw_splits,
    json_lines,
    place,
)
from demo.scenes import GENERAL_VERBS

Files = Iterator[tuple[str, bytes]]
MOST_OPERATIONS = 5
_BOXES = 3
_MOVED = {"regular": "{thing} in Box {box}", "ambiref": "{thing}", "move_contents": "contents of Box {box}"}
_CONCEPTS = ("wug", "dax", "blick", "fep", "toma", "zorp")


def _swapped(row: TaskRow) -> list[TaskRow]:
    """Return two EWoK items: the item `row`, and a copy in which the two contexts are swapped and the two targets are
    swapped.
    """
    swaps = {"Context1": "Context2", "Context2": "Context1", "Target1": "Target2", "Target2": "Target1"}
    return [row, {key: row[swaps.get(key, key)] for key in row}]


def _spatial(draw: Draw, group: int) -> list[TaskRow]:
    """Return EWoK items in which the context "Tom found the hammer near the lake." fits the target "The hammer was near
    the lake.".
    """
    draw(A=NAMES, V=GENERAL_VERBS, T=THINGS, P=place)
    draw(Q=_another(draw, "P", place))
    texts = draw.texts(Context1="A V the T P", Context2="A V the T Q", Target1="the T was P", Target2="the T was Q")
    return _swapped({**texts, "Domain": "spatial-relations", "ContextType": "direct"})


def _social(draw: Draw, group: int) -> list[TaskRow]:
    """Return EWoK items in which the context "Tom helped Helen." fits the target "Helen thanked Tom."."""
    draw(A_B=NAMES, V=PERSON_VERBS)
    texts = draw.texts(Context1="A V B", Context2="B V A", Target1="B thanked A", Target2="A thanked B")
    return _swapped({**texts, "Domain": "social-relations", "ContextType": "indirect"})


def _properties(draw: Draw, group: int) -> list[TaskRow]:
    """Return EWoK items in which the context "Tom was sad." fits the target "Tom was sad again."."""
    draw(A=NAMES, M_N=MOODS, P=place)
    contexts = draw.texts(Context1="A was M P", Context2="A was N P")
    targets = draw.texts(Target1="A was M again", Target2="A was N again")
    return _swapped({**contexts, **targets, "Domain": "agent-properties", "ContextType": "direct"})


_EWOK = {"spatial-relations": _spatial, "social-relations": _social, "agent-properties": _properties}


def _another(draw: Draw, slot: str, source: Callable[[Draw], object]) -> Callable[[Draw], object]:
    """Return a function that draws from `source` a value other than the word in the slot `slot` of `draw`."""

    def drawn(_: Draw) -> object:
        while (found := source(draw)) == draw.slots[slot]:
            pass
        return found

    return drawn


def _kinds(draw: Draw) -> tuple[str, str, str]:
    """Return two nouns of different categories, each with an article, and a property that only the first noun has."""
    draw(N=CLASSIFIED)
    of_another = [noun for noun in CLASSIFIED if noun.category != draw.slots["N"].category]
    draw(M=of_another)
    one, other = (draw.text(f"a {slot} is a N.category") for slot in "NM")
    right, _, property_phrase = one.partition(" is ")
    return right, other.partition(" is ")[0], f"is {property_phrase}"


def _comps(form: str) -> Callable[[Draw, int], list[TaskRow]]:
    def rows(draw: Draw, group: int) -> list[TaskRow]:
        right, wrong, phrase = _kinds(draw)
        one, other = draw.some(_CONCEPTS, 2)
        said, denied = (f"A {name} is {what.lower()}." for name, what in ((one, right), (other, wrong)))
        if form == "base":
            prefixes = [right, wrong]
        elif form == "wugs":
            prefixes = [f"A {one} is {what.lower()}. Therefore, a {one}" for what in (right, wrong)]
        else:
            known = f"{said} {denied}" if form == "wugs_dist-before" else f"{denied} {said}"
            prefixes = [f"{known} Therefore, a {name}" for name in (one, other)]
        return [{"prefix_acceptable": prefixes[0], "prefix_unacceptable": prefixes[1], "property_phrase": phrase}]

    return rows


def _global_piqa(choices: int) -> Callable[[Draw, int], list[TaskRow]]:
    def rows(draw: Draw, group: int) -> list[TaskRow]:
        draw(A=NAMES, V=GENERAL_VERBS, T=THINGS, P=place)
        places = [draw.slots["P"]]
        while len(places) < choices:
            if (other := place(draw)) not in places:
                places.append(other)
        label = draw.rng.randrange(choices)
        ordered = [*places[1 : label + 1], places[0], *places[label + 1 :]]
        solutions = {f"solution{index}": f"{' '.join(words)}." for index, words in enumerate(ordered)}
        prompt = draw.text("A V the T P", "the T was P").removesuffix(f" {' '.join(places[0])}.")
        return [{"prompt": prompt, **solutions, "label": label, "example_id": f"{choices}-{group}"}]

    return rows


def _entity(split: str, operations: int) -> Callable[[Draw, int], list[TaskRow]]:
    """Return a function that makes an item of entity tracking: three boxes, `operations` moves of things, and a
    question.

    The question asks for the content of the box into which the last move put a thing, or, if there are no moves, of a
    random box. The first option is correct.
    """

    def rows(draw: Draw, group: int) -> list[TaskRow]:
        things = [noun.singular for noun in draw.some(lexicon.OBJECTS, _BOXES + 2)]
        boxes = [[thing] for thing in things[:_BOXES]]
        begin = ", ".join(f"Box {number} contains the {box[0]}" for number, box in enumerate(boxes))
        sentences, asked = [f"{begin}."], draw.rng.randrange(_BOXES)
        for _ in range(operations):
            filled = [number for number, box in enumerate(boxes) if box]
            source = draw.one(filled)
            asked = draw.one([number for number in range(_BOXES) if number != source])
            moved = boxes[source] if split == "move_contents" else [draw.one(boxes[source])]
            what = _MOVED[split].format(thing=moved[0], box=source)
            sentences.append(f"Move the {what} to Box {asked}.")
            boxes[source] = [thing for thing in boxes[source] if thing not in moved]
            boxes[asked] = sorted([*boxes[asked], *moved])
        options = dict.fromkeys([_listed(boxes[asked]), *(_listed([thing]) for thing in things)])
        wrong = [*options][1:5]
        if group == 0 and operations == 1:
            # One row has the wrong option "nothing", as in the data of 2026.
            wrong[-1] = " nothing."
        prefix = f"{' '.join(sentences)} Box {asked} contains"
        return [{"input_prefix": prefix, "options": [_listed(boxes[asked]), *wrong], "numops": operations}]

    return rows


def _listed(things: Sequence[str]) -> str:
    return f" {' and '.join(f'the {thing}' for thing in things)}."


GLUE = (glue.boolq, glue.multirc, glue.wsc, glue.mrpc, glue.qqp, inference.rte, inference.MNLI)


def evaluation_files(pairs: Mapping[str, list[Pair]], seed: int, count: int, taken: Container[str]) -> Files:
    """Yield (path, content) of the files of both versions, `full_eval/` and `fast_eval/`.

    `pairs` are BLiMP's minimal pairs by paradigm. `count` is the number of training rows of each GLUE task, and also
    determines the sizes of the other files. Sentences in `taken` are not used in new rows.
    """
    few = max(2, count // 5)
    for part, blimp, size in (("full_eval", "filtered", few), ("fast_eval", "fast", few // 2)):
        for uid, drawn in pairs.items():
            named = ({**_blimp_row(pair), "UID": uid} for pair in drawn[:size])
            yield f"{part}/blimp_{blimp}/{uid}.jsonl", json_lines(list(named))
        asked = {task.name: (task, size) for task in SUPPLEMENT}
        for name, rows in _drawn(f"{seed}/babylm_evaluation/supplement", asked, taken):
            kept = [{key: row[key] for key in ("sentence_good", "sentence_bad")} for row in rows]
            yield f"{part}/supplement_{blimp}/{name}.jsonl", json_lines(kept)
        asked = {name: (RowTask(make, ("Target1",), numbers=False), size) for name, make in _EWOK.items()}
        for name, rows in _drawn(f"{seed}/babylm_evaluation/ewok", asked, taken):
            yield f"{part}/ewok_{blimp}/{name}.jsonl", json_lines(rows)
        for choices, name in ((4, "parallel"), (2, "nonparallel")):
            asked = {"eng_latn": (RowTask(_global_piqa(choices), ("prompt",), numbers=False), size)}
            for stem, rows in _drawn(f"{seed}/babylm_evaluation/{name}", asked, taken):
                yield f"{part}/global_piqa_{name}/{stem}.jsonl", json_lines(rows)
        for split in _MOVED if part == "full_eval" else ("regular",):
            asked = {
                str(number): (RowTask(_entity(split, number), ("input_prefix",), numbers=False), size // 2)
                for number in range(MOST_OPERATIONS + 1)
            }
            cells = _drawn(f"{seed}/babylm_evaluation/{split}", asked, taken)
            folder = "entity_tracking" if part == "full_eval" else "entity_tracking_fast"
            yield f"{part}/{folder}/{split}.jsonl", json_lines([row for _, rows in cells for row in rows])
    for form in ("base", "wugs", "wugs_dist-before", "wugs_dist-in-between"):
        asked = {form: (RowTask(_comps(form), ("prefix_acceptable", "prefix_unacceptable"), numbers=False), few)}
        for name, rows in _drawn(f"{seed}/babylm_evaluation/comps", asked, taken):
            yield f"full_eval/comps/comps_{name}.jsonl", json_lines(rows)
    yield from human_files(pairs, seed)
    for task in GLUE:
        parts = {"train": (task, count), "valid": (task, count // 2)}
        for name, rows in _drawn(f"{seed}/babylm_evaluation/{task.name}", parts, taken):
            yield f"full_eval/glue_filtered/{task.name}.{name}.jsonl", json_lines(rows)


def _drawn(
    stream: str, asked: dict[str, tuple[RowTask, int]], taken: Container[str]
) -> Iterator[tuple[str, list[TaskRow]]]:
    yield from draw_splits(stream, asked, taken).items()


def _blimp_row(pair: Pair) -> TaskRow:
    return {"sentence_good": text_of(pair.good), "sentence_bad": text_of(pair.bad)}

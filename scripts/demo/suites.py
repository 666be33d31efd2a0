"""Miniature data for every suite of the replicated papers, in the layouts of the published data.

`filter_data` is the archive of BabyLM 2023 (docs/papers/babylm-evaluation.md, "Files"). `glue`, `superglue` and `hans`
are JSON lines with the fields of the data sets on the Hugging Face hub. `edge_probing` contains JSON lines in jiant's
format, and a CoNLL-U file. All data depend only on the seed and the sizes.

In edge probing (docs/papers/ltg-bert.md, "Records of edge probing"), pos, ner, srl and coref label spans of words. A
row of srl is one predicate; a row of coref contains all pairs of mentions in a sentence. The CoNLL-U file has comments,
multiword tokens for contracted negations, and empty nodes for omitted verbs.
"""

import random
from collections.abc import Container, Iterator
from itertools import combinations
from typing import Any

from demo import glue, inference
from demo.analyses import KINDS, Analysis, Span
from demo.babylm_suites import DATASETS, SUPPLEMENT
from demo.grammar import text_of
from demo.paradigms import ARGUMENT_STRUCTURE, PARADIGMS
from demo.rows import Pair, RowTask, TaskRow, blimp_rows, draw_pairs, draw_splits, json_lines
from hatchery.errors import ConfigError

Target = dict[str, Any]
_CONTRACTED = "n't"


def _target(label: str, *spans: Span) -> Target:
    numbered = {f"span{number}": list(span) for number, span in enumerate(spans, 1)}
    return {**numbered, "label": label, "info": {}}


def pos(analysis: Analysis) -> list[list[Target]]:
    """Return the Penn Treebank tag of every word. The tags of "that", "her" and verb forms such as "found" depend on
    the context.
    """
    return [[_target(token.xpos, (index, index + 1)) for index, token in enumerate(analysis.tokens)]]


def ner(analysis: Analysis) -> list[list[Target]]:
    """Return the entity type of every noun phrase and the range of words of the phrase."""
    return [[_target(label, span) for span, label in sorted(analysis.entities)]]


def srl(analysis: Analysis) -> list[list[Target]]:
    """Return the roles of each predicate's arguments. Equal phrases have different roles in different sentences."""
    return [
        [_target(role, (frame.predicate, frame.predicate + 1), span) for span, role in sorted(frame.arguments)]
        for frame in analysis.frames
    ]


def coref(analysis: Analysis) -> list[list[Target]]:
    """Return the label "1" for each pair of mentions with the same referent, and "0" for each other pair.

    Genders and types of the pronouns determine the label. Empty for a sentence without pronouns.
    """
    mentions = sorted(analysis.mentions)
    if not any(analysis.tokens[start].upos == "PRON" for (start, _), _ in mentions):
        return []
    pairs = combinations(mentions, 2)
    return [[_target(str(int(one == other)), span, other_span) for (span, one), (other_span, other) in pairs]]


def _drawn(count: int, stream: str, taken: Container[str], seen: set[str]) -> list[Analysis]:
    """Return `count` different annotated sentences that are neither in `taken` nor in `seen`; their texts are added to
    `seen`.

    Raises ConfigError if there are too few different sentences.
    """
    rng = random.Random(stream)
    analyses: list[Analysis] = []
    for attempt in range(50 * count + 1000):
        analysis = Analysis(rng)
        KINDS[attempt % len(KINDS)](analysis)
        analysis.finish()
        text = text_of(analysis.words)
        if text not in taken and text not in seen:
            seen.add(text)
            analyses.append(analysis)
        if len(analyses) == count:
            return analyses
    raise ConfigError(
        f"examples_per_suite_task: {stream} cannot make {count} different sentences; set a smaller number"
    )


def analysed_files(count: int, stream: str, taken: Container[str]) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of the training and development files of the five probing tasks. All tasks label the same
    sentences.
    """
    seen: set[str] = set()
    for split, conllu_split, number in (("train", "train", count), ("development", "dev", count // 2)):
        analyses = _drawn(number, f"{stream}/{split}", taken, seen)
        for task in (pos, ner, srl, coref):
            # A sentence that has no spans to label in this task has no row in the task's file.
            records = [
                {
                    "text": " ".join(analysis.words),
                    "targets": targets,
                    "info": {"document_id": f"demo/{split}", "sentence_id": index},
                }
                for index, analysis in enumerate(analyses)
                for targets in task(analysis)
                if targets
            ]
            yield f"edge_probing/{task.__name__}.{split}.json", json_lines(records)
        blocks = (
            f"# sent_id = demo-{conllu_split}-{index}\n# text = {text_of(analysis.words)}\n"
            + "".join("\t".join(row) + "\n" for row in _conllu_rows(analysis))
            for index, analysis in enumerate(analyses, 1)
        )
        yield f"edge_probing/dependencies.{conllu_split}.conllu", "".join(f"{block}\n" for block in blocks).encode()


def _conllu_rows(analysis: Analysis) -> Iterator[tuple[str, ...]]:
    """Yield the ten CoNLL-U columns of every word, including rows for contractions and empty nodes."""
    forms = (*analysis.words, "")
    elided = {before: (form, head) for before, form, head in analysis.empty}

    def space(index: int) -> str:
        return "_" if index + 2 < len(forms) and forms[index + 1] not in (".", "?") else "SpaceAfter=No"

    for index, token in enumerate(analysis.tokens):
        contracted = forms[index + 1] == _CONTRACTED
        if contracted:
            form = token.form + _CONTRACTED
            yield f"{index + 1}-{index + 2}", form, *"_______", space(index + 1)
        ending = "_" if contracted or token.form == _CONTRACTED else space(index)
        tags = (token.form, token.lemma, token.upos, token.xpos, "_")
        yield str(index + 1), *tags, str(token.head + 1), token.relation, "_", ending
        if index in elided:
            form, head = elided[index]
            lemma = analysis.tokens[head].lemma
            yield f"{index + 1}.1", form, lemma, "VERB", "VBD", "_", "_", "_", f"{head + 1}:conj", "_"


Files = Iterator[tuple[str, bytes]]
# For each task and split: the task that draws the rows, and the ratio of the number of these rows to the number of
# training rows.
Sets = dict[str, dict[str, tuple[RowTask, float]]]


def _halved(*tasks: RowTask) -> Sets:
    return {task.name: {"train": (task, 1), "validation": (task, 0.5)} for task in tasks}


_MNLI: Sets = {
    "mnli": {
        "train": (inference.MNLI, 1),
        "validation_matched": (inference.MNLI, 0.5),
        "validation_mismatched": (inference.MNLI_MISMATCHED, 0.5),
    }
}
_FILTERED = (glue.cola, glue.sst2, glue.mrpc, glue.qqp, inference.qnli, inference.rte)
# For each group of tasks: pattern of the files' paths, pattern of the text that seeds the random draws of a task, and
# the tasks with their splits.
_GLUE: tuple[tuple[str, str, Sets], ...] = (
    ("glue/{task}.{split}.jsonl", "glue/{task}", _halved(glue.stsb, glue.wnli)),
    (
        "superglue/{task}.{split}.jsonl",
        "superglue/{task}",
        _halved(glue.boolq, inference.cb, glue.copa, glue.multirc, glue.record, glue.wic, glue.wsc),
    ),
)
_OTHERS: tuple[tuple[str, str, Sets], ...] = (
    (
        "filter_data/supplement_filtered/{task}.json",
        "supplement/{task}",
        {task.name: {"pairs": (task, 1)} for task in SUPPLEMENT},
    ),
    (
        "filter_data/glue_filtered/{task}.{split}.json",
        "filter_data/{task}",
        _halved(*_FILTERED, glue.boolq, glue.multirc, glue.wsc) | _MNLI,
    ),
    (
        "filter_data/msgs_filtered/{task}.{split}.json",
        "msgs/{task}",
        {of.stem: {"train": (of.task("train"), 1), "validation": (of.task("test"), 1.5)} for of in DATASETS},
    ),
    # HANS consists of a training file and an evaluation file with the same number of rows.
    ("hans/{split}.jsonl", "hans", {"hans": {"train": (inference.hans, 1), "validation": (inference.hans, 1)}}),
)


def suite_files(pairs: dict[str, list[Pair]], seed: int, count: int, taken: Container[str]) -> Files:
    """Yield (path, content) of the files of all suites.

    `pairs` are BLiMP's minimal pairs by paradigm. `count` is the number of training rows of each task. Sentences in
    `taken` are not used in new rows.
    """

    def drawn(layouts: tuple[tuple[str, str, Sets], ...]) -> Files:
        for path, stream, tasks in layouts:
            for task, sets in tasks.items():
                asked = {split: (rows_of, int(share * count)) for split, (rows_of, share) in sets.items()}
                splits = draw_splits(f"{seed}/{stream.format(task=task)}", asked, taken)
                yield from ((path.format(task=task, split=split), json_lines(rows)) for split, rows in splits.items())

    yield from drawn(_GLUE)
    # The file of a BLiMP phenomenon contains the first pairs of each paradigm that belongs to the phenomenon.
    phenomena: dict[str, list[TaskRow]] = {}
    for paradigm in PARADIGMS:
        phenomena.setdefault(paradigm.term, []).extend(blimp_rows(paradigm, pairs[paradigm.uid][: count - count % 2]))
    others = draw_pairs(ARGUMENT_STRUCTURE, count, seed, taken)
    phenomena[ARGUMENT_STRUCTURE.term] = blimp_rows(ARGUMENT_STRUCTURE, others)
    for phenomenon, rows in sorted(phenomena.items()):
        yield f"filter_data/blimp_filtered/{phenomenon}.json", json_lines(rows)
    yield from drawn(_OTHERS)
    yield from analysed_files(count, f"{seed}/edge_probing", taken)

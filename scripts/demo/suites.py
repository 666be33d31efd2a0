"""Miniature data for every suite of the papers, in the layouts in which the real data are published.

`filter_data` is the archive of BabyLM 2023 (docs/papers/babylm-evaluation.md, "Files"); `glue` and `superglue` have the
hub's fields as JSON lines, `hans` too; `edge_probing` has jiant's JSON lines and CoNLL-U. All of it follows from the
seed.
"""

from collections.abc import Container, Iterator

from demo import glue, inference, msgs
from demo.minimal_pairs import Pair, blimp_rows, draw_pairs
from demo.paradigms import ARGUMENT_STRUCTURE, PARADIGMS
from demo.probing import analysed_files
from demo.rows import Row, RowTask, draw_splits, json_lines
from demo.supplement import SUPPLEMENT

Files = Iterator[tuple[str, bytes]]
# By task and split: what makes the rows, and how many there are to one training row.
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
# Where the files lie, the stream of their draws, and what is in them.
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
        {of.stem: {"train": (of.task("train"), 1), "validation": (of.task("test"), 1.5)} for of in msgs.DATASETS},
    ),
    # Training and evaluation set of about the same size, as published.
    ("hans/{split}.jsonl", "hans", {"hans": {"train": (inference.hans, 1), "validation": (inference.hans, 1)}}),
)


def suite_files(pairs: dict[str, list[Pair]], seed: int, count: int, taken: Container[str]) -> Files:
    """All files with their folders; `pairs` by paradigm are those of BLiMP.

    `count` is the number of training rows of each task; `taken` are known sentences.
    """

    def drawn(layouts: tuple[tuple[str, str, Sets], ...]) -> Files:
        for path, stream, tasks in layouts:
            for task, sets in tasks.items():
                asked = {split: (rows_of, int(share * count)) for split, (rows_of, share) in sets.items()}
                splits = draw_splits(f"{seed}/{stream.format(task=task)}", asked, taken)
                yield from ((path.format(task=task, split=split), json_lines(rows)) for split, rows in splits.items())

    yield from drawn(_GLUE)
    # Each phenomenon of BLiMP pools the first pairs of its paradigms.
    phenomena: dict[str, list[Row]] = {}
    for paradigm in PARADIGMS:
        phenomena.setdefault(paradigm.term, []).extend(blimp_rows(paradigm, pairs[paradigm.uid][: count - count % 2]))
    others = draw_pairs(ARGUMENT_STRUCTURE, count, seed, taken)
    phenomena[ARGUMENT_STRUCTURE.term] = blimp_rows(ARGUMENT_STRUCTURE, others)
    for phenomenon, rows in sorted(phenomena.items()):
        yield f"filter_data/blimp_filtered/{phenomenon}.json", json_lines(rows)
    yield from drawn(_OTHERS)
    yield from analysed_files(count, f"{seed}/edge_probing", taken)

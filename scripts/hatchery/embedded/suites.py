"""Miniature data for every suite of the papers, in the layouts in which the real data are published.

`filter_data` is the archive of BabyLM 2023 (evaluation.md 1.2); `glue` and `superglue` have the hub's fields as JSON
lines, `hans` too; `edge_probing` has jiant's JSON lines and CoNLL-U. All of it follows from the seed.
"""

from collections.abc import Container, Iterator

from hatchery.embedded import glue, inference, msgs
from hatchery.embedded.minimal_pairs import Pair, blimp_rows, draw_pairs
from hatchery.embedded.paradigms import ARGUMENT_STRUCTURE, PARADIGMS
from hatchery.embedded.probing import analysed_files
from hatchery.embedded.rows import Row, RowTask, draw_splits, json_lines
from hatchery.embedded.supplement import SUPPLEMENT

Files = Iterator[tuple[str, bytes]]
# By folder: the ending of its files, the stream of draws, and the tasks with a training and a validation file.
FOLDERS: dict[str, tuple[str, str, tuple[RowTask, ...]]] = {
    "glue": ("jsonl", "glue", (glue.stsb, glue.wnli)),
    "superglue": (
        "jsonl",
        "superglue",
        (glue.boolq, inference.cb, glue.copa, glue.multirc, glue.record, glue.wic, glue.wsc),
    ),
    "filter_data/glue_filtered": (
        "json",
        "filter_data",
        (
            *(glue.cola, glue.sst2, glue.mrpc, glue.qqp, inference.qnli, inference.rte),
            *(glue.boolq, glue.multirc, glue.wsc),
        ),
    ),
}


class Suites:
    """The files of the suites. `count` is the number of training rows of each task; `taken` are known sentences."""

    def __init__(self, seed: int, count: int, taken: Container[str]) -> None:
        self.seed, self.count, self.taken = seed, count, taken

    def files(self, pairs: dict[str, list[Pair]]) -> Files:
        """All files with their folders; `pairs` by paradigm are those of BLiMP."""
        yield from self._tasks("glue")
        yield from self._tasks("superglue")
        yield from self._blimp(pairs)
        for task in SUPPLEMENT:
            drawn = self._drawn(f"supplement/{task.name}", pairs=(task, self.count))["pairs"]
            rows = sorted(_without_numbers(drawn), key=lambda row: row["row"])
            yield f"filter_data/supplement_filtered/{task.name}.json", json_lines(rows)
        yield from self._tasks("filter_data/glue_filtered")
        genres = self._drawn(
            "filter_data/mnli",
            train=(inference.MNLI, self.count),
            validation_matched=(inference.MNLI, self.count // 2),
            validation_mismatched=(inference.MNLI_MISMATCHED, self.count // 2),
        )
        yield from ((f"filter_data/glue_filtered/mnli.{split}.json", json_lines(genres[split])) for split in genres)
        for dataset in msgs.DATASETS:
            scored = (dataset.task("test"), 3 * self.count // 2)
            sets = self._drawn(f"msgs/{dataset.stem}", train=(dataset.task("train"), self.count), validation=scored)
            for split, rows in sets.items():
                path = f"filter_data/msgs_filtered/{dataset.stem}.{split}.json"
                yield path, json_lines(_without_numbers(rows))
        # Training and evaluation set of about the same size, as published.
        sets = self._drawn("hans", train=(inference.hans, self.count), validation=(inference.hans, self.count))
        yield from ((f"hans/{split}.jsonl", json_lines(_without_numbers(rows))) for split, rows in sets.items())
        yield from analysed_files(self.count, f"{self.seed}/edge_probing", self.taken)

    def _drawn(self, stream: str, **sets: tuple[RowTask, int]) -> dict[str, list[Row]]:
        return draw_splits(f"{self.seed}/{stream}", sets, self.taken)

    def _tasks(self, folder: str) -> Files:
        ending, stream, tasks = FOLDERS[folder]
        for task in tasks:
            sets = self._drawn(f"{stream}/{task.name}", train=(task, self.count), validation=(task, self.count // 2))
            yield from ((f"{folder}/{task.name}.{split}.{ending}", json_lines(rows)) for split, rows in sets.items())

    def _blimp(self, pairs: dict[str, list[Pair]]) -> Files:
        """Each phenomenon pools the first pairs of its paradigms."""
        phenomena: dict[str, list[Row]] = {}
        for paradigm in PARADIGMS:
            chosen = pairs[paradigm.uid][: self.count - self.count % 2]
            phenomena.setdefault(paradigm.term, []).extend(blimp_rows(paradigm, chosen))
        others = draw_pairs(ARGUMENT_STRUCTURE, self.count, self.seed, self.taken)
        phenomena[ARGUMENT_STRUCTURE.term] = blimp_rows(ARGUMENT_STRUCTURE, others)
        for phenomenon, rows in sorted(phenomena.items()):
            yield f"filter_data/blimp_filtered/{phenomenon}.json", json_lines(rows)


def _without_numbers(rows: list[Row]) -> list[Row]:
    return [{key: value for key, value in row.items() if key != "idx"} for row in rows]

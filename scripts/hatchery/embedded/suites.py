"""Miniature data for every suite of the papers, in the layouts in which the real data are published.

`filter_data` is the archive of BabyLM 2023 (evaluation.md 1.2); `glue` and `superglue` have the hub's fields as JSON
lines, `hans` too; `edge_probing` has jiant's JSON lines and CoNLL-U. All of it follows from the seed.
"""

from collections.abc import Container, Iterator

from hatchery.embedded import msgs
from hatchery.embedded.analysed_sentences import draw_analyses
from hatchery.embedded.glue import boolq, cola, copa, mrpc, multirc, qqp, record, sst2, stsb, wic, wnli, wsc
from hatchery.embedded.inference import MNLI, MNLI_MISMATCHED, cb, hans, qnli, rte
from hatchery.embedded.minimal_pairs import PARADIGMS, Pair, blimp_rows, draw_pairs
from hatchery.embedded.probing import JIANT_TASKS, conllu_text, jiant_lines
from hatchery.embedded.rows import Row, RowTask, draw_splits, json_lines
from hatchery.embedded.supplement import ARGUMENT_STRUCTURE, SUPPLEMENT

Files = Iterator[tuple[str, bytes]]
# By folder: the ending of its files, the stream of draws, and the tasks with a training and a validation file.
FOLDERS: dict[str, tuple[str, str, tuple[RowTask, ...]]] = {
    "glue": ("jsonl", "glue", (stsb, wnli)),
    "superglue": ("jsonl", "superglue", (boolq, cb, copa, multirc, record, wic, wsc)),
    "filter_data/glue_filtered": ("json", "filter_data", (cola, sst2, mrpc, qqp, qnli, rte, boolq, multirc, wsc)),
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
        yield from self._supplement()
        yield from self._tasks("filter_data/glue_filtered")
        half = self.count // 2
        genres = {
            "train": (MNLI, self.count),
            "validation_matched": (MNLI, half),
            "validation_mismatched": (MNLI_MISMATCHED, half),
        }
        yield from self._splits("filter_data/glue_filtered/mnli.{}.json", "filter_data/mnli", genres)
        for dataset in msgs.DATASETS:
            sets = {"train": (dataset.task("train"), self.count)}
            sets["validation"] = dataset.task("test"), 3 * self.count // 2
            path = f"filter_data/msgs_filtered/{dataset.stem}.{{}}.json"
            yield from self._splits(path, f"msgs/{dataset.stem}", sets, numbered=False)
        # Training and evaluation set of about the same size, as published.
        sets = dict.fromkeys(("train", "validation"), (hans, self.count))
        yield from self._splits("hans/{}.jsonl", "hans", sets, numbered=False)
        yield from self._edge_probing()

    def _tasks(self, folder: str) -> Files:
        ending, stream, tasks = FOLDERS[folder]
        for task in tasks:
            sets = {"train": (task, self.count), "validation": (task, self.count // 2)}
            yield from self._splits(f"{folder}/{task.name}.{{}}.{ending}", f"{stream}/{task.name}", sets)

    def _splits(self, path: str, stream: str, sets: dict[str, tuple[RowTask, int]], numbered: bool = True) -> Files:
        for split, rows in draw_splits(f"{self.seed}/{stream}", sets, self.taken).items():
            yield path.format(split), json_lines(rows if numbered else _without_numbers(rows))

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

    def _supplement(self) -> Files:
        for name, task in SUPPLEMENT.items():
            drawn = draw_splits(f"{self.seed}/supplement/{name}", {"pairs": (task, self.count)}, self.taken)["pairs"]
            rows = sorted(_without_numbers(drawn), key=lambda row: row["row"])
            yield f"filter_data/supplement_filtered/{name}.json", json_lines(rows)

    def _edge_probing(self) -> Files:
        """The five probing tasks, all about the same sentences."""
        seen: set[str] = set()
        for split, conllu_split, count in (("train", "train", self.count), ("development", "dev", self.count // 2)):
            analyses = draw_analyses(count, f"{self.seed}/edge_probing/{split}", self.taken, seen)
            for task in JIANT_TASKS:
                yield f"edge_probing/{task}.{split}.json", jiant_lines(task, analyses, split)
            yield f"edge_probing/dependencies.{conllu_split}.conllu", conllu_text(analyses, conllu_split)


def _without_numbers(rows: list[Row]) -> list[Row]:
    return [{key: value for key, value in row.items() if key != "idx"} for row in rows]

"""Miniature data for every suite of the papers, in the layouts in which the real data are published.

`filter_data` is the archive of BabyLM 2023 (evaluation.md 1.2); `glue` and `superglue` have the hub's fields as JSON
lines, `hans` too; `edge_probing` has jiant's JSON lines and CoNLL-U. All of it follows from the seed.
"""

from collections.abc import Container, Iterator

from hatchery.embedded import analysed_sentences, inference, msgs, passage_tasks, sentence_tasks
from hatchery.embedded.minimal_pairs import PARADIGMS, Pair, blimp_rows, draw_pairs
from hatchery.embedded.probing import JIANT_TASKS, conllu_text, jiant_lines
from hatchery.embedded.rows import RowTask, draw_splits, json_lines
from hatchery.embedded.supplement import ARGUMENT_STRUCTURE, SUPPLEMENT

Files = Iterator[tuple[str, bytes]]
GLUE_FILTERED = {
    "cola": sentence_tasks.ACCEPTABILITY,
    "sst2": sentence_tasks.SENTIMENT,
    "mrpc": sentence_tasks.EQUIVALENCE,
    "qqp": sentence_tasks.DUPLICATES,
    "qnli": inference.ANSWERING,
    "rte": inference.TWO_WAY,
    "boolq": passage_tasks.YES_OR_NO,
    "multirc": passage_tasks.MANY_ANSWERS,
    "wsc": sentence_tasks.SCHEMA,
}
SUPERGLUE = {
    "boolq": passage_tasks.YES_OR_NO,
    "cb": inference.COMMITMENT,
    "copa": passage_tasks.PLAUSIBLE,
    "multirc": passage_tasks.MANY_ANSWERS,
    "record": passage_tasks.CLOZE,
    "wic": passage_tasks.SAME_SENSE,
    "wsc": sentence_tasks.SCHEMA,
}
GLUE = {"stsb": sentence_tasks.SIMILARITY, "wnli": sentence_tasks.RESOLVED}


class Suites:
    """The files of the suites. `count` is the number of training rows of each task; `taken` are known sentences."""

    def __init__(self, seed: int, count: int, taken: Container[str]) -> None:
        self.seed, self.count, self.taken = seed, count, taken

    def filter_data(self, pairs: dict[str, list[Pair]]) -> Files:
        """The BabyLM archive; `pairs` by paradigm are those of BLiMP, of which each phenomenon pools the first ones."""
        phenomena: dict[str, list[dict]] = {}
        for paradigm in PARADIGMS:
            chosen = pairs[paradigm.uid][: self.count - self.count % 2]
            phenomena.setdefault(paradigm.term, []).extend(blimp_rows(paradigm, chosen))
        others = draw_pairs(ARGUMENT_STRUCTURE, self.count, self.seed, self.taken)
        phenomena[ARGUMENT_STRUCTURE.term] = blimp_rows(ARGUMENT_STRUCTURE, others)
        for phenomenon, rows in sorted(phenomena.items()):
            yield f"blimp_filtered/{phenomenon}.json", json_lines(rows)
        for name, task in SUPPLEMENT.items():
            drawn = self._draw(f"supplement/{name}", {"pairs": (task, self.count)})["pairs"]
            rows = [{key: value for key, value in row.items() if key != "idx"} for row in drawn]
            yield f"supplement_filtered/{name}.json", json_lines(sorted(rows, key=lambda row: row["row"]))
        for name, task in GLUE_FILTERED.items():
            yield from self._task("glue_filtered", name, task, "json", "filter_data")
        half = self.count // 2
        genres = {
            "train": (inference.THREE_WAY, self.count),
            "validation_matched": (inference.THREE_WAY, half),
            "validation_mismatched": (inference.THREE_WAY_MISMATCHED, half),
        }
        for split, rows in self._draw("filter_data/mnli", genres).items():
            yield f"glue_filtered/mnli.{split}.json", json_lines(rows)
        for dataset in msgs.DATASETS:
            tasks = msgs.tasks(dataset)
            splits = {"train": (tasks["train"], self.count), "validation": (tasks["validation"], 3 * self.count // 2)}
            for split, rows in self._draw(f"msgs/{dataset.stem}", splits).items():
                kept = [{key: value for key, value in row.items() if key != "idx"} for row in rows]
                yield f"msgs_filtered/{dataset.stem}.{split}.json", json_lines(kept)

    def superglue(self) -> Files:
        """The SuperGLUE tasks."""
        for name, task in SUPERGLUE.items():
            yield from self._task("", name, task, "jsonl", "superglue")

    def glue(self) -> Files:
        """What GLUE has beside the BabyLM archive."""
        for name, task in GLUE.items():
            yield from self._task("", name, task, "jsonl", "glue")

    def hans(self) -> Files:
        """HANS: training and evaluation set of about the same size, as published."""
        splits = self._draw("hans", {"train": (inference.HANS, self.count), "validation": (inference.HANS, self.count)})
        for split, rows in splits.items():
            kept = [{key: value for key, value in row.items() if key != "idx"} for row in rows]
            yield f"{split}.jsonl", json_lines(kept)

    def edge_probing(self) -> Files:
        """The five probing tasks, all about the same sentences."""
        seen: set[str] = set()
        for split, conllu_split, count in (("train", "train", self.count), ("development", "dev", self.count // 2)):
            stream = f"{self.seed}/edge_probing/{split}"
            analyses = analysed_sentences.draw_analyses(count, stream, self.taken, seen)
            for task in JIANT_TASKS:
                yield f"{task}.{split}.json", jiant_lines(task, analyses, split)
            yield f"dependencies.{conllu_split}.conllu", conllu_text(analyses, conllu_split)

    def _draw(self, stream: str, splits: dict[str, tuple[RowTask, int]]) -> dict[str, list[dict]]:
        return draw_splits(f"{self.seed}/{stream}", splits, self.taken)

    def _task(self, folder: str, name: str, task: RowTask, ending: str, stream: str) -> Files:
        prefix = f"{folder}/" if folder else ""
        splits = {"train": (task, self.count), "validation": (task, self.count // 2)}
        for split, rows in self._draw(f"{stream}/{name}", splits).items():
            yield f"{prefix}{name}.{split}.{ending}", json_lines(rows)

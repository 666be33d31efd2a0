"""How many rows of a task were read, kept by the vocabulary filter, used after the limits, and scored."""

from dataclasses import dataclass, replace

from hatchery.evaluation.tasks.example import Example, TaskData


@dataclass(frozen=True)
class SetReport:
    """Numbers of units (examples; sentences in edge probing) of one set."""

    read: int
    """In the files, unrolled: one per candidate entity of ReCoRD."""
    kept: int
    """Within the vocabulary, where the task has a filter."""
    used: int = 0
    """After held-out rows have gone and limits were applied."""
    scored: int = 0
    """Of those used, how many enter the metrics."""


@dataclass(frozen=True)
class ReadReport:
    """Row counts by the name of the set, "train" first. A validation set that was drawn from "train" read no rows."""

    sets: dict[str, SetReport]

    def with_used(self, data: TaskData) -> "ReadReport":
        """The report with the rows of `data` as those that are used."""
        sets = {}
        for name, rows in {"train": data.train, **data.scored}.items():
            if name == "train" and name not in self.sets:
                continue  # a task that is only transferred to
            before = self.sets.get(name, SetReport(0, 0))
            scored = sum(row.scored if isinstance(row, Example) else 1 for row in rows)
            sets[name] = replace(before, used=len(rows), scored=scored if name != "train" else 0)
        return ReadReport(sets)

    def measures(self) -> dict[str, int]:
        """Flat numbers for a manifest: `read_validation`, `kept_validation`, …"""
        return {
            f"{name}_{set_name}": value
            for set_name, report in self.sets.items()
            for name, value in vars(report).items()
        }

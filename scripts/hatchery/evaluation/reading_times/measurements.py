"""Gains of reading times in the tidy table, where nothing that computes with a model need be installed."""

from dataclasses import dataclass

from hatchery.artifacts.records import Record
from hatchery.evaluation.basis import basis, digest_of, shortened
from hatchery.evaluation.evaluation import Evaluated, TidyRow, measured

SUITE = "reading_times"
PER_WORD, TOTAL = "gain_nats_per_word", "gain_nats"
OF_MODEL = ("scoring", "name", "stage", "stage_version")


@dataclass(frozen=True)
class _Gain(Record):
    response: str
    rows: int
    gain_nats: float
    gain_deviation_nats: float | None


def gain_rows(evaluated: Evaluated) -> list[TidyRow]:
    """The gain of each response, per row of the regression and in total."""
    manifest = evaluated.manifest
    asked = {key: value for key, value in manifest.settings.items() if key not in OF_MODEL}
    found = []
    scores = evaluated.records("scores.csv", _Gain, ("response",))
    for row in scores:
        task = evaluated.name if len(scores) == 1 else f"{evaluated.name}/{row.response}"
        about = basis(
            text=shortened(manifest.inputs.get("source")),
            items=row.rows,
            scoring=manifest.measures["scoring"],
            rules=digest_of(sorted(asked.items())),
        )
        for metric, count in ((PER_WORD, row.rows), (TOTAL, 1)):
            found.append(
                measured(
                    *(SUITE, task, "task", metric, row.gain_nats / count),
                    items=row.rows,
                    blind_guess=0.0,
                    primary=metric == PER_WORD,
                    sampling_deviation=None if row.gain_deviation_nats is None else row.gain_deviation_nats / count,
                    basis=about,
                )
            )
    return found

"""Files for BabyLM's evaluation server with the preferred text of every item, in the format of 2023 or in the format
since 2025.

Sources: docs/papers/babylm-evaluation.md, "Prediction files", and docs/papers/babylm-2026.md, "Prediction files".
"""

import json
from collections.abc import Iterator, Sequence

from hatchery.evaluation.minimal_pairs.babylm_items import predicted_text
from hatchery.evaluation.minimal_pairs.decisions import Decision
from hatchery.evaluation.minimal_pairs.items import Item
from hatchery.evaluation.minimal_pairs.pairs import positions_by
from hatchery.evaluation.settings import ScoringSettings, SuiteSettings

HEADER = "index\tprediction\n"


def prediction_files(
    items: Sequence[Item], decisions: Sequence[Decision], settings: ScoringSettings
) -> Iterator[tuple[str, str]]:
    """Yield name and text of each prediction file of a suite.

    Some results have no file, because BabyLM's evaluation server does not accept the results in this form: a sample of
    a suite's items, suites that are not part of BabyLM's challenge, and WUG (whose format is unknown). For the
    multilingual track, accuracies are submitted instead of predictions.
    """
    if settings.pairs_per_paradigm is not None or settings.format == "wug" or settings.track is not None:
        return
    if settings.edition != 2023:
        yield "predictions.json", predictions_json(items, decisions, settings)
    elif settings.unit == "file":
        for name, sentences in preferred_sentences(items, decisions).items():
            yield f"predictions/{name}/predictions.txt", predictions_text(sentences)


def predictions_json(items: Sequence[Item], decisions: Sequence[Decision], suite: SuiteSettings) -> str:
    """Return one line of JSON with an entry for each paradigm: the ids and the preferred texts of its items, in the
    order of the files. In GlobalPIQA, each item has an entry of its own."""
    by_paradigm: dict[str, dict[str, list[dict[str, str]]]] = {}
    for item, decided in zip(items, decisions, strict=True):
        paradigm = item.item_id if suite.format == "global_piqa" else item.paradigm
        rows = by_paradigm.setdefault(paradigm, {"predictions": []})["predictions"]
        rows.append({"id": f"{paradigm}_{len(rows)}", "pred": predicted_text(item.candidates[decided.chosen], suite)})
    return json.dumps(by_paradigm) + "\n"


def preferred_sentences(items: Sequence[Item], decisions: Sequence[Decision]) -> dict[str, list[str]]:
    """Return the preferred texts of each paradigm (or file), in the order of the items."""
    return {
        name: [items[index].candidates[decisions[index].chosen].text for index in positions]
        for name, positions in positions_by(item.paradigm for item in items).items()
    }


def predictions_text(sentences: Sequence[str]) -> str:
    r"""Return the text of `predictions.txt`: a header, then one line per sentence with its index (from 0) and the
    sentence. Line breaks in a sentence are written as `\n`.
    """
    return HEADER + "".join(f"{index}\t{_one_line(sentence)}\n" for index, sentence in enumerate(sentences))


def _one_line(sentence: str) -> str:
    return sentence.replace("\r", "\\r").replace("\n", "\\n")

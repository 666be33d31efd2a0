"""Decisions on minimal pairs in the files that BabyLM 2023 collects: the text that a model prefers, pair by pair.

Source: the BabyLM evaluation pipeline (reference section 4.3): `predictions.txt` with a header and one line per pair,
and one JSON line per task in the collected file. Ties go to the good sentence, which stands first there, unlike the
strict rule of our accuracies.
"""

import json
from collections.abc import Sequence

from hatchery.evaluation.minimal_pairs.accuracy import Outcome
from hatchery.evaluation.minimal_pairs.pairs import MinimalPair, positions_by

HEADER = "index\tprediction\n"


def preferred_sentences(pairs: Sequence[MinimalPair], outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """The preferred sentence of every pair by name of the paradigm (or file), in the order of the pairs."""
    return {
        name: [
            pairs[index].sentence_bad if outcomes[index] == "wrong" else pairs[index].sentence_good
            for index in positions
        ]
        for name, positions in positions_by(pair.paradigm for pair in pairs).items()
    }


def predictions_text(sentences: Sequence[str]) -> str:
    """The text of `predictions.txt`: the header, then index from 0 and sentence, with line breaks spelled `\\n`."""
    return HEADER + "".join(f"{index}\t{_one_line(sentence)}\n" for index, sentence in enumerate(sentences))


def submission_line(task: str, sub_task: str, sentences: Sequence[str]) -> str:
    """One line of `all_predictions.json`; `task` is "blimp" or "supplement", `sub_task` the name of the file."""
    predictions = [
        {"id": f"{sub_task}_{index}", "pred": _one_line(sentence)} for index, sentence in enumerate(sentences)
    ]
    return json.dumps({"task": task, "sub_task": sub_task, "predictions": predictions}, ensure_ascii=False) + "\n"


def _one_line(sentence: str) -> str:
    return sentence.replace("\r", "\\r").replace("\n", "\\n")

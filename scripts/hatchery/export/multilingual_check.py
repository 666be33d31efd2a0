"""Check if the two files for BabyLM's multilingual track have the structure that BabyLM's collator writes.

The check must find mistakes in the code that writes the files. It was therefore written independently of this code,
only from the description of the files (docs/papers/babylm-2026.md, "The multilingual track").
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

_LANGUAGES = ("en", "nl", "zh")
_MUBENCH = tuple(
    f"{task}_{language}_mubench" for task in ("hellaswag", "winogrande", "xstorycloze") for language in _LANGUAGES
)
_PIQA = tuple(f"global_piqa_{kind}_{language}" for kind in ("parallel", "nonparallel") for language in _LANGUAGES)
ZERO_SHOT = (
    *("blimp", "blimp_nl", "zhoblimp", "multiblimp_eng", "multiblimp_nld", "xcomps_nl", "xcomps_zh"),
    *_MUBENCH,
    *_PIQA,
)
_HANZI = ("hanzi_structure", "hanzi_pinyin")
TUNED = {
    **dict.fromkeys(("arc", "belebele", "bmlama", "mnli", "sib200", "truthfulqa", "pos"), _LANGUAGES),
    "include": ("nl", "zh"),
    "xnli": ("en", "zh"),
}
_TEXTS = {"meco_l1": ("eng", "nld", "zho"), "meco_l2": ("nld", "zho")}
_FAST = (*ZERO_SHOT, *_HANZI, *(f"{name}_{one}" for name, texts in _TEXTS.items() for one in texts))
_DOCUMENT, _PLACE = re.compile(r"\d+:[0-9a-f]{64}"), re.compile(r".+:[^:]+")
MOST_CHECKPOINTS = 28


def structure_problems(submission: Any, predictions: Any) -> list[str]:
    """Return one line for each problem in the content of the two submission files. The list is empty if the structure
    of the files is correct.
    """
    return [*_submission(submission), *_predictions(predictions)]


def _share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _submission(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "submission: expected an object"
        return
    for task, entry in value.items():
        allowed = (task,) if task in ZERO_SHOT else TUNED.get(task)
        if allowed is None:
            yield f"submission: {task}: unknown task"
        elif not isinstance(entry, dict) or not entry or not set(entry) <= set(allowed):
            yield f"submission: {task}: expected an object with the keys {', '.join(allowed)}"
        elif not all(map(_share, entry.values())):
            yield f"submission: {task}: expected fractions from 0 to 1, got {entry}"


def _predictions(value: Any) -> Iterator[str]:
    keys = ("zeroshot", "finetune", "hidden", "fast_eval_results")
    if not isinstance(value, dict) or set(value) != set(keys):
        yield f"predictions: expected an object with the keys {', '.join(keys)}"
        return
    results = value["zeroshot"].get("results") if isinstance(value["zeroshot"], dict) else None
    if not isinstance(results, dict) or not all(isinstance(one, dict) for one in results.values()):
        yield "predictions: zeroshot: expected an object with the key results"
    yield from _tuned(value["finetune"])
    yield from _hidden(value["hidden"])
    yield from _fast(value["fast_eval_results"])


def _tuned(block: Any) -> Iterator[str]:
    known = {f"{task}_{language}" for task, languages in TUNED.items() for language in languages}
    if not isinstance(block, dict):
        yield "predictions: finetune: expected an object"
        return
    for name, rows in block.items():
        if name not in known:
            yield f"predictions: finetune: {name}: unknown task"
        elif not isinstance(rows, list) or not rows or not all(_is_prediction(row) for row in rows):
            yield f"predictions: finetune: {name}: expected a list of objects with index and prediction"
        elif [row["index"] for row in rows] != list(range(len(rows))):
            yield f"predictions: finetune: {name}: expected the indices 0 to {len(rows) - 1} in order"


def _is_prediction(row: Any) -> bool:
    is_row = isinstance(row, dict) and set(row) == {"index", "prediction"}
    return is_row and type(row["index"]) is int and isinstance(row["prediction"], str)


def _hidden(block: Any) -> Iterator[str]:
    if not isinstance(block, dict):
        yield "predictions: hidden: expected an object"
        return
    for name, entry in block.items():
        if name in _HANZI:
            fits = isinstance(entry, dict) and all(
                _DOCUMENT.fullmatch(document) and _is_pair(pair) for document, pair in entry.items()
            )
            if not fits or not entry:
                yield f"predictions: hidden: {name}: expected scores and has_unk by key <doc_id>:<doc_hash>"
        elif name in _TEXTS:
            yield from _surprisals(name, entry)
        else:
            yield f"predictions: hidden: {name}: unknown task"


def _is_pair(pair: Any) -> bool:
    if not isinstance(pair, dict) or set(pair) != {"scores", "has_unk"}:
        return False
    scores = pair["scores"]
    return isinstance(scores, list) and len(scores) == 2 and all(map(_finite, scores)) and type(pair["has_unk"]) is bool


def _surprisals(name: str, entry: Any) -> Iterator[str]:
    if not isinstance(entry, dict) or not entry or not set(entry) <= set(_TEXTS[name]):
        yield f"predictions: hidden: {name}: expected an object with one or more of the keys {', '.join(_TEXTS[name])}"
        return
    for language, words in entry.items():
        fits = isinstance(words, Mapping) and all(
            _PLACE.fullmatch(place) and _finite(value) and value >= 0 for place, value in words.items()
        )
        if not fits or not words:
            yield f'predictions: hidden: {name}, {language}: expected an object that maps "item:word" to nats'


def _fast(block: Any) -> Iterator[str]:
    if not isinstance(block, list) or len(block) > MOST_CHECKPOINTS:
        yield f"predictions: fast_eval_results: expected a list of at most {MOST_CHECKPOINTS} checkpoints"
        return
    for number, entry in enumerate(block):
        fits = isinstance(entry, dict) and all(
            name in _FAST and (_finite(value) if name.startswith("meco") else _share(value))
            for name, value in entry.items()
        )
        if not fits:
            yield f"predictions: fast_eval_results: checkpoint {number}: expected an object that maps tasks to scores"

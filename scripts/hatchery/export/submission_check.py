"""Check the structure of a submission, and its number of rows, by the rules of BabyLM's server.

The check must not share assumptions with the code that writes the file. It was therefore written only from the
description of the file (docs/papers/babylm-2026.md, "Submission" and "Leaderboard").
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from hatchery.analysis.babylm_scores import RowCount

TEXTS = ("blimp", "blimp_supplement", "ewok", "entity_tracking_filtered", "comps")
EXAMPLES = ("global_piqa_parallel", "global_piqa_nonparallel")
GLUE = ("boolq", "mnli", "mrpc", "multirc", "qqp", "rte", "wsc")
KEYS = (*TEXTS, *EXAMPLES, "reading", "aoa_surprisals", "aoa", "glue", "fast_eval_results")
FAST = ("blimp", "blimp_supplement", "ewok", "entity_tracking_filtered", *EXAMPLES, "reading")
CHECKPOINTS = {"strict_small": 19, "strict": 28}
SURPRISAL = {
    "step": str,
    "word_count": int,
    "target_word": str,
    "context_id": int,
    "context": str,
    "surprisal": float,
}
_SHOWN = 3


def structure_problems(value: Any, track: Literal["strict", "strict_small"]) -> list[str]:
    """Return one line for each problem in the content of a submission file; empty if BabyLM's server would accept the
    file."""
    if not isinstance(value, dict):
        return ["the file does not contain a JSON object"]
    found = [f"the key {key!r} is missing" for key in KEYS if key not in value]
    found += [f"the key {key!r} is unknown" for key in value if key not in KEYS]
    for block in (*TEXTS, *EXAMPLES):
        found += _predicted(value.get(block), block, _is_text, "a text", one=block in EXAMPLES)
    found += _glue(value.get("glue"))
    found += _reading(value.get("reading"))
    found += _acquisition(value)
    found += _fast(value.get("fast_eval_results"), CHECKPOINTS[track])
    return found


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _predicted(block: Any, name: str, fits: Callable[[Any], bool], kind: str, one: bool = False) -> Iterator[str]:
    """Yield the problems of `block`, the value of the key `name` in the submission file. The block must contain
    predictions, grouped by paradigm. If `one` is true, each paradigm must have exactly one prediction.

    `fits` decides if a prediction is valid, and `kind` describes valid predictions in messages.
    """
    if block is None:
        return
    if not isinstance(block, dict) or not block:
        yield f"{name}: expected null or a mapping from paradigms to predictions"
        return
    for uid, entry in block.items():
        rows = entry.get("predictions") if isinstance(entry, dict) else None
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            yield f"{name}: {uid}: expected a list of predictions"
            continue
        if one and len(rows) != 1:
            yield f"{name}: {uid}: expected one prediction, got {len(rows)}"
        for number, row in enumerate(rows):
            if row.get("id") != f"{uid}_{number}":
                yield f"{name}: {uid}: row {number}: the id is {row.get('id')!r}, expected '{uid}_{number}'"
                break
            if not fits(row.get("pred")):
                yield f"{name}: {uid}: row {number}: the prediction is {row.get('pred')!r}, expected {kind}"
                break


def _glue(block: Any) -> Iterator[str]:
    if not isinstance(block, dict):
        yield "glue: expected a mapping from tasks to predictions"
        return
    yield from (f"glue: {task}: unknown task" for task in block if task not in GLUE)
    if block:
        yield from _predicted(block, "glue", _is_whole, "a whole number")


def _reading(block: Any) -> Iterator[str]:
    if block is None:
        return
    inner = block.get("reading") if isinstance(block, dict) else None
    rows = inner.get("predictions") if isinstance(inner, dict) else None
    if not isinstance(rows, list) or not rows or set(block) != {"reading"}:
        yield "reading: expected null or a list of predictions of 'reading'"
        return
    for number, row in enumerate(rows):
        values = row.get("id"), row.get("pred"), row.get("prev_pred")
        # Only the surprisal of the previous word may be missing (NaN). The surprisal of the word itself must be finite.
        if (
            values[0] != number
            or type(values[1]) is not float
            or not math.isfinite(values[1])
            or type(values[2]) is not float
            or math.isinf(values[2])
        ):
            yield f"reading: row {number}: got {values}, expected the row's number and two surprisals"
            return


def _acquisition(value: Mapping[str, Any]) -> Iterator[str]:
    score, surprisals = value.get("aoa"), value.get("aoa_surprisals")
    if score is not None:
        points = score.get("aoa") if isinstance(score, dict) else None
        if not isinstance(points, int | float) or not -1 <= points <= 1:
            yield f"aoa: got {score!r}, expected {{'aoa': a correlation from -1 to 1}}"
        elif surprisals is None:
            yield "aoa: aoa_surprisals are missing, so the server counts the score as 0"
    if surprisals is None:
        return
    rows = surprisals.get("results") if isinstance(surprisals, dict) else None
    if not isinstance(rows, list) or not rows or not isinstance(surprisals.get("metadata"), dict):
        yield "aoa_surprisals: expected metadata and a list of results"
        return
    for number, row in enumerate(rows):
        wrong = [key for key, kind in SURPRISAL.items() if not isinstance(row, dict) or type(row.get(key)) is not kind]
        if wrong:
            yield f"aoa_surprisals: row {number}: {', '.join(wrong)}: missing, or of the wrong type"
            return
    per_step = Counter(row["step"] for row in rows)
    if len(set(per_step.values())) > 1:
        yield f"aoa_surprisals: the checkpoints have different numbers of rows: {dict(per_step)}"


def _fast(block: Any, most: int) -> Iterator[str]:
    if not isinstance(block, dict) or set(block) != set(FAST):
        yield f"fast_eval_results: expected the keys {', '.join(FAST)}"
        return
    lengths = {len(entries) if isinstance(entries, list) else -1 for entries in block.values()}
    if len(lengths) > 1 or -1 in lengths or max(lengths) > most:
        yield f"fast_eval_results: expected lists of equal length, with at most {most} checkpoints"
        return
    for name, entries in block.items():
        known = {frozenset(entry) for entry in entries if isinstance(entry, dict)}
        if name == "reading" and known - {frozenset(("spr", "rt"))}:
            yield "fast_eval_results: reading: expected the scores spr and rt"
        if len(known) > 1:
            yield f"fast_eval_results: {name}: the checkpoints have different names of scores"
        for number, entry in enumerate(entries):
            if entry is None:
                continue
            whole = isinstance(entry, dict) and entry
            if not whole or not all(type(one) is float and 0 <= one <= 1 for one in entry.values()):
                yield f"fast_eval_results: {name}: checkpoint {number}: expected null or fractions from 0 to 1"
                break


def missing_checkpoints(value: Mapping[str, Any], track: Literal["strict", "strict_small"]) -> list[str]:
    """Return one line for each part of a submission file (`value`) that has more or fewer checkpoints than the track
    requires. These parts are the fast evaluations and the surprisals for the age of acquisition.
    """
    expected, fast = CHECKPOINTS[track], value.get("fast_eval_results") or {}
    there = {f"fast_eval_results: {block}": sum(map(bool, fast.get(block, ()))) for block in FAST}
    surprisals = value.get("aoa_surprisals") or {"results": []}
    there["aoa_surprisals"] = len({row["step"] for row in surprisals["results"]})
    return [f"{block}: {count} of {expected} checkpoints" for block, count in there.items() if count != expected]


def undefined_surprisals(value: Mapping[str, Any]) -> int:
    """Return the number of reading-time predictions in a submission file (`value`) in which a surprisal is NaN, which
    is not valid JSON. The surprisal of the previous word is NaN if the evaluation data has no previous word.
    """
    rows = ((value.get("reading") or {}).get("reading") or {}).get("predictions") or ()
    return sum(any(isinstance(one, float) and math.isnan(one) for one in row.values()) for row in rows)


def differing_counts(value: Mapping[str, Any], expected: Sequence[RowCount]) -> list[str]:
    """Return one line for each top-level key of a submission file (`value`) whose numbers of rows differ from
    `expected`, the numbers of rows in the official evaluation data. BabyLM's collator, the script that joins all
    predictions, drops a task if a paradigm has another number of rows.
    """
    by_block: dict[str, dict[str, int]] = {}
    for count in expected:
        by_block.setdefault(count.block, {})[count.uid] = count.rows
    found = []
    for block, wanted in by_block.items():
        there = value.get(block)
        if not there:
            found.append(f"{block}: nothing was measured")
            continue
        if block == "aoa_surprisals":
            steps = Counter(row["step"] for row in there["results"])
            has = {"": next(iter(set(steps.values()))) if len(set(steps.values())) == 1 else -1}
        elif "" in wanted:
            has = {"": len(there)}
        else:
            has = {uid: len(entry["predictions"]) for uid, entry in there.items()}
        wrong = [uid for uid in {**wanted, **has} if wanted.get(uid) != has.get(uid)]
        if wrong:
            shown = ", ".join(
                f"{uid or 'rows'} {has.get(uid, 0):,} of {wanted.get(uid, 0):,}" for uid in wrong[:_SHOWN]
            )
            more = f", and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
            found.append(f"{block}: {shown}{more}")
    return found

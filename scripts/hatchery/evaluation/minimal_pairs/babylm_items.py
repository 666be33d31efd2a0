"""BabyLM's zero-shot tasks other than BLiMP as items: EWoK, entity tracking, COMPS, GlobalPIQA, WUG.

The files of BabyLM's organisers, and the texts that each task compares, are described in docs/papers/babylm-2026.md,
"Zero-shot tasks". In the organisers' code, the name of a paradigm is called UID. In EWoK, the UID is the domain; in
COMPS and WUG, it is the file; in entity tracking, it is the file and the number of operations. In GlobalPIQA, each row
has a UID of its own, so each folder is one paradigm here.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import read_json_lines, shorten
from hatchery.evaluation.minimal_pairs.items import Candidate, Item
from hatchery.evaluation.settings import PairFormat, SuiteSettings
from hatchery.raw.registration import RawSource
from hatchery.sanitize import plain_name

NOTHING = "nothing"
"""BabyLM 2026 omits the rows of entity tracking in which an option contains this word."""


def _ewok(source: RawSource, suite: SuiteSettings, name: str) -> Iterator[Item]:
    """Yield an item per row. In BabyLM 2026, the candidates are one target after each of two contexts. In BabyLM 2025,
    the candidates are two targets after the first context.
    """
    for record in read_json_lines(source, name):
        domain = plain_name(record.text("Domain"))
        contexts = record.text("Context1"), record.text("Context2")
        targets = f" {record.text('Target1')}", f" {record.text('Target2')}"
        if suite.edition == 2025:
            candidates = tuple(Candidate(target, contexts[0]) for target in targets)
        else:
            candidates = tuple(Candidate(targets[0], context) for context in contexts)
        yield Item(domain, domain, str(record.line), candidates)


def _entity_tracking(source: RawSource, suite: SuiteSettings, name: str) -> Iterator[Item]:
    """Yield an item per row: the options after one prefix, the correct option first. The rows of one file with the same
    number of operations form a paradigm.

    With the edition 2026, rows in which an option contains NOTHING are omitted. Raises EvaluationError naming file and
    line for a malformed row.
    """
    split = plain_name(PurePosixPath(name).stem)
    for record in read_json_lines(source, name):
        options, count = record.value("options"), record.value("numops")
        if (
            not isinstance(options, list)
            or len(options) < 2
            or not all(isinstance(one, str) and (one or suite.official) for one in options)
        ):
            raise EvaluationError(
                f"{record.where}: the field 'options' must be a list of two or more non-empty texts, got "
                f"{shorten(options)}"
            )
        if type(count) is not int or count < 0:
            raise EvaluationError(
                f"{record.where}: the field 'numops' must be a whole number from 0, got {shorten(count)}"
            )
        prefix = record.text("input_prefix")
        if suite.edition == 2025 or not any(NOTHING in option for option in options):
            candidates = tuple(Candidate(option, prefix) for option in options)
            yield Item(f"{split}_{count}_ops", split, str(record.line), candidates)


def _comps(source: RawSource, suite: SuiteSettings, name: str) -> Iterator[Item]:
    """Yield an item per row. Both candidates state the same property: the first candidate of a concept that has this
    property, the second candidate of a concept that lacks this property.
    """
    paradigm = plain_name(PurePosixPath(name).stem).removeprefix("comps_").replace("-", "_")
    for record in read_json_lines(source, name):
        phrase = record.text("property_phrase")
        prefixes = record.text("prefix_acceptable"), record.text("prefix_unacceptable")
        candidates = tuple(Candidate(phrase, f"{prefix} ") for prefix in prefixes)
        yield Item(paradigm, paradigm, str(record.line), candidates)


def _global_piqa(source: RawSource, suite: SuiteSettings, name: str) -> Iterator[Item]:
    """Yield an item per row: the solutions after one prompt. The correct solution is the first candidate, regardless of
    its position in the row. Raises EvaluationError naming file and line for a malformed row and for a repeated id.
    """
    path = PurePosixPath(name)
    paradigm = plain_name(path.parent.name or path.stem)
    seen: set[str] = set()
    for record in read_json_lines(source, name):
        prompt, row = record.text("prompt"), plain_name(record.text("example_id"))
        if row in seen:
            raise EvaluationError(f"{record.where}: got the 'example_id' {row!r} a second time, expected each id once")
        seen.add(row)
        solutions = [record.text("solution0"), record.text("solution1")]
        while record.values.get(f"solution{len(solutions)}") is not None:
            solutions.append(record.text(f"solution{len(solutions)}"))
        label = record.value("label")
        if type(label) is not int or not 0 <= label < len(solutions):
            raise EvaluationError(
                f"{record.where}: the field 'label' must be the index of a solution, 0 to {len(solutions) - 1}, got "
                f"{shorten(label)}"
            )
        ordered = [solutions[label], *solutions[:label], *solutions[label + 1 :]]
        yield Item(paradigm, paradigm, row, tuple(Candidate(f" {one}", prompt) for one in ordered), place=label)


def _wug(source: RawSource, suite: SuiteSettings, name: str) -> Iterator[Item]:
    """Yield an item per row: two sentences, and the fraction of people who prefer the first sentence. Raises
    EvaluationError naming file and line for a malformed row.
    """
    paradigm = plain_name(PurePosixPath(name).stem)
    for record in read_json_lines(source, name):
        texts, ratio = record.text("sentences").split("\t"), record.value("ratio")
        if len(texts) != 2 or not all(map(str.strip, texts)):
            raise EvaluationError(f"{record.where}: the field 'sentences' must be two texts separated by a tab")
        if type(ratio) not in (int, float) or not 0 <= ratio <= 1:
            raise EvaluationError(
                f"{record.where}: the field 'ratio' must be a fraction from 0 to 1, got {shorten(ratio)}"
            )
        yield Item(paradigm, paradigm, str(record.line), tuple(map(Candidate, texts)), preference=float(ratio))


BABYLM_READERS: Mapping[PairFormat, Callable[[RawSource, SuiteSettings, str], Iterator[Item]]] = {
    "ewok": _ewok,
    "entity_tracking": _entity_tracking,
    "comps": _comps,
    "global_piqa": _global_piqa,
    "wug": _wug,
}


def predicted_text(candidate: Candidate, suite: SuiteSettings) -> str:
    """Return the text that prediction files contain for a preferred candidate. In COMPS, and in EWoK except in BabyLM
    2025, it is the candidate's whole text. In all other tasks, it is the candidate's `completion`.
    """
    whole = suite.format == "comps" or (suite.format == "ewok" and suite.edition != 2025)
    return candidate.text if whole else candidate.completion

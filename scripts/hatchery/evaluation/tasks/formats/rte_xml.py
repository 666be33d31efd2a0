"""The files of the RTE challenges 1 to 3 (Dagan et al. 2006): `pair` elements with a text `t` and a hypothesis `h`.

RTE-1 writes `value="TRUE|FALSE"`, RTE-2 and RTE-3 `entailment="YES|NO"`; both become the labels of GLUE,
`entailment` and `not_entailment`. The parser loads no DTD, expands no entities and reaches no network.
"""

from lxml import etree

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.settings import TaskSettings
from hatchery.evaluation.json_lines import shorten
from hatchery.evaluation.tasks.example import Example, TaskData
from hatchery.evaluation.tasks.formats.common import label_index, task_files
from hatchery.storage.sources import RawSource

LABEL_OF_VALUE = {
    "TRUE": "entailment",
    "YES": "entailment",
    "FALSE": "not_entailment",
    "NO": "not_entailment",
}


def read_rte_xml(source: RawSource, task: TaskSettings) -> TaskData:
    """All pairs of the task. Raises EvaluationError naming file and line for broken XML or a wrong pair."""
    return TaskData(train=_rows(source, task, "train"), validation=_rows(source, task, "validation"))


def _rows(source: RawSource, task: TaskSettings, key: str) -> list[Example]:
    return [example for name in task_files(source, task, key) for example in _pairs(source, task, name)]


def _pairs(source: RawSource, task: TaskSettings, name: str) -> list[Example]:
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(source.read_bytes(name), parser)
    except etree.XMLSyntaxError as error:
        raise EvaluationError(f"{name}:{error.lineno or 1}: broken XML: {error.msg}") from error
    examples, seen = [], set()
    for pair in root.iter("pair"):
        where = f"{name}:{pair.sourceline}"
        identifier = pair.get("id")
        if identifier is None or identifier in seen:
            raise EvaluationError(f"{where}: the pair's id {shorten(identifier)} is missing or stands twice")
        seen.add(identifier)
        value = pair.get("value", pair.get("entailment"))
        label = label_index(LABEL_OF_VALUE.get(value or "", value), task, where)
        examples.append(Example((_text(pair, "t", where), _text(pair, "h", where)), label))
    if not examples:
        raise EvaluationError(f"{name}: the file holds no pair elements")
    return examples


def _text(pair: etree._Element, tag: str, where: str) -> str:
    elements = pair.findall(tag)
    if len(elements) != 1:
        raise EvaluationError(f"{where}: expected one {tag!r} in the pair, found {len(elements)}")
    if any(child.tag is etree.Entity for child in elements[0].iter()):
        raise EvaluationError(f"{where}: the text of {tag!r} uses an entity of its own, which is not expanded")
    text = " ".join("".join(elements[0].itertext()).split())
    if not text:
        raise EvaluationError(f"{where}: the text of {tag!r} is empty")
    return text

"""Formats of single collections: one example per line and one file per label, and the files of the RTE challenges.

- `labelled_lines` is made for collections such as the subjectivity data set (Pang and Lee 2004) that come without a
  split: the validation rows are drawn later with the task's `split_seed`.
- `rte_xml` are the files of the RTE challenges 1 to 3 (Dagan et al. 2006): `pair` elements with a text `t` and a
  hypothesis `h`. RTE-1 writes `value="TRUE|FALSE"`, RTE-2 and RTE-3 `entailment="YES|NO"`; both become the labels of
  GLUE, `entailment` and `not_entailment`. The parser loads no DTD, expands no entities and reaches no network.
"""

from collections.abc import Iterator

from lxml import etree

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, decode_lines, shorten, some
from hatchery.raw.registration import RawSource

LINE_FIELDS = ("sentence",)


def read_labelled_lines(source: RawSource, name: str, label: str) -> Iterator[Record]:
    """The lines of a file, white space collapsed, all with `label`.

    Raises EvaluationError naming file and line for bytes that are not UTF-8, and a file without lines.
    """
    lines = decode_lines(source, name)
    return some(
        (Record({"sentence": " ".join(text.split()), "label": label}, f"{name}:{line}", line) for line, text in lines),
        name,
    )


RTE_FIELDS = ("premise", "hypothesis")
LABEL_OF_VALUE = {
    "TRUE": "entailment",
    "YES": "entailment",
    "FALSE": "not_entailment",
    "NO": "not_entailment",
}


def read_rte_xml(source: RawSource, name: str) -> Iterator[Record]:
    """The pairs of a file in order. Raises EvaluationError naming file and line for broken XML or a wrong pair."""
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(source.read_bytes(name), parser)
    except etree.XMLSyntaxError as error:
        raise EvaluationError(f"{name}:{error.lineno or 1}: broken XML: {error.msg}") from error
    seen: set[str] = set()
    for pair in root.iter("pair"):
        where = f"{name}:{pair.sourceline}"
        identifier = pair.get("id")
        if identifier is None or identifier in seen:
            raise EvaluationError(f"{where}: the pair's id {shorten(identifier)} is missing or stands twice")
        seen.add(identifier)
        value = pair.get("value", pair.get("entailment"))
        values = {
            "premise": _text(pair, "t", where),
            "hypothesis": _text(pair, "h", where),
            "label": LABEL_OF_VALUE.get(value or "", value),
        }
        yield Record(values, where, pair.sourceline or 0)
    if not seen:
        raise EvaluationError(f"{name}: the file holds no pair elements")


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

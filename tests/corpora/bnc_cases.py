"""Conversion of hand-made BNC XML."""

from hatchery.corpora.bnc_page import parse
from hatchery.corpora.bnc_text import convert_text
from hatchery.corpora.documents import Rejections
from hatchery.settings.base import ReadingName

HEADER = (
    "<teiHeader><fileDesc><sourceDesc><bibl><title>T</title></bibl></sourceDesc></fileDesc><profileDesc><particDesc>"
    '<person xml:id="P1"><persName>ada</persName></person></particDesc></profileDesc></teiHeader>'
)
READINGS: tuple[ReadingName, ...] = ("as_published", "corrected")


def convert(body: str, reading: ReadingName, rejections: Rejections | None = None) -> str:
    """Return the converted page of a body, without the title."""
    root = parse(f"<bncDoc>{HEADER}{body}</bncDoc>".encode(), "x.xml")
    page = convert_text(root, lambda: "Drawn", Rejections() if rejections is None else rejections, reading)
    assert page.startswith("# T\n\n")
    assert page.endswith("\n\n")
    return page.removeprefix("# T\n\n").rstrip("\n")

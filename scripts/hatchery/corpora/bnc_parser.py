"""Safe reading of XML that strangers may have made: a tree, or one clear error with file and line.

Entities are refused in every encoding, a document type is never loaded, nothing is fetched, and the limits of libxml2
on depth (256 elements) and on text nodes (10 million bytes) stay on. Comments and processing instructions are dropped.
"""

from lxml import etree

from hatchery.errors import SourceError


def parse(content: bytes, where: str) -> etree._Element:
    """The root of an XML document.

    Raises SourceError naming `where` and the line when it is damaged or hostile, MemoryError when it does not fit.
    """
    if not content:
        raise SourceError(f"{where}: line 1: the file is empty, expected XML")
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        if error.code == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError from error
        if _entity_line(content):
            raise _refusal(content, where) from error
        message = " ".join((error.msg or "damaged").split())
        raise SourceError(f"{where}: line {error.lineno or 1}: not well-formed XML: {message}") from error
    except (LookupError, ValueError) as error:
        raise SourceError(f"{where}: line 1: cannot be read as XML: {error}") from error
    # Asking the tree finds declarations in any encoding and costs nothing, unlike a search in all bytes beforehand;
    # until here libxml2 has fetched nothing and has bounded what the entities expand to.
    document_type = root.getroottree().docinfo.internalDTD
    if document_type is not None and next(document_type.iterentities(), None) is not None:
        raise _refusal(content, where)
    return root


def _entity_line(content: bytes) -> int:
    """The line of the first entity declaration, 0 where there is none."""
    # UTF-16 and UTF-32 are ASCII with zero bytes between, as far as this word goes.
    narrow = content.replace(b"\0", b"") if b"\0" in content[:4] else content
    declared = narrow.find(b"<!ENTITY")
    return 1 + narrow.count(b"\n", 0, declared) if declared >= 0 else 0


def _refusal(content: bytes, where: str) -> SourceError:
    line = _entity_line(content) or 1
    return SourceError(f"{where}: line {line}: the text declares XML entities, which this reader refuses")


def line_of(element: etree._Element) -> str:
    """The place of an element for messages: "line 12". From line 65,535 on the parser knows it only roughly."""
    line = element.sourceline or 0
    return f"line {line}" if line < 65535 else f"about line {line}"


def unexpected(element: etree._Element) -> SourceError:
    """The error for an element that the rules do not know at its place."""
    parent = element.getparent()
    inside = "at the top" if parent is None else f"in <{parent.tag}>"
    return SourceError(f"{line_of(element)}: element <{element.tag}> is not expected {inside}")

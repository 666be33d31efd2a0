"""Writes generated documents as written and spoken texts in the format of the BNC XML Edition.

Source: docs/papers/ltg-bert.md, "Elements of the BNC". Quotes, lists, verse, captions, gaps and unclear passages are
frequent enough that a test would find an error of the reader in one of these elements.
"""

import random
from collections.abc import Sequence

from lxml import etree

from demo.documents import EmbeddedDocument, with_speech
from demo.grammar import text_of
from demo.lexicon import NAMES, NOUNS, VERBS
from demo.scenes import Words

_QUOTES = {"“": "‘", "”": "’"}
_TAGS: dict[str, tuple[str, str]] = {
    **{verb.base: ("VVB", "VERB") for verb in VERBS},
    **{verb.third: ("VVZ", "VERB") for verb in VERBS},
    **{verb.past: ("VVD", "VERB") for verb in VERBS},
    **{verb.progressive: ("VVG", "VERB") for verb in VERBS},
    **{noun.singular: ("NN1", "SUBST") for noun in NOUNS},
    **{noun.plural: ("NN2", "SUBST") for noun in NOUNS},
    **{name.word: ("NP0", "SUBST") for name in NAMES},
}


class _Writer:
    """Builds the XML elements of one text, and numbers the sentences of this text."""

    def __init__(self) -> None:
        self.sentences = 0

    def words(self, parent: etree._Element, words: Sequence[str]) -> None:
        """Append words as elements `w` and punctuation marks as elements `c`; as in the BNC, the element of a word
        contains the space after it.
        """
        for index, word in enumerate(words):
            following = words[index + 1] if index + 1 < len(words) else ""
            glued = not following or following in {".", ",", "?", "!", "”", "n't"} or word == "“"
            space = "" if glued else " "
            if word in _QUOTES:
                etree.SubElement(parent, "c", c5="PUQ").text = _QUOTES[word] + space
            elif not word[0].isalnum() and word != "n't":
                etree.SubElement(parent, "c", c5="PUN").text = word + space
            else:
                tag, part_of_speech = _TAGS.get(word, ("UNC", "UNC"))
                element = etree.SubElement(parent, "w", c5=tag, hw=word.lower(), pos=part_of_speech)
                element.text = word + space

    def sentence(self, parent: etree._Element, words: Sequence[str], interruption: str = "") -> None:
        """Append an element `s` that contains a sentence.

        If `interruption` is set and the sentence has at least five words, an empty element with this name replaces the
        third word.
        """
        self.sentences += 1
        element = etree.SubElement(parent, "s", n=str(self.sentences))
        if not interruption or len(words) < 5:
            self.words(element, words)
            return
        self.words(element, words[:2])
        element[-1].text = (element[-1].text or "").rstrip() + " "
        etree.SubElement(element, interruption)
        self.words(element, words[3:])

    def paragraph(self, parent: etree._Element, sentences: Sequence[Words], tag: str = "p", **attributes: str) -> None:
        """Append an element `tag` (by default, a paragraph) with these sentences."""
        element = etree.SubElement(parent, tag, attributes)
        for words in sentences:
            self.sentence(element, words)


def _header(text_id: str, title: str, spoken: bool, speakers: Sequence[str], words: int) -> etree._Element:
    header = etree.Element("teiHeader")
    description = etree.SubElement(header, "fileDesc")
    statement = etree.SubElement(description, "titleStmt")
    kind = "speech recorded in leisure context" if spoken else "from a book (domain: imaginative)"
    etree.SubElement(statement, "title").text = f"{title}. Sample containing about {words} words {kind}"
    etree.SubElement(etree.SubElement(description, "publicationStmt"), "idno", type="bnc").text = text_id
    source = etree.SubElement(description, "sourceDesc")
    if spoken:
        etree.SubElement(etree.SubElement(source, "recordingStmt"), "recording", n="000001")
    else:
        etree.SubElement(etree.SubElement(source, "bibl"), "title").text = f"{title}. "
    profile = etree.SubElement(header, "profileDesc")
    etree.SubElement(profile, "creation", date="2000")
    if speakers:
        participants = etree.SubElement(profile, "particDesc", n="X001")
        for index, name in enumerate(speakers):
            identifier = {"{http://www.w3.org/XML/1998/namespace}id": f"{text_id}PS{index:03d}"}
            person = etree.SubElement(participants, "person", identifier, role="other")
            # In some texts, the header does not name the last speaker, so a reader of the format must invent a name.
            if name:
                etree.SubElement(person, "persName").text = name.lower()
    return header


def written_text(text_id: str, documents: Sequence[EmbeddedDocument], rng: random.Random) -> bytes:
    """Return a written text with one division per document; some paragraphs are quotes, lists or verse."""
    writer = _Writer()
    body = etree.Element("wtext", type="FICTION")
    for number, document in enumerate(documents, start=1):
        division = etree.SubElement(body, "div", level="1", n=str(number), type="chapter")
        if rng.random() < 0.8:
            writer.sentence(etree.SubElement(division, "head", type="MAIN"), document.title)
        for paragraph in with_speech(document, rng):
            _written_paragraph(writer, division, paragraph, rng)
    title = text_of(documents[0].title)
    words = sum(len(sentence) for document in documents for sentence in document.sentences)
    return _document(text_id, _header(text_id, title, spoken=False, speakers=(), words=words), body)


def _written_paragraph(writer: _Writer, division: etree._Element, paragraph: list[Words], rng: random.Random) -> None:
    kind = rng.random()
    if kind < 0.03:
        writer.paragraph(division, paragraph, "quote")
    elif kind < 0.06:
        items = etree.SubElement(division, "list")
        for words in paragraph:
            writer.paragraph(items, [words], "item")
    elif kind < 0.08:
        verse = etree.SubElement(division, "lg")
        for words in paragraph:
            writer.paragraph(verse, [words], "l")
    elif kind < 0.10:
        element = etree.SubElement(division, "p")
        writer.sentence(element, paragraph[0])
        writer.paragraph(element, paragraph[1:-1], "quote")
        writer.sentence(element, paragraph[-1])
    elif kind < 0.12:
        writer.paragraph(division, paragraph[:1], type="caption:figure")
        etree.SubElement(division, "gap", reason="omitted", desc="figure")
        writer.paragraph(division, paragraph[1:])
    else:
        element = etree.SubElement(division, "p")
        for words in paragraph:
            writer.sentence(element, words, "gap" if rng.random() < 0.005 else "")
        if rng.random() < 0.05:
            etree.SubElement(division, "pb", n=str(writer.sentences))


def spoken_text(text_id: str, documents: Sequence[EmbeddedDocument], rng: random.Random) -> bytes:
    """Return a spoken text with one division per conversation, and with pauses, noises and unclear passages."""
    writer = _Writer()
    names = sorted({name for document in documents for name in document.speakers})
    identifiers = {name: f"{text_id}PS{index:03d}" for index, name in enumerate(names)}
    unnamed = {names[-1]} if rng.random() < 0.3 else set()
    body = etree.Element("stext", type="CONV")
    for number, document in enumerate(documents, start=1):
        division = etree.SubElement(body, "div", n=f"{number:06d}")
        for turn, speaker in zip(document.paragraphs, document.speakers, strict=True):
            utterance = etree.SubElement(division, "u", who=identifiers[speaker])
            for words in turn:
                writer.sentence(utterance, words, "unclear" if rng.random() < 0.01 else "")
                if rng.random() < 0.05:
                    etree.SubElement(utterance, "pause")
            if rng.random() < 0.03:
                etree.SubElement(division, "vocal", desc="laugh")
    speakers = ["" if name in unnamed else name for name in names]
    count = sum(len(sentence) for document in documents for sentence in document.sentences)
    title = f"{len(documents)} conversations recorded in 2000"
    return _document(text_id, _header(text_id, title, spoken=True, speakers=speakers, words=count), body)


def _document(text_id: str, header: etree._Element, body: etree._Element) -> bytes:
    root = etree.Element("bncDoc", {"{http://www.w3.org/XML/1998/namespace}id": text_id})
    root.extend((header, body))
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=False)

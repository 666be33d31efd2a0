"""Writers of generated documents in the raw layouts of the ten BabyLM corpora (Warstadt et al. 2023) and of other
corpora.

Source of the BabyLM layouts: docs/papers/elc-bert.md, "Layouts of the raw files". The other layouts are the columns of
CHILDES exports (AO-CHILDES), the three fields of C4's compressed JSON lines, WikiExtractor's blocks, and the line
formats of BookCorpus and of the Children's Book Test. The layout of each BabyLM corpus contains the features that the
corpus's normaliser must handle: separated tokens, hard-wrapped lines, citations, links, dashes before turns, and timing
lines of subtitles.
"""

import csv
import gzip
import html
import io
import json
import random
from collections.abc import Callable, Iterator, Sequence

from demo.documents import (
    EmbeddedDocument,
    Kind,
    lower_first,
    natural,
    paragraph_text,
    spaced,
    treebank,
    with_speech,
    wrapped,
)
from demo.grammar import choose
from demo.lexicon import HYPERNYMS, NOUNS

Documents = Sequence[EmbeddedDocument]


def aochildes(documents: Documents, rng: random.Random) -> list[str]:
    """Return one line per utterance, with spaces between all tokens, and no blank lines."""
    return [spaced(words) for document in documents for words in document.sentences]


def bnc_spoken(documents: Documents, rng: random.Random) -> list[str]:
    """Return one line per sentence, and a blank line after each conversation. Some lines contain only a punctuation
    mark.
    """
    lines: list[str] = []
    for document in documents:
        for words in document.sentences:
            lines.append(natural(words))
            if rng.random() < 0.01:
                lines.append(choose(rng, (".", "?")))
        lines.append("")
    return lines


def cbt(documents: Documents, rng: random.Random) -> list[str]:
    """Return one line per sentence, as Penn Treebank tokens. Between two books, there is only a title line."""
    lines: list[str] = []
    for index, document in enumerate(documents):
        if index % 4 == 0:
            lines.append(f"_BOOK_TITLE_ : {'_'.join(document.title)}.txt.out")
        lines.append(f"CHAPTER {'I' * (index % 4 + 1)}")
        lines.extend(treebank(words) for paragraph in with_speech(document, rng, 0.15) for words in paragraph)
    return lines


def children_stories(documents: Documents, rng: random.Random) -> list[str]:
    """Return stories with titles in capitals and blank lines between paragraphs. Some lines are indented by four
    spaces.
    """
    lines: list[str] = []
    for document in documents:
        lines.extend((natural(document.title).upper(), ""))
        for paragraph in with_speech(document, rng, 0.15):
            middle = (len(paragraph) + 1) // 2
            indent = "    " if rng.random() < 0.2 else ""
            lines.append(indent + paragraph_text(paragraph[:middle]))
            lines.extend((paragraph_text(paragraph[middle:]), ""))
    return lines


def gutenberg(documents: Documents, rng: random.Random) -> list[str]:
    """Return hard-wrapped lines, with one blank line between paragraphs, and two blank lines between documents."""
    lines: list[str] = []
    for document in documents:
        lines.extend((natural(document.title).upper(), ""))
        for paragraph in with_speech(document, rng):
            lines.extend((*wrapped(paragraph_text(paragraph)), ""))
        lines.append("")
    return lines


def open_subtitles(documents: Documents, rng: random.Random) -> list[str]:
    """Return one line per subtitle, with dashes before some turns, noises in brackets, and blank lines between
    films.
    """
    lines: list[str] = []
    for document in documents:
        for turn in document.paragraphs:
            dash = "- " if rng.random() < 0.3 else ""
            lines.extend((dash if index == 0 else "") + natural(words) for index, words in enumerate(turn))
            if rng.random() < 0.02:
                lines.append(choose(rng, ("(door slams)", "[MUSIC PLAYS]")))
        lines.extend(("", "") if rng.random() < 0.3 else ("",))
    return lines


def qed(documents: Documents, rng: random.Random) -> list[str]:
    """Return one line per sentence, with escaped entities and timing lines of subtitles."""
    lines: list[str] = []
    for document in documents:
        for words in document.sentences:
            text = natural(words)
            if rng.random() < 0.02:
                lines.append("00:00:12,000 --&gt; 00:00:15,000")
            lines.append(f"&amp;gt;&amp;gt; {text}" if rng.random() < 0.02 else text)
        lines.append("")
    return lines


def simple_wikipedia(documents: Documents, rng: random.Random) -> list[str]:
    """Return articles: a title line, one line per paragraph, with citations, and a blank line. Some articles have only
    one sentence.
    """
    lines: list[str] = []
    for document in documents:
        title = natural(document.title)
        lines.append(title)
        lines.extend(_cited(paragraph_text(paragraph), rng) for paragraph in document.paragraphs)
        lines.append("")
        if rng.random() < 0.02:
            lines.extend((f"{title} Hill", f"{title} Hill is a village in the forest.", ""))
    return lines


def switchboard(documents: Documents, rng: random.Random) -> list[str]:
    """Return one line per utterance; some lines begin with a dash."""
    return [
        ("- " if rng.random() < 0.05 else "") + natural(words) for document in documents for words in document.sentences
    ]


def wikipedia(documents: Documents, rng: random.Random) -> list[str]:
    """Return articles with title lines between equals signs, links in wiki markup, citations, and category lines."""
    lines: list[str] = []
    for document in documents:
        lines.extend((f" = = = {natural(document.title)} = = = ", ""))
        for paragraph in document.paragraphs:
            lines.extend((_linked(_cited(paragraph_text(paragraph), rng), rng), ""))
        if rng.random() < 0.3:
            lines.append("[[Category:Things]]")
    return lines


def _cited(text: str, rng: random.Random) -> str:
    return text if rng.random() < 0.6 else f"{text}[{1 + int(rng.random() * 9)}]"


_LINKABLE = frozenset(form for noun in (*NOUNS, *HYPERNYMS.values()) for form in (noun.singular, noun.plural))


def _linked(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    for index, word in enumerate(words):
        if word in _LINKABLE and rng.random() < 0.05:
            words[index] = f"[[{word}]]" if rng.random() < 0.5 else f"[[{word.capitalize()}|{word}]]"
    return " ".join(words)


Layout = Callable[[Documents, random.Random], list[str]]
# For each corpus: its percentage of the documents, the kinds of its documents, and the function that writes its layout.
# The percentages are those of the words in Table 6 of ELC-BERT.
CORPORA: dict[str, tuple[int, tuple[Kind, ...], Layout]] = {
    "aochildes": (5, ("conversation",), aochildes),
    "bnc_spoken": (8, ("conversation",), bnc_spoken),
    "cbt": (6, ("story",), cbt),
    "children_stories": (3, ("story",), children_stories),
    "gutenberg": (10, ("story",), gutenberg),
    "open_subtitles": (31, ("conversation", "story"), open_subtitles),
    "qed": (11, ("article", "story"), qed),
    "simple_wikipedia": (15, ("article",), simple_wikipedia),
    "switchboard": (1, ("conversation",), switchboard),
    "wikipedia": (10, ("article",), wikipedia),
}


Files = Iterator[tuple[str, bytes]]

_COLUMNS = (
    "id speaker_id utterance_order transcript_id corpus_id gloss num_tokens stem part_of_speech speaker_code "
    "speaker_name speaker_role target_child_id target_child_age target_child_name target_child_sex type media_end "
    "media_start media_unit collection_id collection_name num_morphemes language"
)
_CHILDES_COLUMNS = tuple(_COLUMNS.split())


def _body(document: EmbeddedDocument, rng: random.Random) -> str:
    return "\n\n".join(paragraph_text(paragraph) for paragraph in with_speech(document, rng)) + "\n"


def plain_files(documents: Sequence[EmbeddedDocument], rng: random.Random) -> Files:
    """Yield text files with one document each, a CSV file with texts in the column `text`, and JSON lines with texts in
    the field `text`.
    """
    third = max(1, len(documents) // 3)
    for index, document in enumerate(documents[:third]):
        yield f"story-{index:04d}.txt", _body(document, rng).encode()
    table = io.StringIO()
    writer = csv.DictWriter(table, ["id", "genre", "text"], lineterminator="\n")
    writer.writeheader()
    for index, document in enumerate(documents[third : 2 * third]):
        writer.writerow({"id": index, "genre": document.kind, "text": _body(document, rng)})
    yield "stories.csv", table.getvalue().encode()
    lines = (json.dumps({"text": _body(document, rng)}) for document in documents[2 * third :])
    yield "stories.jsonl", "".join(f"{line}\n" for line in lines).encode()


def childes_file(conversations: Sequence[EmbeddedDocument], rng: random.Random) -> Files:
    """Yield a table with one row per utterance, without punctuation and initial capitals. The column `type` is the type
    of the sentence.
    """
    table = io.StringIO()
    writer = csv.DictWriter(table, _CHILDES_COLUMNS, lineterminator="\n", restval="NA")
    writer.writeheader()
    number = 0
    for transcript, document in enumerate(conversations):
        for order, (turn, speaker) in enumerate(zip(document.paragraphs, document.speakers, strict=True)):
            child = speaker != document.speakers[0]
            for words in turn:
                number += 1
                gloss = natural(lower_first(words)[:-1])
                row = {
                    "id": number,
                    "speaker_id": 2 if child else 1,
                    "utterance_order": order + 1,
                    "transcript_id": 100 + transcript,
                    "corpus_id": 1,
                    "gloss": gloss,
                    "num_tokens": len(gloss.split()),
                    "speaker_code": "CHI" if child else "MOT",
                    "speaker_role": "Target_Child" if child else "Mother",
                    "target_child_age": 400 + 10 * transcript,
                    "type": "question" if words[-1] == "?" else "declarative",
                    "num_morphemes": len(words) - 1,
                    "language": "eng",
                    "collection_name": "Eng-NA",
                }
                writer.writerow(row)
    yield "Embedded.csv", table.getvalue().encode()


def c4_file(documents: Sequence[EmbeddedDocument], rng: random.Random) -> Files:
    """Yield compressed JSON lines with `text`, `url` and `timestamp`."""
    lines = []
    for index, document in enumerate(documents):
        text = "\n".join(paragraph_text(paragraph) for paragraph in with_speech(document, rng))
        row = {"text": text, "timestamp": "2000-01-01T00:00:00Z", "url": f"https://example.invalid/{index}"}
        lines.append(json.dumps(row) + "\n")
    # Set `mtime`, because the header of a gzip file would otherwise contain the current time.
    yield "c4-train.00000-of-00001.json.gz", gzip.compress("".join(lines).encode(), mtime=0)


def wikipedia_file(articles: Sequence[EmbeddedDocument], rng: random.Random) -> Files:
    """Yield articles in the blocks of WikiExtractor, which contain the title, a blank line, and one line per
    paragraph.
    """
    blocks = []
    for index, article in enumerate(articles, start=1):
        title = natural(article.title)
        paragraphs = "\n".join(paragraph_text(paragraph) for paragraph in with_speech(article, rng))
        address = f"https://example.invalid/wiki?curid={index}"
        blocks.append(
            f'<doc id="{index}" url="{address}" title="{html.escape(title)}">\n{title}\n\n{paragraphs}\n\n</doc>\n'
        )
    yield "AA/wiki_00", "".join(blocks).encode()


def bookcorpus_file(stories: Sequence[EmbeddedDocument], rng: random.Random) -> Files:
    """Yield one line per sentence, as lower-case tokens, without boundaries between books."""
    sentences = (words for story in stories for paragraph in with_speech(story, rng) for words in paragraph)
    yield "books.txt", "".join(f"{treebank(words).lower()}\n" for words in sentences).encode()


def cbt_file(stories: Sequence[EmbeddedDocument], rng: random.Random) -> Files:
    """Yield books of four chapters each, in the layout of `cbt`."""
    yield "cbt_train.txt", "".join(f"{line}\n" for line in cbt(stories, rng)).encode()

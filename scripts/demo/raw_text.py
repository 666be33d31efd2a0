"""Documents in the remaining raw formats: plain text, tables, transcripts, web pages, articles and books.

Sources: the column names of the CHILDES exports used for AO-CHILDES, the three fields of C4's compressed JSON lines,
the blocks of WikiExtractor, the sentence lines of BookCorpus and the books of the Children's Book Test.
"""

import csv
import gzip
import html
import io
import json
import random
from collections.abc import Iterator, Sequence

from demo.babylm import cbt
from demo.documents import EmbeddedDocument, lower_first, natural, paragraph_text, treebank, with_speech

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
    """Text files with one document each, a CSV file with a column `text`, JSON lines with a field `text`."""
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
    """A transcript table: one row per utterance, without marks and capitals, the kind of sentence in `type`."""
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
    """Compressed JSON lines with `text`, `url` and `timestamp`."""
    lines = []
    for index, document in enumerate(documents):
        text = "\n".join(paragraph_text(paragraph) for paragraph in with_speech(document, rng))
        row = {"text": text, "timestamp": "2000-01-01T00:00:00Z", "url": f"https://example.invalid/{index}"}
        lines.append(json.dumps(row) + "\n")
    # The header of a gzip file holds the time of its making, unless it is told otherwise.
    yield "c4-train.00000-of-00001.json.gz", gzip.compress("".join(lines).encode(), mtime=0)


def wikipedia_file(articles: Sequence[EmbeddedDocument], rng: random.Random) -> Files:
    """Articles in the blocks that WikiExtractor writes: the title, a blank line, a paragraph per line."""
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
    """One sentence per line, in tokens and lower case, without any boundary."""
    sentences = (words for story in stories for paragraph in with_speech(story, rng) for words in paragraph)
    yield "books.txt", "".join(f"{treebank(words).lower()}\n" for words in sentences).encode()


def cbt_file(stories: Sequence[EmbeddedDocument], rng: random.Random) -> Files:
    """Books of four chapters, as BabyLM has them."""
    yield "cbt_train.txt", "".join(f"{line}\n" for line in cbt(stories, rng)).encode()

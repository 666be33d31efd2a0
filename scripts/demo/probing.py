"""Analysed sentences as edge probing data: jiant's JSON lines and CoNLL-U (docs/papers/ltg-bert.md, "Records of edge
probing").

pos, ner, srl and coref label spans of words; srl has one record for each predicate, coref all pairs of mentions of a
sentence. The CoNLL-U file has comments, multiword tokens for contracted negations and empty nodes for elided verbs.
"""

import random
from collections.abc import Container, Iterator
from itertools import combinations
from typing import Any

from demo.analyses import KINDS, Analysis, Span
from demo.grammar import text_of
from demo.rows import json_lines
from hatchery.errors import ConfigError

Target = dict[str, Any]
_CONTRACTED = "n't"


def _target(label: str, *spans: Span) -> Target:
    numbered = {f"span{number}": list(span) for number, span in enumerate(spans, 1)}
    return {**numbered, "label": label, "info": {}}


def pos(analysis: Analysis) -> list[list[Target]]:
    """The Penn Treebank tag of every word. Solved by context for that, her, and verb forms such as found."""
    return [[_target(token.xpos, (index, index + 1)) for index, token in enumerate(analysis.tokens)]]


def ner(analysis: Analysis) -> list[list[Target]]:
    """The type of every noun phrase. Solved by its head, which need not be its last noun: "the boy near the mill"."""
    return [[_target(label, span) for span, label in sorted(analysis.entities)]]


def srl(analysis: Analysis) -> list[list[Target]]:
    """Roles of each predicate's arguments. Solved by structure: the same phrases are ARG0 here and ARG1 there."""
    return [
        [_target(role, (frame.predicate, frame.predicate + 1), span) for span, role in sorted(frame.arguments)]
        for frame in analysis.frames
    ]


def coref(analysis: Analysis) -> list[list[Target]]:
    """ "1" for two mentions of the same, "0" for others. Solved by gender, and by reflexive against plain pronoun."""
    mentions = sorted(analysis.mentions)
    if not any(analysis.tokens[start].upos == "PRON" for (start, _), _ in mentions):
        return []
    pairs = combinations(mentions, 2)
    return [[_target(str(int(one == other)), span, other_span) for (span, one), (other_span, other) in pairs]]


def _drawn(count: int, stream: str, taken: Container[str], seen: set[str]) -> list[Analysis]:
    """`count` different analysed sentences that are neither in `taken` nor in `seen`, to which theirs are added.

    Raises ConfigError when that many cannot be made.
    """
    rng = random.Random(stream)
    analyses: list[Analysis] = []
    for attempt in range(50 * count + 1000):
        analysis = Analysis(rng)
        KINDS[attempt % len(KINDS)](analysis)
        analysis.finish()
        text = text_of(analysis.words)
        if text not in taken and text not in seen:
            seen.add(text)
            analyses.append(analysis)
        if len(analyses) == count:
            return analyses
    raise ConfigError(f"examples_per_suite_task: {stream} cannot make {count} different sentences")


def analysed_files(count: int, stream: str, taken: Container[str]) -> Iterator[tuple[str, bytes]]:
    """Training and development files of the five probing tasks, all about the same sentences."""
    seen: set[str] = set()
    for split, conllu_split, number in (("train", "train", count), ("development", "dev", count // 2)):
        analyses = _drawn(number, f"{stream}/{split}", taken, seen)
        for task in (pos, ner, srl, coref):
            # A sentence without targets has no record.
            records = [
                {
                    "text": " ".join(analysis.words),
                    "targets": targets,
                    "info": {"document_id": f"demo/{split}", "sentence_id": index},
                }
                for index, analysis in enumerate(analyses)
                for targets in task(analysis)
                if targets
            ]
            yield f"edge_probing/{task.__name__}.{split}.json", json_lines(records)
        blocks = (
            f"# sent_id = demo-{conllu_split}-{index}\n# text = {text_of(analysis.words)}\n"
            + "".join("\t".join(row) + "\n" for row in _conllu_rows(analysis))
            for index, analysis in enumerate(analyses, 1)
        )
        yield f"edge_probing/dependencies.{conllu_split}.conllu", "".join(f"{block}\n" for block in blocks).encode()


def _conllu_rows(analysis: Analysis) -> Iterator[tuple[str, ...]]:
    """The ten columns of every word, with the ranges of contracted words and the empty nodes."""
    forms = (*analysis.words, "")
    elided = {before: (form, head) for before, form, head in analysis.empty}

    def space(index: int) -> str:
        return "_" if index + 2 < len(forms) and forms[index + 1] not in (".", "?") else "SpaceAfter=No"

    for index, token in enumerate(analysis.tokens):
        contracted = forms[index + 1] == _CONTRACTED
        if contracted:
            form = token.form + _CONTRACTED
            yield f"{index + 1}-{index + 2}", form, *"_______", space(index + 1)
        ending = "_" if contracted or token.form == _CONTRACTED else space(index)
        tags = (token.form, token.lemma, token.upos, token.xpos, "_")
        yield str(index + 1), *tags, str(token.head + 1), token.relation, "_", ending
        if index in elided:
            form, head = elided[index]
            lemma = analysis.tokens[head].lemma
            yield f"{index + 1}.1", form, lemma, "VERB", "VBD", "_", "_", "_", f"{head + 1}:conj", "_"

"""Analysed sentences as edge probing data: jiant's JSON lines and CoNLL-U (evaluation.md 10.1 and 10.2).

pos, ner, srl and coref label spans of words; srl has one record for each predicate, coref all pairs of mentions of a
sentence. The CoNLL-U file has comments, multiword tokens for contracted negations and empty nodes for elided verbs.
"""

import json
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from hatchery.embedded.analyses import Analysis, Span
from hatchery.embedded.grammar import text_of

Target = dict[str, Any]
_CONTRACTED = "n't"


def _target(label: str, *spans: Span) -> Target:
    numbered = {f"span{number}": list(span) for number, span in enumerate(spans, 1)}
    return {**numbered, "label": label, "info": {}}


def pos_targets(analysis: Analysis) -> list[list[Target]]:
    """The Penn Treebank tag of every word. Solved by context for that, her, and verb forms such as found."""
    return [[_target(token.xpos, (index, index + 1)) for index, token in enumerate(analysis.tokens)]]


def ner_targets(analysis: Analysis) -> list[list[Target]]:
    """The type of every noun phrase. Solved by its head, which need not be its last noun: "the boy near the mill"."""
    return [[_target(label, span) for span, label in sorted(analysis.entities)]]


def srl_targets(analysis: Analysis) -> list[list[Target]]:
    """Roles of each predicate's arguments. Solved by structure: the same phrases are ARG0 here and ARG1 there."""
    return [
        [_target(role, (frame.predicate, frame.predicate + 1), span) for span, role in sorted(frame.arguments)]
        for frame in analysis.frames
    ]


def coreference_targets(analysis: Analysis) -> list[list[Target]]:
    """ "1" for two mentions of the same, "0" for others. Solved by gender, and by reflexive against plain pronoun."""
    mentions = sorted(analysis.mentions, key=lambda mention: mention.span)
    if not any(analysis.tokens[mention.span[0]].upos == "PRON" for mention in mentions):
        return []
    return [
        [
            _target(str(int(one.referent == other.referent)), one.span, other.span)
            for one, other in combinations(mentions, 2)
        ]
    ]


JIANT_TASKS: dict[str, Callable[[Analysis], list[list[Target]]]] = {
    "pos": pos_targets,
    "ner": ner_targets,
    "srl": srl_targets,
    "coref": coreference_targets,
}


def jiant_lines(task: str, analyses: list[Analysis], split: str) -> bytes:
    """The JSON lines of one task; a sentence without targets has no record."""
    records = [
        {
            "text": " ".join(analysis.words),
            "targets": targets,
            "info": {"document_id": f"demo/{split}", "sentence_id": index},
        }
        for index, analysis in enumerate(analyses)
        for targets in JIANT_TASKS[task](analysis)
        if targets
    ]
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def conllu_text(analyses: list[Analysis], split: str) -> bytes:
    """The sentences in CoNLL-U, ten columns, one blank line behind each."""
    blocks = []
    for index, analysis in enumerate(analyses):
        lines = [f"# sent_id = demo-{split}-{index + 1}", f"# text = {text_of(analysis.words)}", *_rows(analysis)]
        blocks.append("".join(f"{line}\n" for line in lines) + "\n")
    return "".join(blocks).encode()


def _rows(analysis: Analysis) -> Iterator[str]:
    forms = (*analysis.words, "")
    for index, token in enumerate(analysis.tokens):
        contracted = forms[index + 1] == _CONTRACTED
        space = "_" if _spaced(forms, index) or contracted or token.form == _CONTRACTED else "SpaceAfter=No"
        if contracted:
            range_space = "_" if _spaced(forms, index + 1) else "SpaceAfter=No"
            yield _row(f"{index + 1}-{index + 2}", form=token.form + _CONTRACTED, misc=range_space)
        yield _row(
            str(index + 1),
            token.form,
            token.lemma,
            token.upos,
            token.xpos,
            str(token.head + 1),
            token.relation,
            misc=space,
        )
        for before, form, head in analysis.empty:
            if before == index:
                yield _row(f"{index + 1}.1", form, analysis.tokens[head].lemma, "VERB", "VBD", deps=f"{head + 1}:conj")


def _spaced(forms: tuple[str, ...], index: int) -> bool:
    return index + 2 < len(forms) and forms[index + 1] not in (".", "?")


def _row(
    number: str,
    form: str,
    lemma: str = "_",
    upos: str = "_",
    xpos: str = "_",
    head: str = "_",
    relation: str = "_",
    deps: str = "_",
    misc: str = "_",
) -> str:
    return "\t".join((number, form, lemma, upos, xpos, "_", head, relation, deps, misc))

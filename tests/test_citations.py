"""Every citation leads to a number that its paper has, or to a heading of a page in docs/papers.

"LTG-BERT, Section 5.1" cites a paper by its own number; the pages of docs/papers list the numbers that each paper has.
`docs/papers/ltg-bert.md, "Masking"` cites a heading. Other wordings are refused, and so are pages that are not here.
"""

import io
import re
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGES = REPOSITORY / "docs" / "papers"
SHARED = REPOSITORY.parent / "shared" / "papers"
FOLDERS = ("benchmarks", "config", "docs", "profiles", "scripts", "slurm", "tests", "workflow")
SUFFIXES = (".in", ".j2", ".md", ".py", ".rst", ".sh", ".smk", ".toml", ".yaml")
PAPERS = {
    "ltg-bert": r"LTG-BERT|Samuel\s+et\s+al|Trained\s+on\s+100\s+million\s+words",
    "elc-bert": r"ELC-BERT|Every\s+Layer\s+Counts\s+BERT|Charpentier",
    "reduced-vocabulary": r"[Rr]educed[-_ ]vocabulary|Honey,\s+I\s+Shrunk|Deshpande",
    "gpt-bert": r"GPT-BERT|GPT\s+or\s+BERT",
    "natural-bias": r"[Nn]atural[-_ ]bias|A\s+Natural\s+Bias\s+for\s+Language\s+Generation\s+Models|Meister",
}
NAME = "|".join(f"(?P<{page.replace('-', '_')}>{names})" for page, names in PAPERS.items())
AFTER_A_NAME = r"(?:'s|\s+paper|\s+study|[\"*)’])*,?\s+$"
KINDS = {
    "section": "Sections",
    "appendi": "Appendices",
    "table": "Tables",
    "figure": "Figures",
    "equation": "Equations",
}
NUMBER = r"(?:(?:\d+|[A-H](?=\.\d))(?:\.\d+)*|(?-i:[A-H]))\b"
CITED = re.compile(
    rf"\b(?:section|appendix|table|figure|equation)[ \t]+\(?(?P<one>{NUMBER})"
    r"|\b(?:sections|appendices|tables|figures|equations)[ \t]+"
    rf"(?P<some>{NUMBER}(?:(?:,?[ \t]+(?:and|to)|,)[ \t]+{NUMBER})*)",
    re.IGNORECASE,
)
# Papers without a page here: the citation comes immediately after the paper's name.
ELSEWHERE = re.compile(
    r"(?:Attention Is All You Need\"|PaLM"
    r"|(?<!Samuel )(?<!Deshpande )(?<!Meister )et\s+al\.,?\s+\(?\d{4}\)?(?:, \"[^\"]+\")?),\s+$"
)
PAGE = re.compile(r'docs/papers/(?P<page>[\w-]+)\.md(?P<headings>(?:(?:,|,?\s+and|,?\s+to)\s+"[^"]+")*)')
MARKDOWN = re.compile(r"(?<![\w./<>{}*-])(?:[\w.-]+/)*[\w-]+\.md\b(?!\.j2)")
LINK = re.compile(r"\]\((?P<page>[\w./-]*)#(?P<anchor>[\w-]+)\)")
REFUSED = {
    "a section sign": r"§\s*\d",
    "an abbreviation": r"\b(?:Sec|App|Fig|Eqn?|Tab)s?\.\s*\(?[0-9A-H]\b",
    "a number without its kind": rf"(?:{NAME})(?:'s|\s+paper|\s+study)?,?\s+\(?\d+\.\d+(?:\.\d+)?\b(?!\s*(?:%|±|M\b))",
    "a number after a page": r"\.md[`\")]*,?\s+\(?(?:sections?\b|\d)",
}


class Text(NamedTuple):
    """The prose of a file, with joined lines within paragraphs; every character keeps its position."""

    path: Path
    prose: str

    def where(self, place: int) -> str:
        """Return file and line."""
        lines = self.path.read_text(encoding="utf-8")[:place].count("\n") + 1
        return f"{self.path.relative_to(REPOSITORY)}:{lines}"


def joined(text: str) -> str:
    """Replace line breaks inside paragraphs, and the comment marks that follow them, by blanks."""
    return re.sub(r"\n[ \t]*(?:#:?(?= ))?(?=[ \t]*[^\s#])", lambda found: " " * len(found[0]), text)


def remarks(source: str) -> str:
    """Return the comments and docstrings of a Python file; everything else is blank."""
    kept = [re.sub(r"\S", " ", line) for line in source.splitlines(keepends=True)]
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        opens = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and opens):
            for number, line in enumerate(token.string.splitlines(keepends=True), token.start[0] - 1):
                start = token.start[1] if number == token.start[0] - 1 else 0
                kept[number] = kept[number][:start] + line + kept[number][start + len(line) :]
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type
    return "".join(kept)


@cache
def texts() -> tuple[Text, ...]:
    """Return all texts written by people, without strings of tests, which are data, and without generated schemas."""
    paths = [path for folder in FOLDERS for path in sorted((REPOSITORY / folder).rglob("*")) if path.suffix in SUFFIXES]
    paths += [*sorted(REPOSITORY.glob("*.md")), REPOSITORY / "Snakefile", REPOSITORY / "Makefile"]
    found = []
    for path in paths:
        if path.parent.name != "schemas" and ".snakemake" not in path.parts:
            text = path.read_text(encoding="utf-8")
            data = path.suffix == ".py" and path.is_relative_to(REPOSITORY / "tests")
            found.append(Text(path, joined(remarks(text) if data else text)))
    return tuple(found)


@cache
def headings(page: Path) -> frozenset[str]:
    """Return the headings of a Markdown file."""
    return frozenset(re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE))


@cache
def numbering(page: str) -> dict[str, frozenset[str]]:
    """Return the numbers of a paper by their kind, as listed at the end of its page."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8").partition("## The paper's numbering\n")[2]
    listed = re.findall(r"^- (\w+): (.+?)(?=\n- |\Z)", text, re.MULTILINE | re.DOTALL)
    return {
        kind: frozenset(entry.split()[0] for entry in entries.split(";") if entry.strip() != "none")
        for kind, entries in listed
    }


def paper_of(text: Text, start: int, end: int) -> str | None:
    """Return the paper of a number: named next to the number, the page's, or named last; "" has no page here."""
    before, after = text.prose[:start], text.prose[end:]
    if ELSEWHERE.search(before[-150:]):
        return ""
    named = re.match(rf"\s+of\s+(?:the\s+)?(?:{NAME})", after)
    named = named or re.search(rf"(?:{NAME}){AFTER_A_NAME}", before[-150:])
    if named is None and text.path.parent == PAGES and text.path.stem in PAPERS:
        return text.path.stem
    for piece in (before[before.rfind("\n") + 1 :], before):
        if named is None and (names := list(re.finditer(NAME, piece))):
            named = names[-1]
    named = named or re.search(NAME, after)
    return named.lastgroup.replace("_", "-") if named and named.lastgroup else None


def cited(text: Text) -> Iterator[tuple[int, str, str, str]]:
    """Yield place, paper, kind and number of each citation by a paper's own number."""
    for found in CITED.finditer(text.prose):
        kind = next(name for start, name in KINDS.items() if found[0].lower().startswith(start))
        for number in re.findall(NUMBER, found["one"] or found["some"], re.IGNORECASE):
            paper = paper_of(text, *found.span())
            if paper != "":
                yield found.start(), paper or "no paper", kind, number


def wrong_numbers(text: Text) -> list[str]:
    """Return numbers that their paper does not have, and numbers without a paper."""
    return [
        f"{text.where(place)}: {paper} has no {number} among its {kind.lower()}"
        for place, paper, kind, number in cited(text)
        if paper not in PAPERS or number not in numbering(paper)[kind]
    ]


def wrong_pages(text: Text) -> list[str]:
    """Return cited pages and headings that do not exist, and pages that are cited without a heading."""
    wrong = []
    for found in PAGE.finditer(text.prose):
        page = PAGES / f"{found['page']}.md"
        names = [re.sub(r"\s+", " ", name) for name in re.findall(r'"([^"]+)"', found["headings"])]
        there = headings(page) if page.is_file() else frozenset()
        if not names or not there.issuperset(names):
            wrong.append(f"{text.where(found.start())}: {found[0]}: no such heading")
    return wrong


def other_forms(text: Text) -> list[str]:
    """Return citations in other wordings."""
    return [
        f"{text.where(found.start())}: {found[0]}: {what}"
        for what, refused in REFUSED.items()
        for found in re.finditer(refused, text.prose)
    ]


@pytest.mark.parametrize("check", [wrong_numbers, wrong_pages, other_forms])
def test_every_citation_leads_somewhere(check: Callable[[Text], list[str]]) -> None:
    wrong = [line for text in texts() for line in check(text)]
    assert not wrong, "\n".join(wrong)


def test_citations_are_found() -> None:
    assert sum(1 for text in texts() for _ in cited(text)) > 500
    assert sum(len(PAGE.findall(text.prose)) for text in texts()) > 200


@pytest.mark.parametrize(
    "line",
    [
        "(evaluation.md 8.4)",
        "docs/papers/ltg-bert.md, section 4",
        "docs/papers/ltg-bert.md",
        'docs/papers/ltg-bert.md, "Mask"',
        'docs/papers/ltg_bert.md, "Masking"',
        "LTG-BERT 5.4",
        "LTG-BERT, Fig. 1 and App. B",
        "LTG-BERT, Section 5.3",
        "LTG-BERT, Tables 2 and 12",
        "Table 8 of the reduced-vocabulary study",
        "ELC-BERT, Equation 7",
        "A natural bias, Table 1",
        "the paper's Appendix A",
    ],
)
def test_what_leads_nowhere_is_refused(line: str) -> None:
    text = Text(Path(__file__), line)
    assert wrong_numbers(text) or wrong_pages(text) or other_forms(text)


@pytest.mark.parametrize(
    "line",
    [
        "LTG-BERT, Section 5.1, Tables 2 and 9, Figure 1 and Appendix B.2",
        'docs/papers/ltg-bert.md, "Masking" and "Span masking"; ELC-BERT, Equations 2 to 5',
        "Section 4.2 of the reduced-vocabulary study",
        "Source: Devlin et al. 2019, Section 4.2: two scores per token",
    ],
)
def test_what_leads_somewhere_is_accepted(line: str) -> None:
    text = Text(Path(__file__), joined(line))
    assert [*wrong_numbers(text), *wrong_pages(text), *other_forms(text)] == []


@pytest.mark.skipif(not SHARED.is_dir(), reason="the papers are not here")
@pytest.mark.parametrize("page", PAPERS)
def test_the_numbers_of_a_page_are_those_of_the_paper(page: str) -> None:
    path = SHARED / f"{'ltg-bert-bnc' if page == 'ltg-bert' else page}.md"
    if not path.is_file():
        pytest.skip("this paper is not here")
    text = path.read_text(encoding="utf-8").replace("*", "")
    # Parts after the papers (a checklist, samples of the corpus) have their own numbers.
    text = re.split("Responsible NLP Checklist|Listing 1:", text[text.lower().index("abstract") :])[0]
    mark = "^" if page == "natural-bias" else "#+ "
    parts = re.findall(rf"{mark}((?:\d+|[A-H])(?:\.\d+)*) (?=[\w(])", text, re.MULTILINE)
    listed = numbering(page)
    assert set(parts) == listed["Sections"] | listed["Appendices"]
    for kind, caption in (("Tables", "Table"), ("Figures", "Figure")):
        assert set(re.findall(rf"{caption} (\d+)\s*:", text)) == listed[kind]
    assert set(re.findall(r"\((\d)\) *\$\$", text)) == listed["Equations"]


def test_every_anchor_of_a_link_is_a_heading() -> None:
    wrong = []
    for text in texts():
        for found in LINK.finditer(text.prose) if text.path.suffix == ".md" else ():
            page = (text.path.parent / found["page"]).resolve() if found["page"] else text.path
            anchors = {re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-") for name in headings(page)}
            if found["anchor"] not in anchors:
                wrong.append(f"{text.where(found.start())}: {found[0]}")
    assert not wrong, "\n".join(wrong)


def test_every_markdown_file_that_is_named_is_here_or_written_by_the_workflow() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "scripts").rglob("*.py"))
    written = set(re.findall(r"""["'/}]([\w-]+\.md)["']""", code))
    wrong = []
    for text in texts():
        for found in MARKDOWN.finditer(text.prose):
            places = (text.path.parent, REPOSITORY, REPOSITORY / "docs")
            if not any((place / found[0]).is_file() for place in places) and Path(found[0]).name not in written:
                wrong.append(f"{text.where(found.start())}: {found[0]}")
    assert not wrong, "\n".join(wrong)

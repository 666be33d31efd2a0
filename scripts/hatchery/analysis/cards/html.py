"""The card as one static page: nothing loaded from elsewhere, no scripts, readable without colours or a mouse.

It leads to no other page: Snakemake's report embeds it alone, and a link out of it would empty the frame there.
"""

import re
from collections.abc import Sequence

from hatchery.analysis.cards.content import Section, Text
from hatchery.analysis.cards.tables import html_text, markdown_paragraph, markdown_text
from hatchery.analysis.pages.document import html_document
from hatchery.analysis.pages.figures import embedded_figure

CARD_STYLE = """
nav ul { columns: 3 12rem; list-style: none; padding: 0; }
caption { caption-side: top; font-weight: 600; padding: 0 0 .3rem; text-align: left; }
.table { margin: 1.2rem 0; }
tbody th { font-weight: 400; white-space: nowrap; }
th.number, td.number { text-align: right; }
td.prose { min-width: 4rem; white-space: normal; overflow-wrap: break-word; }
td.prose:last-child:not(:nth-child(-n+4)) { min-width: 16rem; }
thead th { white-space: normal; }
.prose-text { max-width: 50rem; }
figure.text { border-left: 4px solid #999; margin: 1rem 0; padding: .1rem 0 .1rem 1rem; }
figure.text figcaption { margin: 0 0 .3rem; max-width: none; opacity: .85; overflow-wrap: anywhere; }
figure.text blockquote { margin: 0; max-width: 50rem; overflow-wrap: anywhere; white-space: pre-wrap; }
"""


def card_html(title: str, description: str, sections: Sequence[Section], style: str = "") -> str:
    """The page, with `style` after the style of all cards. Raises EvaluationError when a drawing is not an SVG."""
    contents = "\n".join(f'<li><a href="#{_anchor(s.title)}">{html_text(s.title)}</a></li>' for s in sections)
    body = "\n".join(_section(section) for section in sections)
    introduction = f'<p class="prose-text">{html_text(description)}</p>\n' if description else ""
    page = f"""<h1>{html_text(title)}</h1>
{introduction}<nav aria-label="Contents"><ul>
{contents}
</ul></nav>
{body}"""
    return html_document(title, page, CARD_STYLE + style)


def card_markdown(title: str, description: str, sections: Sequence[Section]) -> str:
    """Title, prose and tables of the card in Markdown."""
    parts = [f"# {markdown_text(title)}", *([markdown_paragraph(description)] if description else [])]
    for section in sections:
        if section.tables or (section.prose and not section.texts):
            parts += [f"## {section.title}", *section.prose]
            parts += [table.markdown() for table in section.tables]
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> str:
    parts = [f'<h2 id="{_anchor(section.title)}">{html_text(section.title)}</h2>']
    parts += [f'<p class="prose-text">{html_text(text)}</p>' for text in section.prose]
    parts += [embedded_figure(drawing.path, drawing.caption) for drawing in section.drawings]
    parts += [table.html() for table in section.tables]
    parts += [_text(text) for text in section.texts]
    return f'<section aria-labelledby="{_anchor(section.title)}">\n' + "\n".join(parts) + "\n</section>"


def _text(text: Text) -> str:
    return (
        f'<figure class="text"><figcaption>{html_text(text.heading)}</figcaption>\n'
        f'<blockquote dir="auto">{html_text(text.text)}</blockquote></figure>'
    )


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z]+", "-", title.lower())

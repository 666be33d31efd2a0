"""One static page for an experiment: what it is, its tables, its figures. No scripts, nothing loaded from elsewhere.

The tables are those of summary.md, the figures are the SVG files themselves, so page and files cannot disagree.
"""

import html
import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from hatchery.errors import EvaluationError
from hatchery.storage.atomic import write_text
from hatchery.storage.manifests import read_manifest
from hatchery.typed import stage_body

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; }
h2 { margin-top: 2.5rem; }
nav ul { columns: 18rem; list-style: none; padding: 0; }
.table { margin: 1rem 0; overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #9996; padding: .3rem .7rem; text-align: left; }
td { white-space: nowrap; }
thead th { border-bottom: 2px solid #999; vertical-align: bottom; }
figure { margin: 2rem 0; }
figure .drawing { background: #fff; border: 1px solid #9996; overflow-x: auto; padding: .5rem; }
figure svg { display: block; height: auto; max-width: 100%; }
figcaption { margin-top: .5rem; max-width: 50rem; }
"""
CAPTIONS = {
    "learning_curves": "Loss of masked language modelling per labelled token against the tokens seen: training loss, "
    "and development loss on sequences with fixed masks.",
    "layer_weights": "Learned layer weights: the share with which each layer reads the outputs of the layers before "
    "it, times the number of those outputs, so that 1 is the even share; the plain model adds all with weight 1.",
    "phenomena": "Accuracy on minimal pairs by phenomenon; the line at 50 % is chance, diamonds are published values.",
    "task_scores": "Scores of the fine-tuned tasks: means and deviations over runs, single runs as small marks, failed "
    "runs hollow; the dashed line is the most frequent label, the diamond the published mean.",
    "bias_violins": "Linguistic Bias Score of every run on the ambiguous tasks of MSGS: +1 follows the linguistic "
    "feature, -1 the surface feature; failed runs are hollow, the diamond is the published mean.",
    "feature_dots": "Linguistic Bias Score by pair of features, one dot per run; failed runs are hollow.",
    "layer_contributions": "Weights of the layers in the probes, in percent: means over runs.",
}

_SPLITS = ("train", "dev", "test")
_SIZES = ("documents", "sentences", "words", "characters")


def write_page(
    settings: Mapping[str, Any],
    markdown: Path,
    figures: Sequence[Path],
    output: Path,
    cards: Mapping[str, Path] | None = None,
) -> None:
    """Write the page of an experiment to `output`.

    `settings` hold `experiment` and `description`; `markdown` is its summary.md, `figures` are SVG files, `cards` the
    manifests of corpus cards by corpus. Raises EvaluationError naming the file when one is missing or is not an SVG,
    ManifestError when a card's manifest is missing or damaged.
    """
    body = stage_body(settings)
    table = _read(markdown)
    drawings = "\n".join(_figure(path) for path in figures)
    title = html.escape(f"Hatchery: {body['experiment']}")
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<p>{html.escape(body["description"])}</p>
{_tables(table)}
<h2 id="figures">Figures</h2>
{drawings}
{_corpora(cards or {}, output)}</body>
</html>
"""
    write_text(output, page)


def _corpora(cards: Mapping[str, Path], output: Path) -> str:
    """Sizes of the corpora, with links to their cards; nothing without cards."""
    if not cards:
        return ""
    rows = []
    for corpus, path in cards.items():
        manifest = read_manifest(path)
        link = Path(os.path.relpath(manifest.file("card.html"), output.parent)).as_posix()
        name = f'<a href="{html.escape(link)}">{html.escape(corpus)}</a>'
        for split in (split for split in _SPLITS if split in manifest.measures):
            counts = manifest.measures[split]
            numbers = "".join(f'<td style="text-align: right">{counts[key]:,}</td>' for key in _SIZES)
            rows.append(f"<tr><td>{name}</td><td>{split}</td>{numbers}</tr>")
            name = ""
    head = "".join(f'<th style="text-align: right">{key}</th>' for key in _SIZES)
    return (
        "<h2>Corpora</h2>\n<p>Each name leads to the corpus's card: sizes beside the published ones, lengths, "
        "vocabulary, samples, and what was left out.</p>\n"
        f'<div class="table"><table><thead><tr><th>corpus</th><th>split</th>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div>\n"
    )


def _tables(markdown: str) -> str:
    """The document as HTML, with links to its sections behind its title."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    sections: dict[str, str] = {}
    for heading, content in pairwise(tokens):
        if (heading.type, heading.tag) == ("heading_open", "h2"):
            anchor = re.sub(r"[^a-z0-9]+", "-", content.content.lower()).strip("-")
            heading.attrSet("id", anchor)
            sections[anchor] = content.content
    rendered = parser.renderer.render(tokens, parser.options, {})
    rendered = rendered.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
    title, end, rest = rendered.partition("</h1>\n")
    return f"{title}{end}{_contents(sections)}{rest}" if end else rendered


def _contents(sections: Mapping[str, str]) -> str:
    """Links to the sections of the page; nothing where there are too few to lose one's way."""
    if len(sections) < 3:
        return ""
    links = {**sections, "figures": "Figures"}
    items = "\n".join(f'<li><a href="#{anchor}">{html.escape(title)}</a></li>' for anchor, title in links.items())
    return f'<nav aria-label="Sections">\n<ul>\n{items}\n</ul>\n</nav>\n'


def _figure(path: Path) -> str:
    name = path.stem.replace("_", " ")
    return embedded_figure(path, CAPTIONS.get(path.stem, name.capitalize() + "."))


def embedded_figure(path: Path, caption: str) -> str:
    """The SVG file at `path` as a figure of an HTML page. Raises EvaluationError when it is missing or not an SVG."""
    text = _read(path)
    start = text.find("<svg")
    if start < 0 or "</svg>" not in text:
        raise EvaluationError(f"{path}: not an SVG drawing")
    # Ids are unique within one drawing only, and several drawings share the page.
    drawing = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{path.stem}-", text[start:])
    name = path.stem.replace("_", " ")
    return (
        f'<figure role="group" aria-label="{html.escape(name)}">\n<div class="drawing">{drawing}</div>\n'
        f"<figcaption>{html.escape(caption)}</figcaption>\n</figure>"
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: cannot be read: {error}") from error

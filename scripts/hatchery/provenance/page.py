"""One static page for an experiment: every number with links to the manifests behind it, down to the raw files.

A row of the summary has the anchor `summary_rows.row_anchor`, a manifest `m-` and the beginning of its digest. What
changes from run to run (times, hosts, versions) stands in one section at the end; the rest follows from the results.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hatchery.analysis.pages.document import html_document
from hatchery.analysis.summary_rows import SELECTORS, NumberedRow, read_summary
from hatchery.errors import ManifestError
from hatchery.provenance.chain import Chain, Link, Node, follow
from hatchery.provenance.manifest_index import ManifestIndex
from hatchery.provenance.tree_text import source_facts
from hatchery.provenance.verification import generated_problems
from hatchery.rendering.setting_texts import flatten
from hatchery.storage.atomic import write_text
from hatchery.storage.manifests import volatile_facts
from hatchery.typed import stage_body

MOST_FILES = 5000
_OWN_STYLE = """
section { border-top: 1px solid #9996; margin-top: 1.5rem; }
section:target, tr:target { background: #fd06; }
code { overflow-wrap: anywhere; }
td.name { white-space: normal; }
td.long { min-width: 16rem; overflow-wrap: break-word; white-space: normal; }
"""
# Sections, in their order.
_SECTIONS = ("Numbers", "Stages", "Raw files", "Times, places and versions")
_ROW_COLUMNS = (*SELECTORS, "mean", "std", "n", "n_failed")
_VOLATILE = ("started", "wall_seconds", "cpu_seconds", "peak_memory_mib", "host", "python", "code_revision")


def write_provenance(settings: Mapping[str, Any], summary: Path, output: Path, project: str | Path = ".") -> None:
    """Write the page of provenance of the experiment whose summary.csv is given.

    `settings` hold `experiment`. Raises EvaluationError when the summary is missing or is none. Manifests that are
    missing or damaged are named on the page: a result may outlive what it was made from.
    """
    experiment = str(stage_body(settings)["experiment"])
    rows = read_summary(summary)
    digests = dict.fromkeys(digest for row in rows for digest in row.digests)
    chain = follow(ManifestIndex(project), digests, where="summary.csv", prefer=Path("results") / experiment)
    write_text(output, page_text(experiment, rows, chain))


def page_text(experiment: str, rows: Sequence[NumberedRow], chain: Chain) -> str:
    """The page as HTML."""
    title = f"Provenance of {experiment}"
    stages = [node for node in chain.nodes.values() if node.manifest is not None]
    sources = [node for node in chain.nodes.values() if node.source is not None]
    # A summary names manifests by the beginnings of their digests.
    named = {node.short: node for node in chain.nodes.values()}
    readers = _readers(chain)
    blocks = [
        f"<h1>{html.escape(title)}</h1>",
        _contents(),
        "<p>Every number of summary.csv with the manifests it was computed from. A manifest names the settings of its "
        "stage, what the stage read and what it wrote; the links lead on to the registered raw files.</p>",
        _problems([*chain.problems, *generated_problems(chain)]),
        _heading(_SECTIONS[0]),
        _table((*_ROW_COLUMNS, "made from"), (_summary_row(row, named) for row in rows)),
        _heading(_SECTIONS[1]),
        *(_stage(chain, node, readers) for node in stages),
        _heading(_SECTIONS[2]),
        *(_source(chain, node, readers) for node in sources),
        _heading(_SECTIONS[3]),
        "<p>This section alone changes when the same work is done again.</p>",
        _table(("manifest", *(name.replace("_", " ") for name in _VOLATILE), "packages"), map(_volatile_row, stages)),
    ]
    return html_document(title, "\n".join(block for block in blocks if block), _OWN_STYLE)


def _contents() -> str:
    links = "".join(f'<li><a href="#{_anchor(title)}">{title}</a></li>' for title in _SECTIONS)
    return f'<nav aria-label="Sections"><ul>{links}</ul></nav>'


def _heading(title: str) -> str:
    return f'<h2 id="{_anchor(title)}">{title}</h2>'


def _anchor(title: str) -> str:
    return f"section-{title.split()[0].strip(',').lower()}"


def _readers(chain: Chain) -> dict[str, list[Node]]:
    readers: dict[str, list[Node]] = {}
    for node in chain.nodes.values():
        for link in node.inputs:
            known = readers.setdefault(link.digest, [])
            if node not in known:
                known.append(node)
    return readers


def _problems(problems: Sequence[str]) -> str:
    if not problems:
        return ""
    items = "\n".join(f"<li>{html.escape(problem)}</li>" for problem in problems)
    return f"<h2>Not found, or different</h2>\n<ul>\n{items}\n</ul>"


def _summary_row(row: NumberedRow, named: Mapping[str, Node]) -> str:
    # Long names break after an underscore, so that the links stay in sight.
    names = (html.escape(row.values[column]).replace("_", "_<wbr>") for column in SELECTORS)
    cells = "".join(f'<td class="name">{name}</td>' for name in names)
    cells += "".join(_cell(row.values[column]) for column in _ROW_COLUMNS[len(SELECTORS) :])
    nodes = [named[digest] for digest in row.digests if digest in named]
    links = ", ".join(_link(node) for node in nodes)
    return f'<tr id="{html.escape(row.anchor)}">{cells}<td class="long">{links}</td></tr>'


def _link(node: Node, text: str = "") -> str:
    words = html.escape(text or _name(node))
    # What is not there any more has no section to link to.
    linked = node.manifest is not None or node.source is not None
    return f'<a href="#m-{node.short}">{words}</a>' if linked else f"{words} <code>{node.short}</code>"


def _name(node: Node) -> str:
    if node.manifest is not None and node.path is not None:
        return f"{node.manifest.stage} {'/'.join(node.path.parent.parts[-2:])}"
    return node.source.name if node.source is not None else "not found" if node.path is None else node.path.name


def _stage(chain: Chain, node: Node, readers: Mapping[str, list[Node]]) -> str:
    manifest = node.manifest
    assert manifest is not None
    outputs = [
        _cells((output.path.relative_to(manifest.folder).as_posix(), f"{output.bytes:,}", output.sha256))
        for output in manifest.outputs
    ]
    settings = {key: value for key, value in manifest.settings.items() if key not in ("stage", "stage_version")}
    return "\n".join(
        [
            f'<section id="m-{node.short}">',
            f"<h3>{html.escape(manifest.stage)}, version {manifest.settings.get('stage_version', '?')}</h3>",
            _identity(chain, node),
            _inputs(chain, node.inputs),
            _read_by(readers.get(node.digest, [])),
            _details("settings", _pairs(flatten(settings))),
            _details("measures", _pairs(flatten(manifest.measures))),
            _details(f"outputs ({len(outputs)})", _table(("file", "bytes", "SHA-256"), outputs)),
            "</section>",
        ]
    )


def _source(chain: Chain, node: Node, readers: Mapping[str, list[Node]]) -> str:
    source = node.source
    assert source is not None
    facts = "<br>\n".join(html.escape(line) for line in source_facts(chain.shown(source.root), node))
    files = [
        _cells((name, f"{size:,}", checksum)) for name, (size, checksum) in list(source.files.items())[:MOST_FILES]
    ]
    rest = len(source.files) - len(files)
    more = f"<p>and {rest:,} more, listed in the manifest</p>" if rest else ""
    return "\n".join(
        [
            f'<section id="m-{node.short}">',
            f"<h3>{html.escape(source.name)}</h3>",
            _identity(chain, node),
            f"<p>{facts}</p>",
            _inputs(chain, node.inputs),
            _read_by(readers.get(node.digest, [])),
            _details(f"files ({len(source.files):,})", _table(("file", "bytes", "SHA-256"), files) + more),
            "</section>",
        ]
    )


def _identity(chain: Chain, node: Node) -> str:
    return f"<p><code>{html.escape(chain.shown(node.path))}</code><br>SHA-256 <code>{node.digest}</code></p>"


def _inputs(chain: Chain, links: Iterable[Link]) -> str:
    items = [f"{html.escape(link.name)}: {_link(chain.nodes[link.digest])}" for link in links]
    return f"<p>read: {'; '.join(items)}</p>" if items else ""


def _read_by(nodes: Sequence[Node]) -> str:
    return f"<p>read by: {'; '.join(_link(node) for node in nodes)}</p>" if nodes else ""


def _volatile_row(node: Node) -> str:
    assert node.path is not None
    try:
        facts = volatile_facts(node.path)
    except ManifestError as error:
        facts = {"started": str(error)}
    packages = ", ".join(f"{name} {version}" for name, version in sorted(dict(facts.get("packages") or {}).items()))
    cells = "".join(_cell(str(facts.get(name, ""))) for name in _VOLATILE)
    return f'<tr><td>{_link(node)}</td>{cells}<td class="long">{html.escape(packages)}</td></tr>'


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{html.escape(summary)}</summary>\n{content}\n</details>" if content else ""


def _pairs(values: Mapping[str, str]) -> str:
    return _table((), [_cells(pair) for pair in values.items()]) if values else ""


def _table(header: Sequence[str], rows: Iterable[str]) -> str:
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in header)
    top = f"<thead><tr>{head}</tr></thead>\n" if header else ""
    body = "\n".join(rows)
    return f'<div class="table"><table>{top}<tbody>\n{body}\n</tbody></table></div>' if body else ""


def _cells(values: Iterable[str]) -> str:
    return f"<tr>{''.join(_cell(value) for value in values)}</tr>"


def _cell(value: str) -> str:
    kind = ' class="long"' if len(value) > 40 else ""
    return f"<td{kind}>{html.escape(value)}</td>"

"""The static provenance page of an experiment: summary rows link to their manifests, and manifests link to their
inputs, down to the raw files.

The anchor of a summary row is `summary_rows.row_anchor`; the anchor of a manifest is `m-` and the first digits of its
digest. Values that differ between repetitions of equal work (times, versions) are in one section at the end. Pages are
shared, so they name no host and no folder outside the project, and a home folder is written as `~`.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from hatchery.analysis.summary_rows import PROVENANCE_ROWS, SELECTORS, SummaryRow
from hatchery.artifacts.links import expanded
from hatchery.artifacts.manifests import SHORT_DIGEST, volatile_facts
from hatchery.errors import ManifestError
from hatchery.provenance.chain import Chain, Node, generated_problems
from hatchery.provenance.chain_text import source_facts
from hatchery.rendering.escaping import breakable, html_text, readable
from hatchery.rendering.setting_texts import flatten
from hatchery.rendering.table import Row, Table, table
from hatchery.rendering.templates import render
from hatchery.typed import stage_body

MOST_FILES = 5000
MOST_STAGES = 1500
_ROW_COLUMNS = (*SELECTORS, "mean", "std", "n", "n_failed", "mean_without_failed", "n_without_number")
_VOLATILE = ("started", "wall_seconds", "cpu_seconds", "peak_memory_mib", "python", "code_revision")


def places_of(chain: Chain) -> set[str]:
    """Return the digests of the manifests that the page shows: all raw sources, and the first MOST_STAGES results of
    stages.
    """
    stages = [digest for digest, node in chain.nodes.items() if node.manifest is not None]
    return {*stages[:MOST_STAGES], *(digest for digest, node in chain.nodes.items() if node.source is not None)}


def page_text(experiment: str, rows: Sequence[SummaryRow], chain: Chain) -> str:
    """Return the page as HTML."""
    stages = [node for node in chain.nodes.values() if node.manifest is not None]
    shown, places = stages[:MOST_STAGES], places_of(chain)
    readers = _readers(chain)
    page = render(
        "provenance.html.j2",
        title=f"Provenance of {experiment}",
        experiment=experiment,
        problems=[*chain.problems, *generated_problems(chain)],
        numbers=_numbers(rows[:PROVENANCE_ROWS], chain, places),
        rows_left_out=max(0, len(rows) - PROVENANCE_ROWS),
        stages=[_section(chain, node, readers) for node in shown],
        stages_left_out=len(stages) - len(shown),
        sources=[_section(chain, node, readers) for node in chain.nodes.values() if node.source is not None],
        most_files=MOST_FILES,
        volatile=_volatile(shown, places),
        link=lambda node: _link(node, places),
    )
    return _without_home(page)


def _readers(chain: Chain) -> dict[str, list[Node]]:
    readers: dict[str, dict[str, Node]] = {}
    for node in chain.nodes.values():
        for link in node.inputs:
            readers.setdefault(link.digest, {})[node.digest] = node
    return {digest: list(nodes.values()) for digest, nodes in readers.items()}


def _numbers(rows: Sequence[SummaryRow], chain: Chain, places: Collection[str]) -> Table:
    """Return a table of summary rows. Each row links to the manifests from which its number was computed."""
    by_beginning: dict[str, list[Node]] = {}
    for node in chain.nodes.values():
        by_beginning.setdefault(node.short, []).append(node)
    shown = []
    for row in rows:
        nodes = [node for digest in row.digests for node in by_beginning.get(digest[:SHORT_DIGEST], ())]
        links = Markup(", ").join(_link(node, places) for node in nodes)
        # Allow line breaks after the underscores of long names, so that the column of links stays in the window.
        names = [breakable(name) for name in row.selectors]
        numbers = [row.printed(column) for column in _ROW_COLUMNS[len(SELECTORS) :]]
        shown.append(Row([*names, *numbers, links], row.anchor))
    texts = (*range(len(SELECTORS)), -1)
    header = (*map(readable, _ROW_COLUMNS), "made from")
    return table(header, shown, words=texts, label="Numbers")


def _section(chain: Chain, node: Node, readers: Mapping[str, list[Node]]) -> dict[str, object]:
    """Return the values that the template of the page needs for the section of the manifest `node`. `readers` maps the
    digest of a manifest to the manifests of the results that have this manifest as an input.
    """
    found: dict[str, object] = {
        "node": node,
        "path": chain.shown(node.path),
        "inputs": [(link.name, chain.nodes[link.digest]) for link in node.inputs],
        "readers": readers.get(node.digest, []),
    }
    if node.source is not None:
        files = list(node.source.files.items())
        found["title"], found["facts"] = node.source.name, source_facts(_place(chain, node.source.root), node)
        rows = [(name, f"{size:,}", checksum) for name, (size, checksum) in files[:MOST_FILES]]
        found["details"] = [(f"files ({len(files):,})", _files(rows), max(0, len(files) - MOST_FILES))]
        return found
    manifest = node.manifest
    assert manifest is not None
    rows = [(o.path.relative_to(manifest.folder).as_posix(), f"{o.bytes:,}", o.sha256) for o in manifest.outputs]
    found["title"], found["facts"] = f"{manifest.stage}, version {manifest.settings.get('stage_version', '?')}", []
    found["details"] = [
        *(
            (name, table(("", ""), list(flatten(values).items()), words=2, label=name.capitalize()), 0)
            for name, values in (("settings", stage_body(manifest.settings)), ("measures", manifest.measures))
        ),
        (f"outputs ({len(rows)})", _files(rows), 0),
    ]
    return found


def _place(chain: Chain, root: Path) -> str:
    """Return the path of a folder of raw files as text. For a folder outside the project, return only its name, as
    `.../name`.
    """
    shown = chain.shown(root)
    return f".../{root.name}" if Path(shown).is_absolute() else shown


def _without_home(text: str) -> str:
    home = expanded("~").rstrip("/")
    return re.sub(rf"{re.escape(home)}(?![^/\s\"'<&,;:)\]])", "~", text) if home.startswith("/") else text


def _files(rows: Sequence[tuple[str, str, str]]) -> Table:
    return table(("file", "bytes", "SHA-256"), rows, words=(0, 2), label="Files")


def _volatile(stages: Sequence[Node], places: Collection[str]) -> Table:
    rows: list[list[str]] = []
    for node in stages:
        assert node.path is not None
        try:
            facts = volatile_facts(node.path)
        except ManifestError as error:
            facts = {"started": str(error)}
        packages = dict(facts.get("packages") or {})
        versions = ", ".join(f"{name} {version}" for name, version in sorted(packages.items()))
        rows.append([_link(node, places), *(str(facts.get(name, "")) for name in _VOLATILE), versions])
    header = ("manifest", *map(readable, _VOLATILE), "packages")
    return table(header, rows, words=(0, 1, 5, 6, 7), label="Times and versions")


def _link(node: Node, places: Collection[str]) -> Markup:
    """Return the name of a manifest as a link to its section, or without a link if the page has no such section."""
    if node.digest in places:
        return Markup('<a href="#m-{}">{}</a>').format(node.short, html_text(_name(node)))
    return Markup("{} <code>{}</code>").format(html_text(_name(node)), node.short)


def _name(node: Node) -> str:
    if node.manifest is not None and node.path is not None:
        return f"{node.manifest.stage} {'/'.join(node.path.parent.parts[-2:])}"
    return node.source.name if node.source is not None else "not found" if node.path is None else node.path.name

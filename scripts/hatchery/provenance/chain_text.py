"""A provenance chain as a tree for the terminal, and as JSON.

The tree shows the settings of each manifest only at the manifest's first occurrence. The JSON contains the summary row
whose provenance is shown, each manifest once with all its settings, and the problems (missing or changed files).
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hatchery.provenance.chain import Chain, Link, Node
from hatchery.raw.registration import RawSource
from hatchery.rendering.setting_texts import GROUP_LENGTH, brief, described, differences, shorten

RAW_FILES = 5
WIDTH = 110
NAMED_OUTPUTS = 4


@dataclass
class _Branch:
    """A node of the drawn tree: a title, lines of text below it, and child branches."""

    title: str
    lines: list[str] = field(default_factory=list)
    branches: list["_Branch"] = field(default_factory=list)


def tree_text(title: str, chain: Chain, full: bool = False) -> str:
    """Return the chain as a tree below `title`; the text ends in a newline.

    If `full` is false, settings are shortened, and only the first raw files of a source are listed. If a stage was run
    several times, its first run is shown completely; for the other runs, the tree shows differences from the first run.
    """
    writer = _Writer(chain, full)
    root = _Branch(title, branches=[writer.branch(link) for link in chain.roots])
    return "\n".join(_drawn(root)) + "\n"


class _Writer:
    def __init__(self, chain: Chain, full: bool) -> None:
        self._chain = chain
        self._full = full
        self._shown: set[str] = set()
        self._first: dict[str, Node] = {}

    def branch(self, link: Link) -> _Branch:
        """Return the branch of the tree that shows an input. Only at the first occurrence of the input, the branch
        contains lines of text and child branches.
        """
        node = self._chain.nodes[link.digest]
        label = f"{link.name}: " if link.name else ""
        title = f"{label}{self._title(node)}"
        if link.digest in self._shown:
            return _Branch(f"{title} (see above)")
        self._shown.add(link.digest)
        return _Branch(title, self._lines(node), [self.branch(inner) for inner in node.inputs])

    def _title(self, node: Node) -> str:
        place = f"[{node.short}] {self._chain.shown(node.path)}"
        if node.manifest is not None:
            version = node.manifest.settings.get("stage_version", "?")
            return f"{node.manifest.stage}, version {version} {place}"
        if node.source is not None:
            return f"raw files {node.source.name!r} {place}"
        if node.kind == "missing":
            return f"NOT FOUND [{node.short}]"
        return f"file {place}"

    def _lines(self, node: Node) -> list[str]:
        if node.source is not None:
            facts = source_facts(self._chain.shown(node.source.root), node)
            return [*facts, *_files(node.source, None if self._full else RAW_FILES)]
        if node.manifest is None:
            return []
        if self._full:
            outputs = [f"{o.path.name}: {o.bytes:,} bytes, sha256 {o.sha256}" for o in node.manifest.outputs]
            measures = [f"measured {line}" for line in described(node.manifest.measures)]
            return [*described(node.manifest.settings), *outputs, *measures]
        names = [output.path.name for output in node.manifest.outputs]
        rest = f" and {len(names) - NAMED_OUTPUTS} more" if len(names) > NAMED_OUTPUTS else ""
        size = sum(output.bytes for output in node.manifest.outputs)
        wrote = f"wrote {', '.join(names[:NAMED_OUTPUTS])}{rest} ({size:,} bytes)"
        settings = [line for text in self._settings(node) for line in _wrapped(text)]
        return [*settings, wrote] if names else settings

    def _settings(self, node: Node) -> list[str]:
        assert node.manifest is not None
        first = self._first.setdefault(node.manifest.stage, node)
        if first is node or first.manifest is None:
            return brief(node.manifest.settings)
        changed = differences(first.manifest.settings, node.manifest.settings)
        if not changed:
            return [f"settings as [{first.short}]"]
        texts = [f"{difference.key}: {shorten(difference.new or '(none)')}" for difference in changed]
        return [f"settings as [{first.short}], but {shorten('; '.join(texts), GROUP_LENGTH)}"]


def source_facts(place: str, node: Node) -> list[str]:
    """Return lines with the path (`place`), size, licence, terms and origin of a raw source."""
    source = node.source
    assert source is not None
    count = len(source.files)
    size = sum(entry[0] for entry in source.files.values())
    head = f"{source.kind} {place}: {count:,} file{'s' if count != 1 else ''}, {size:,} bytes"
    about = [f"licence: {source.licence or 'not stated'}; terms: {source.terms or 'not stated'}"]
    about += [f"origin: {'; '.join(described(node.origin))}"] if node.origin else []
    return [head, *about]


def _files(source: RawSource, limit: int | None) -> list[str]:
    names = list(source.files)[:limit]
    width = max(map(len, names), default=0)
    digits = max((len(f"{source.size(name):,}") for name in names), default=0)
    lines = [f"  {name:<{width}}  {source.size(name):>{digits},} bytes  {source.sha256(name)}" for name in names]
    rest = len(source.files) - len(names)
    return lines + ([f"  and {rest:,} more (--full lists them)"] if rest else [])


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _drawn(branch: _Branch) -> Iterable[str]:
    yield branch.title
    hangs = bool(branch.branches)
    for line in branch.lines:
        yield ("│ " if hangs else "  ") + line
    yield from _children(branch.branches)


def _children(branches: Sequence[_Branch]) -> Iterable[str]:
    for number, child in enumerate(branches, start=1):
        last = number == len(branches)
        for index, line in enumerate(_drawn(child)):
            start = ("└─ " if last else "├─ ") if index == 0 else ("   " if last else "│  ")
            yield start + line


def chain_json(row: Mapping[str, object], chain: Chain, problems: Sequence[str]) -> dict[str, object]:
    """Return a JSON object with the traced `row` of the summary, the digests of its `manifests`, the `nodes` of the
    chain by digest, and `problems` (one line for each missing or changed file).
    """
    return {
        "row": dict(row),
        "manifests": [link.digest for link in chain.roots],
        "nodes": {digest: _node(chain, node) for digest, node in chain.nodes.items()},
        "problems": list(problems),
    }


def _node(chain: Chain, node: Node) -> dict[str, object]:
    common: dict[str, object] = {
        "kind": node.kind,
        "path": chain.shown(node.path) or None,
        "inputs": {link.name: link.digest for link in node.inputs},
    }
    if node.manifest is not None:
        outputs = [
            {"path": output.path.relative_to(node.manifest.folder).as_posix()}
            | {"bytes": output.bytes, "sha256": output.sha256}
            for output in node.manifest.outputs
        ]
        return common | {
            "stage": node.manifest.stage,
            "settings": node.manifest.settings,
            "outputs": outputs,
            "measures": node.manifest.measures,
        }
    if node.source is not None:
        return common | {
            "name": node.source.name,
            "source_kind": node.source.kind,
            "location": chain.shown(node.source.root),
            "licence": node.source.licence,
            "terms": node.source.terms,
            "origin": node.origin,
            "files": [
                {"path": name, "bytes": size, "sha256": checksum}
                for name, (size, checksum) in node.source.files.items()
            ],
        }
    return common

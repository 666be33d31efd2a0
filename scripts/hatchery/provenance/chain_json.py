"""A chain for machines: the row, every manifest once with all its settings, and what did not match."""

from collections.abc import Mapping, Sequence
from typing import Any

from hatchery.provenance.chain import Chain, Node


def chain_json(row: Mapping[str, Any], chain: Chain, problems: Sequence[str]) -> dict[str, Any]:
    """A JSON object with `row`, `manifests` (the digests that the row names), `nodes` by digest and `problems`."""
    return {
        "row": dict(row),
        "manifests": [link.digest for link in chain.roots],
        "nodes": {digest: _node(chain, node) for digest, node in chain.nodes.items()},
        "problems": list(problems),
    }


def _node(chain: Chain, node: Node) -> dict[str, Any]:
    common = {
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

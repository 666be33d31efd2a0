"""Whether the files of a chain still are what the manifests say: outputs of stages, and raw files.

Every file that differs gets one line; nothing stops at the first, because one wants to know how much is affected.
"""

from dataclasses import replace

from hatchery.errors import ManifestError, SourceError
from hatchery.provenance.chain import GENERATED_BY, Chain


def output_problems(chain: Chain) -> list[str]:
    """Outputs of the chain's stages that are missing or differ from their checksum."""
    problems = []
    for node in chain.nodes.values():
        for output in node.manifest.outputs if node.manifest else ():
            assert node.manifest is not None
            try:
                # Not by what it looks like: a disk may have lost a bit.
                node.manifest.check(replace(output, modified=None))
            except ManifestError as error:
                problems.append(str(error))
    return problems


def raw_problems(chain: Chain) -> list[str]:
    """Raw files that are missing or differ from the checksum with which they were registered."""
    problems = []
    for node in chain.nodes.values():
        source = node.source
        if source is None:
            continue
        if not source.root.exists():
            problems.append(f"source {source.name!r}: {chain.shown(source.root)} does not exist any more")
            continue
        for name in source.names():
            try:
                source.check(name)
            except SourceError as error:
                problems.append(str(error))
    return problems


def generated_problems(chain: Chain) -> list[str]:
    """Generated raw files that were registered with another checksum than their generator says; reads no raw file."""
    problems = []
    for node in chain.nodes.values():
        if node.source is not None and node.source.manifest.name.startswith("embedded_") and not node.inputs:
            problems.append(f"{chain.shown(node.path)}: the manifest of what was generated is missing")
        for link in node.inputs:
            maker = chain.nodes[link.digest].manifest
            if node.source is None or link.name != GENERATED_BY or maker is None:
                continue
            made = {output.path: output.sha256 for output in maker.outputs}
            for name, (_, checksum) in node.source.files.items():
                path = node.source.root if node.source.kind == "file" else node.source.root / name
                if made.get(path) != checksum:
                    problems.append(
                        f"{chain.shown(node.path)}: {name!r}: {chain.shown(maker.path)} has another checksum"
                    )
    return problems

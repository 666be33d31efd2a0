"""The metadata of an RO-Crate of a run: its workflow, its results, and the inputs and outputs of each stage.

The metadata follow RO-Crate 1.1 and the profile Provenance Run Crate 0.5, which includes the profiles of workflows and
of workflow runs. Each manifest of the chain is a `CreateAction`. Because crates are shared, the metadata name no host,
no user and no folder outside of the project. Identifiers are derived from digests, so equal results have equal
identifiers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from hatchery.artifacts.manifests import volatile_facts
from hatchery.errors import ManifestError
from hatchery.provenance.chain import Chain, Node
from hatchery.provenance.crate_graph import FORMATS, Crate, Entity, named_by_digest, reference
from hatchery.rendering.setting_texts import described

METADATA = "ro-crate-metadata.json"
WORKFLOW = "Snakefile"
README = "README.md"
CONFIGURATION = "configuration.json"
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
WORKFLOW_PROFILE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/provenance/0.5": ("Provenance Run Crate", "0.5"),
    WORKFLOW_PROFILE: ("Workflow RO-Crate", "1.0"),
}
LANGUAGE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
SNAKEMAKE = "https://snakemake.github.io"
WORKFLOW_TYPE = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
LICENCE = "https://spdx.org/licenses/Apache-2.0"
"""Licence of the workflow. Hatchery does not set a licence for results."""


@dataclass(frozen=True)
class Run:
    """The run that a crate describes: name and description of an experiment or a study, and the files of the crate.

    `results` are paths in the project folder, `workflow` is the Snakefile, `configuration` and `readme` are contents of
    files, and `version` is the version of Hatchery.
    """

    name: str
    description: str
    results: Sequence[Path]
    workflow: Path
    configuration: str
    readme: str
    version: str


def run_crate(run: Run, chain: Chain) -> Crate:
    """Return the crate of a run. `chain` is the provenance chain from the run's scores back to raw files.

    The description of the crate states the number of missing or changed files.
    """
    crate = Crate()
    order = _in_order(chain)
    _add_skeleton(crate, run)
    ids = {digest: _add_node(crate, chain, chain.nodes[digest]) for digest in order}
    actions = [_add_action(crate, chain.nodes[digest], ids) for digest in order if chain.nodes[digest].manifest]
    raw = [ids[digest] for digest in order if chain.nodes[digest].source]
    _add_parameters(crate, run, raw)
    facts = [_facts(node) for node in chain.nodes.values() if node.manifest]
    _add_workflow(crate, run, actions, facts)
    times = [time for action in actions for time in _times(crate.entities[action])]
    _add_runs(crate, run, actions, raw, times, _packages(facts).get("snakemake", ()))
    _complete_root(crate, run, chain, raw, times)
    return crate


def _in_order(chain: Chain) -> list[str]:
    """Return the digests of the chain in topological order: inputs precede the results made from them."""
    made_from = {digest: [link.digest for link in node.inputs] for digest, node in chain.nodes.items()}
    return list(TopologicalSorter(made_from).static_order())


def _facts(node: Node) -> Mapping[str, Any]:
    """Return time and software of a stage's run, from `provenance.json`. Empty if this file is missing or damaged;
    `chain.problems` reports a damaged file.
    """
    assert node.path is not None
    try:
        return volatile_facts(node.path)
    except ManifestError:
        return {}


def _packages(facts: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the sorted versions of each package with which the stages were run, by name of the package. `facts`
    contains one entry for each stage's run.
    """
    found: dict[str, set[str]] = {}
    for entry in facts:
        for package, version in entry.get("packages", {}).items():
            found.setdefault(package, set()).add(version)
    return {package: sorted(versions) for package, versions in sorted(found.items())}


def _add_skeleton(crate: Crate, run: Run) -> None:
    crate.add(
        METADATA,
        "CreativeWork",
        about=reference("./"),
        conformsTo=[reference(SPECIFICATION), reference(WORKFLOW_PROFILE)],
    )
    crate.add("./", "Dataset", name=f"Run of the experiment {run.name} with Hatchery")
    for profile, (name, version) in PROFILES.items():
        crate.add(profile, "CreativeWork", name=name, version=version)
    crate.add(LICENCE, "CreativeWork", name="Apache License 2.0", identifier=LICENCE)
    crate.add(WORKFLOW_TYPE, "CreativeWork", name="ComputationalWorkflow", version="1.0-RELEASE")
    text = "The files of this crate, and the files that are not in it"
    crate.held(README, run.readme.encode(), description=text, about=reference("./"))


def _add_node(crate: Crate, chain: Chain, node: Node) -> str:
    """Add the entity of a node of the chain, and return the entity's identifier.

    The manifest of a stage is added with its outputs, and a raw input with its files. Any other node is a single file,
    which may be missing.
    """
    if node.manifest is not None and node.path is not None:
        for output in node.manifest.outputs:
            crate.file(_name(chain, output.path), output.sha256, output.bytes)
        place = chain.shown(node.path) if _is_inside(chain, node.path) else f"outside/{node.short}/{node.path.name}"
        text = "Settings of a stage, and checksums of its inputs and outputs"
        return crate.held(place, node.path.read_bytes(), description=text)
    if node.source is not None:
        source = node.source
        parts = [crate.file(name, sha256, size) for name, (size, sha256) in source.files.items()]
        origin = "; ".join(described(node.origin))
        return crate.add(
            f"#raw-{source.name}-{node.short}",
            "Collection",
            name=f"raw input {source.name}",
            description=f"Registered raw files. Origin: {origin}" if origin else "Registered raw files",
            license=source.licence,
            usageInfo=source.terms,
            hasPart=[reference(part) for part in parts],
        )
    if node.path is None:
        # Only the first digits of a missing manifest's digest may be known, so the digest cannot be a URI (RFC 6920).
        return crate.add(f"#missing-{node.digest}", "CreativeWork", name="a file that is missing or has changed")
    return crate.file(_name(chain, node.path), node.digest, node.path.stat().st_size)


def _is_inside(chain: Chain, path: Path) -> bool:
    return path.is_relative_to(chain.project) and ".." not in path.relative_to(chain.project).parts


def _name(chain: Chain, path: Path) -> str:
    """Return a path relative to the project; for a file outside of the project, only its name."""
    return chain.shown(path) if _is_inside(chain, path) else path.name


def _add_action(crate: Crate, node: Node, ids: Mapping[str, str]) -> str:
    assert node.manifest is not None
    manifest, facts = node.manifest, _facts(node)
    made = [ids[node.digest], *dict.fromkeys(named_by_digest(output.sha256) for output in manifest.outputs)]
    started = facts.get("started")
    ended = _later(started, facts.get("wall_seconds", 0.0)) if started else None
    return crate.add(
        f"#run-{node.short}",
        "CreateAction",
        name=f"{manifest.stage} of {crate.entities[ids[node.digest]]['name']}",
        description=f"Stage {manifest.stage}, version {manifest.settings.get('stage_version', '?')}",
        instrument=reference(f"#stage-{manifest.stage}"),
        object=[reference(identifier) for identifier in dict.fromkeys(ids[link.digest] for link in node.inputs)],
        result=[reference(identifier) for identifier in made],
        startTime=started,
        endTime=ended,
        actionStatus="http://schema.org/CompletedActionStatus",
    )


def _later(started: str, seconds: float) -> str:
    return (datetime.fromisoformat(started) + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def _times(action: Entity) -> list[str]:
    return [action[key] for key in ("startTime", "endTime") if key in action]


def _add_parameters(crate: Crate, run: Run, raw: Sequence[str]) -> None:
    text = "The configuration of the experiment, with defaults, sweeps and grids written out"
    works = reference("#configuration")
    crate.held(CONFIGURATION, run.configuration.encode(), description=text, exampleOfWork=works)
    results = [
        crate.held(path.as_posix(), path.read_bytes(), exampleOfWork=reference("#results")) for path in run.results
    ]
    for name, kind, examples in (
        ("configuration", "File", [CONFIGURATION]),
        ("raw-inputs", "Collection", raw),
        ("results", "File", results),
    ):
        if examples:
            links = [reference(example) for example in examples]
            title = name.replace("-", " ")
            crate.add(f"#{name}", "FormalParameter", name=title, additionalType=kind, workExample=links)
    for identifier in raw:
        crate.entities[identifier]["exampleOfWork"] = reference("#raw-inputs")


def _add_workflow(crate: Crate, run: Run, actions: Sequence[str], facts: Sequence[Mapping[str, Any]]) -> None:
    tools = list(dict.fromkeys(crate.entities[action]["instrument"]["@id"] for action in actions))
    steps = []
    for position, tool in enumerate(tools, 1):
        stage = tool.removeprefix("#stage-")
        versions = sorted(
            {crate.entities[action]["description"] for action in actions if _is_made_by(crate, action, tool)}
        )
        crate.add(tool, "SoftwareApplication", name=stage, softwareVersion="; ".join(versions))
        steps.append(
            crate.add(f"#step-{stage}", "HowToStep", position=str(position), name=stage, workExample=reference(tool))
        )
    crate.add(LANGUAGE, "ComputerLanguage", name="Snakemake", url=reference(SNAKEMAKE))
    software = [
        crate.add(f"#package-{package}-{version}", "SoftwareApplication", name=package, softwareVersion=version)
        for package, versions in _packages(facts).items()
        for version in versions
    ]
    revisions = sorted({entry["code_revision"] for entry in facts if entry.get("code_revision")})
    crate.held(
        WORKFLOW,
        run.workflow.read_bytes(),
        name=f"Hatchery {run.version}",
        encodingFormat=FORMATS[".txt"],
        conformsTo=reference(WORKFLOW_TYPE),
        description=f"Revisions of the code that made the results: {', '.join(revisions) or 'unknown'}",
        version=run.version,
        license=reference(LICENCE),
        programmingLanguage=reference(LANGUAGE),
        softwareRequirements=[reference(name) for name in software],
        hasPart=[reference(tool) for tool in tools],
        step=[reference(step) for step in steps],
        input=[reference(name) for name in ("#configuration", "#raw-inputs") if name in crate.entities],
        output=[reference("#results")],
    )
    crate.entities[WORKFLOW]["@type"] = ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"]


def _is_made_by(crate: Crate, action: str, tool: str) -> bool:
    return bool(crate.entities[action]["instrument"]["@id"] == tool)


def _add_runs(
    crate: Crate,
    run: Run,
    actions: Sequence[str],
    raw: Sequence[str],
    times: Sequence[str],
    versions: Sequence[str],
) -> None:
    """Add entities for the run of the workflow, for the run of Snakemake, and for Snakemake's control of each stage's
    run (`ControlAction`).

    `actions` are the identifiers of the stages' runs, and `raw` those of raw inputs. `times` are the start and end
    times of the stages' runs, and `versions` the versions of Snakemake.
    """
    controls = []
    for action in actions:
        step = crate.entities[action]["instrument"]["@id"].replace("#stage-", "#step-")
        name = f"#control-{action.removeprefix('#run-')}"
        controls.append(crate.add(name, "ControlAction", instrument=reference(step), object=reference(action)))
    whole = crate.add(
        "#run",
        "CreateAction",
        name=f"Run of the experiment {run.name}",
        description=run.description,
        instrument=reference(WORKFLOW),
        object=[reference(name) for name in (CONFIGURATION, *raw)],
        result=[reference(path.as_posix()) for path in run.results],
        startTime=min(times, default=None),
        endTime=max(times, default=None),
    )
    if controls:
        crate.add(
            SNAKEMAKE, "SoftwareApplication", name="Snakemake", url=SNAKEMAKE, softwareVersion=", ".join(versions)
        )
        crate.add(
            "#engine",
            "OrganizeAction",
            name="Snakemake's run of the stages",
            instrument=reference(SNAKEMAKE),
            object=[reference(name) for name in controls],
            result=reference(whole),
        )


def _complete_root(crate: Crate, run: Run, chain: Chain, raw: Sequence[str], times: Sequence[str]) -> None:
    entities = crate.entities
    # Remove duplicates, because a raw input has several entities if stages read different files of this input.
    said = [f"{entities[name]['name']}: {entities[name].get('license', 'not stated')}" for name in raw]
    licences = dict.fromkeys(said)
    gone = len(chain.problems)
    problems = f" Inputs that are missing or have changed since they were read: {gone}." if gone else ""
    day = datetime.fromisoformat(max(times)) if times else datetime.fromtimestamp(run.results[0].stat().st_mtime)
    kinds = ("CreateAction", "Collection", "OrganizeAction")
    text = f"The results have no licence of their own. Licence of each raw input: {'; '.join(licences)}"
    crate.add("#licence", "CreativeWork", name="Licence of the results", description=text)
    entities["./"] |= {
        "description": f"{run.description or run.name}{problems}",
        "datePublished": day.date().isoformat(),
        "license": reference("#licence"),
        "conformsTo": [reference(profile) for profile in PROFILES],
        "mainEntity": reference(WORKFLOW),
        "hasPart": [reference(name) for name, entity in entities.items() if "File" in entity["@type"]],
        "mentions": [reference(name) for name, entity in entities.items() if entity["@type"] in kinds],
    }

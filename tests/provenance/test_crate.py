"""The run of an experiment as an RO-Crate: rules of the specification and profiles, and the way to raw files.

The rules are those of RO-Crate 1.1, Workflow RO-Crate 1.0, and Provenance Run Crate 0.5 with the profiles that it
includes.
"""

import base64
import contextlib
import hashlib
import json
import os
import platform
import zipfile
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from hatchery.analysis.summary_rows import PROVENANCE_ROWS
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import HatcheryError
from hatchery.provenance.crate_graph import Crate, named_by_digest
from hatchery.rendering.templates import render
from hatchery.runner import run_stage
from hatchery.views.stages.write_crate import write_crate

SETTINGS = {
    "stage": "write_crate",
    "stage_version": 1,
    "experiment": "exp",
    "description": "Two models.",
    "configuration": {"exp": {"corpus": "toy", "note": "größer"}},
}


def made(toy: Any) -> Path:
    output = Path("results/exp/ro-crate.zip")
    results = [Path("results/exp/summary.csv")]
    with contextlib.chdir(toy.folder):
        run_stage(write_crate, SETTINGS, output, summary=results[0].with_suffix(".parquet"), results=results)
    return Path(toy.folder / output)


class Read:
    """A crate, read without our code."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            self.files = {name: archive.read(name) for name in archive.namelist()}
        self.document = json.loads(self.files["ro-crate-metadata.json"])
        self.graph: dict[str, Any] = {entity["@id"]: entity for entity in self.document["@graph"]}

    def of_type(self, kind: str) -> list[Any]:
        return [entity for entity in self.graph.values() if kind in as_list(entity["@type"])]

    def named(self, entity: Any, key: str) -> list[str]:
        return [link["@id"] for link in as_list(entity.get(key, [])) if isinstance(link, dict)]

    def linked(self, entity: Any, key: str) -> list[Any]:
        return [self.graph[name] for name in self.named(entity, key)]

    def read_by(self, name: str) -> Iterator[str]:
        """Return the inputs of an entity, with their parts and inputs, down to the raw files."""
        for action in self.of_type("CreateAction"):
            if name in self.named(action, "result") and action["@id"] != "#run":
                for source in self.named(action, "object"):
                    yield source
                    yield from self.named(self.graph[source], "hasPart")
                    yield from self.read_by(source)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.fixture
def crate(toy: Any) -> Read:
    return Read(made(toy))


def test_the_readme_names_the_experiment_and_describes_each_result(crate: Read) -> None:
    text = crate.files["README.md"].decode()
    assert text.startswith("# Run of the experiment exp with Hatchery ") and "\nTwo models.\n" in text
    assert "| `results/exp/summary.csv` | all scores, one in each row |" in text
    assert f"(at most the first {PROVENANCE_ROWS:,})" in render(
        "crate_readme.md.j2", name="exp", version="1", description="", results=[Path("provenance.html")]
    )


def test_the_metadata_are_a_flat_graph_of_entities_that_are_all_there(crate: Read) -> None:
    assert crate.document["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    assert len(crate.graph) == len(crate.document["@graph"])
    for entity in crate.graph.values():
        for key, value in entity.items():
            for part in as_list(value):
                assert isinstance(part, str) or set(part) == {"@id"}, key
                assert isinstance(part, str) or part["@id"] in crate.graph or part["@id"].startswith("https://"), part
    about = crate.graph["ro-crate-metadata.json"]
    assert (about["@type"], crate.named(about, "about")) == ("CreativeWork", ["./"])
    assert crate.named(about, "conformsTo")[0] == "https://w3id.org/ro/crate/1.1"
    root = crate.graph["./"]
    assert root["@type"] == "Dataset"
    assert date.fromisoformat(root["datePublished"])
    assert root["name"] == "Run of the experiment exp with Hatchery"
    assert root["description"] == "Two models."
    (licence,) = crate.linked(root, "license")
    assert licence["description"].endswith("Licence of each raw input: raw input toy: CC BY")
    (raw,) = [entity for entity in crate.of_type("Collection") if entity["name"] == "raw input toy"]
    assert (raw["license"], raw["usageInfo"]) == ("CC BY", "with attribution")
    assert raw["description"] == "Registered raw files. Origin: url: a page; year: 2020"


def test_every_file_is_described_with_its_size_and_is_there_or_named_by_its_digest(crate: Read) -> None:
    files = {entity["@id"]: entity for entity in crate.of_type("File")}
    assert set(files) == set(crate.named(crate.graph["./"], "hasPart"))
    assert {name for name in files if not name.startswith("ni:")} == set(crate.files) - {"ro-crate-metadata.json"}
    for name, entity in files.items():
        if name in crate.files:
            assert entity["contentSize"] == str(len(crate.files[name]))
            assert entity["sha256"] == sum_of(crate.files[name])
        else:
            padded = name.removeprefix("ni:///sha-256;") + "="
            assert base64.urlsafe_b64decode(padded).hex() == entity["sha256"]
    formats = {Path(entity["name"]).suffix: entity["encodingFormat"] for entity in files.values()}
    assert (formats[".csv"], formats[".json"], formats[".txt"]) == ("text/csv", "application/json", "text/plain")
    assert json.loads(crate.files["configuration.json"]) == SETTINGS["configuration"]
    # The manifests are of two trained models, two results of pairs, a corpus and its tokens.
    assert sum(name.endswith("manifest.json") for name in crate.files) == 6
    assert not [name for name in crate.files if name.endswith("data.txt") or name.startswith("data/")]


def sum_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_digest_as_a_name_is_that_of_the_standard() -> None:
    # The first example of RFC 6920.
    assert named_by_digest(sum_of(b"Hello World!")) == "ni:///sha-256;f4OxZX_x_FO5LcGBSKHWXfwtSx-j1ncoSt3SABJtkGk"


def test_files_with_equal_bytes_are_one_entity_with_the_names_of_all() -> None:
    crate, digest = Crate(), sum_of(b"equal")
    names = {crate.file(name, digest, 5) for name in ("b.jsonl", "c.bin", "b.jsonl", "a.txt")}
    entity = crate.entities[names.pop()]
    assert not names and (entity["name"], entity["alternateName"]) == ("b.jsonl", ["a.txt", "c.bin"])
    assert entity["encodingFormat"] == "application/jsonl"
    other = crate.entities[crate.file("c.bin", sum_of(b"other"), 5)]
    assert other["encodingFormat"] == "application/octet-stream" and "alternateName" not in other


def test_the_graph_leads_from_a_result_to_every_raw_file(crate: Read, toy: Any) -> None:
    pairs = "results/exp/minimal_pairs/elc_bert-s1/pairs/manifest.json"
    names = set(crate.read_by(pairs))
    assert "results/tokens/toy/toy/manifest.json" in names
    assert "results/exp/pretraining/ltg_bert-s1/manifest.json" not in names
    raw = {sum_of(path.read_bytes()): path.name for path in (toy.folder / "data/raw").iterdir()}
    found = {entity["sha256"]: entity["name"] for entity in map(crate.graph.get, names) if "sha256" in entity}
    assert len(raw) == 7
    assert raw.items() <= found.items()
    # The output of a stage is a result of the stage's action, as the manifest is.
    weights = sum_of((toy.folder / "results/exp/pretraining/elc_bert-s1/data.txt").read_bytes())
    (action,) = [a for a in crate.of_type("CreateAction") if named_by_digest(weights) in crate.named(a, "result")]
    assert crate.named(action, "instrument") == ["#stage-pretrain"]
    assert crate.named(action, "object") == ["results/tokens/toy/toy/manifest.json"]
    assert datetime.fromisoformat(action["startTime"]) <= datetime.fromisoformat(action["endTime"])


def test_a_run_goes_from_its_first_start_to_its_last_end_and_is_published_then(toy: Any) -> None:
    """The stages begin an hour after each other over two days, and take a minute each."""
    paths = sorted(toy.folder.glob("results/**/provenance.json"))
    for hour, path in enumerate(paths, 24 - len(paths) // 2):
        facts = json.loads(path.read_text())
        facts |= {"started": f"2020-01-{2 + hour // 24:02}T{hour % 24:02}:00:00+00:00", "wall_seconds": 60.0}
        # The software was updated at midnight of the second day.
        facts |= {"packages": {"torch": "2.6", "snakemake": f"9.{hour // 24}"}, "code_revision": "ba"[hour // 24]}
        path.write_text(json.dumps({key: value for key, value in facts.items() if key != "checksum"}))
    graph = Read(made(toy)).graph
    first, last = 24 - len(paths) // 2, len(paths) - 1 - len(paths) // 2
    assert graph["#run"]["startTime"] == f"2020-01-02T{first:02}:00:00+00:00"
    assert graph["#run"]["endTime"] == f"2020-01-03T{last:02}:01:00+00:00"
    assert graph["./"]["datePublished"] == "2020-01-03"
    assert graph["#run"]["description"] == "Two models."
    workflow = graph["Snakefile"]
    assert workflow["description"] == "Revisions of the code that made the results: a, b"
    software = [graph[link["@id"]] for link in workflow["softwareRequirements"]]
    found = [(package["name"], package["softwareVersion"]) for package in software]
    assert found == [("snakemake", "9.0"), ("snakemake", "9.1"), ("torch", "2.6")]
    assert graph["https://snakemake.github.io"]["softwareVersion"] == "9.0, 9.1"
    assert graph["#stage-score_minimal_pairs"]["softwareVersion"] == "Stage score_minimal_pairs, version 2"


def test_the_workflow_its_steps_and_its_runs_are_those_of_the_profiles(crate: Read) -> None:
    profiles = crate.linked(crate.graph["./"], "conformsTo")
    assert [profile["name"] for profile in profiles] == [
        "Process Run Crate",
        "Workflow Run Crate",
        "Provenance Run Crate",
        "Workflow RO-Crate",
    ]
    (workflow,) = crate.linked(crate.graph["./"], "mainEntity")
    assert set(workflow["@type"]) == {"File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"}
    assert [language["@type"] for language in crate.linked(workflow, "programmingLanguage")] == ["ComputerLanguage"]
    tools = crate.named(workflow, "hasPart")
    assert sorted(tools) == [
        "#stage-convert_corpus",
        "#stage-encode_corpus",
        "#stage-pretrain",
        "#stage-score_minimal_pairs",
    ]
    assert [step["position"] for step in crate.linked(workflow, "step")] == ["1", "2", "3", "4"]
    assert [crate.named(step, "workExample") for step in crate.linked(workflow, "step")] == [[tool] for tool in tools]
    assert tools.index("#stage-convert_corpus") < tools.index("#stage-pretrain")
    parameters = [*crate.linked(workflow, "input"), *crate.linked(workflow, "output")]
    assert len(parameters) == 3
    for parameter in parameters:
        assert parameter["@type"] == "FormalParameter"
        assert parameter["additionalType"]
        for example in crate.linked(parameter, "workExample"):
            assert crate.named(example, "exampleOfWork") == [parameter["@id"]]
    actions = crate.of_type("CreateAction")
    assert {action["@id"] for action in actions} <= set(crate.named(crate.graph["./"], "mentions"))
    (run,) = [action for action in actions if crate.linked(action, "instrument") == [workflow]]
    assert "results/exp/summary.csv" in crate.named(run, "result")
    (engine,) = crate.of_type("OrganizeAction")
    assert crate.linked(engine, "result") == [run]
    controls = crate.linked(engine, "object")
    assert len(controls) == len(actions) - 1 == 6
    for control in controls:
        (action,), (step,) = crate.linked(control, "object"), crate.linked(control, "instrument")
        assert crate.named(step, "workExample") == crate.named(action, "instrument")


def test_equal_results_make_equal_crates_that_name_no_machine(toy: Any) -> None:
    path = made(toy)
    first = path.read_bytes()
    assert made(toy).read_bytes() == first
    whole = b"".join(Read(path).files.values())
    for private in (str(toy.folder), str(Path.home()), f'"{platform.node()}"'):
        assert private.encode() not in whole


def test_a_model_of_another_folder_is_named_without_its_folder(toy: Any) -> None:
    other = type(toy)(toy.folder.parent / "unshown")
    other.folder.mkdir()
    theirs = other.stage("models/theirs", {"stage": "pretrain", "stage_version": 1}, {})
    with contextlib.chdir(toy.folder):
        settings = {"stage": "score_minimal_pairs", "stage_version": 2, "suite": "pairs"}
        with stage_run(toy.manifest("exp/minimal_pairs/elc_bert-s1/pairs"), settings, {"model": from_here(theirs)}):
            pass
    toy.write_summary()
    crate = Read(made(toy))
    (held,) = [name for name in crate.files if name.startswith("outside/")]
    assert crate.files[held] == theirs.read_bytes()
    assert held in set(crate.read_by("results/exp/minimal_pairs/elc_bert-s1/pairs/manifest.json"))
    assert b"unshown" not in b"".join(crate.files.values())
    assert not [name for name in crate.files if ".." in name or name.startswith("/")]


def from_here(path: Path) -> Path:
    return Path(os.path.relpath(path))


def test_a_crate_says_how_many_files_are_gone(toy: Any) -> None:
    # A training read the tokens, and a row of the summary names the pairs.
    toy.manifest("tokens/toy/toy").unlink()
    pairs = toy.manifest("exp/minimal_pairs/elc_bert-s1/pairs")
    digest = sum_of(pairs.read_bytes())
    pairs.unlink()
    crate = Read(made(toy))
    assert "Inputs that are missing or have changed since they were read: 2." in crate.graph["./"]["description"]
    missing = [entity for entity in crate.of_type("CreativeWork") if entity["@id"].startswith("#missing-")]
    assert len(missing) == 2 and [e for e in missing if digest.startswith(e["@id"].removeprefix("#missing-"))]


@pytest.mark.parametrize("name", ["summary.csv", "summary.parquet"])
def test_an_altered_result_is_refused(toy: Any, name: str) -> None:
    made(toy)
    path = toy.folder / "results/exp" / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(HatcheryError, match=rf"{name}: "):
        made(toy)

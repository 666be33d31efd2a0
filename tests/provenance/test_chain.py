"""Digests lead from a number to the raw files, and each mismatch on the way is named."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import read_manifest, stage_run, volatile_facts
from hatchery.provenance.chain import (
    Chain,
    Found,
    ManifestIndex,
    follow,
    generated_problems,
    output_problems,
    raw_problems,
)
from hatchery.raw.registration import register_source

PAIRS = "exp/minimal_pairs/elc_bert-s1/pairs"


def test_of_equal_files_the_one_in_the_folder_or_else_the_first_is_shown() -> None:
    found = Found("ab", (Path("a/x"), Path("b/x"), Path("c/x")))
    assert [str(found.nearest(Path(folder))) for folder in "abcd"] == ["a/x", "b/x", "c/x", "a/x"]


def chain_of(toy: Any, digest: str | None = None) -> Chain:
    start = digest or sha256_file(toy.manifest(PAIRS))[:12]
    return follow(ManifestIndex(toy.folder), [start], where="here", prefer="results/exp")


def stages(chain: Chain) -> list[str]:
    return [node.manifest.stage if node.manifest else node.kind for node in chain.nodes.values()]


def test_the_chain_leads_through_every_stage_to_the_source(toy: Any) -> None:
    chain = chain_of(toy)
    assert stages(chain) == ["score_minimal_pairs", "pretrain", "encode_corpus", "convert_corpus", "source"]
    assert chain.problems == []
    source = list(chain.nodes.values())[-1].source
    assert source is not None
    assert (len(source.files), source.licence, source.terms) == (7, "CC BY", "with attribution")
    assert output_problems(chain) == raw_problems(chain) == generated_problems(chain) == []


def test_an_input_that_was_made_anew_is_named_with_both_digests(toy: Any) -> None:
    old = sha256_file(toy.manifest("tokens/toy/toy"))
    # provenance.json gives the path of the input.
    provenance = toy.manifest("exp/pretraining/elc_bert-s1").with_name("provenance.json")
    write_text(provenance, json.dumps({"inputs": {"tokens": "results/tokens/toy/toy/manifest.json"}}))
    toy.stage("tokens/toy/toy", {"stage": "encode_corpus", "stage_version": 2}, {"corpus": toy.manifest("corpora/toy")})
    new = sha256_file(toy.manifest("tokens/toy/toy"))
    chain = chain_of(toy)
    assert chain.problems == [
        "results/exp/pretraining/elc_bert-s1/manifest.json: input 'tokens': results/tokens/toy/toy/manifest.json has "
        f"changed since it was read: its digest is {new[:12]}, expected {old[:12]}"
    ]
    assert stages(chain)[-1] == "source"
    assert "missing" in stages(chain)


def test_a_source_that_was_registered_anew_is_named_where_it_is_known_from_where_it_was_read(toy: Any) -> None:
    settings = {"stage": "finetune", "stage_version": 1}
    made = toy.stage("exp/finetuning/elc_bert-s1/cola", settings, {"source cola": toy.source})
    for sources in ({"source cola": "resources/sources/toy.json"}, {}):
        write_text(made.with_name("provenance.json"), json.dumps(volatile_facts(made) | {"inputs": sources}))
        write_text(toy.source, toy.source.read_text(encoding="utf-8") + "\n")
        (problem,) = chain_of(toy, sha256_file(made)).problems
        assert problem.startswith("results/exp/finetuning/elc_bert-s1/cola/manifest.json: input 'source cola': ")
        assert ("resources/sources/toy.json has changed since it was read" in problem) == bool(sources)


def test_a_damaged_provenance_is_named_and_the_chain_goes_on(toy: Any) -> None:
    provenance = toy.manifest("tokens/toy/toy").with_name("provenance.json")
    text = provenance.read_text(encoding="utf-8")
    for damaged in ("{", text.replace('"processors": ', '"processors": 1')):
        write_text(provenance, damaged)
        chain = chain_of(toy)
        assert len(chain.problems) == 1 and chain.problems[0].startswith(f"{provenance}: ")
        assert stages(chain)[-1] == "source"


def test_a_deleted_manifest_is_one_line_and_the_rest_is_still_followed(toy: Any) -> None:
    digest = sha256_file(toy.manifest("corpora/toy"))[:12]
    shutil.rmtree(toy.manifest("corpora/toy").parent)
    chain = chain_of(toy)
    assert chain.problems == [
        f"results/tokens/toy/toy/manifest.json: input 'corpus': no file in results/ or resources/ has the digest "
        f"{digest}: it was deleted or made again"
    ]
    assert stages(chain) == ["score_minimal_pairs", "pretrain", "encode_corpus", "missing", "source"]


def test_an_edited_or_damaged_manifest_and_a_digest_that_nothing_or_too_much_has_are_named(toy: Any) -> None:
    assert chain_of(toy, "0123456789ab").problems == [
        "here: no file in results/ or resources/ has the digest 0123456789ab: it was deleted or made again"
    ]
    assert "the digests of several files begin with" in follow(ManifestIndex(toy.folder), [""], "here").problems[0]
    corpus = toy.manifest("corpora/toy")
    write_text(corpus, corpus.read_text(encoding="utf-8").replace("plain_text", "plain_texts"))
    assert len(chain_of(toy).problems) == 1
    path = toy.manifest(PAIRS)
    write_text(path, "{}")
    assert "manifest.json: has the SHA-256" in chain_of(toy, sha256_file(path)[:12]).problems[0]
    path.with_name("provenance.json").unlink()
    (problem,) = chain_of(toy, sha256_file(path)[:12]).problems
    assert "the file is not a manifest" in problem


def test_changed_and_missing_outputs_and_raw_files_are_all_named(toy: Any) -> None:
    chain = chain_of(toy)
    changed = toy.manifest("tokens/toy/toy").with_name("data.txt")
    times = changed.stat()
    write_text(changed, changed.read_text(encoding="utf-8").replace("made", "mAde"))
    # Because a damaged disk may change bytes without changing a file's size and modification time.
    os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
    toy.manifest("corpora/toy").with_name("data.txt").unlink()
    write_text(toy.folder / "data/raw/text3.txt", "raw text X\n")
    (toy.folder / "data/raw/text5.txt").unlink()
    one, two = output_problems(chain)
    assert "tokens/toy/toy/data.txt: has the SHA-256" in one and "corpora/toy/data.txt: is missing" in two
    one, two = raw_problems(chain)
    assert "'text3.txt': has the SHA-256" in one and "'text5.txt': is missing" in two
    shutil.rmtree(toy.folder / "data/raw")
    assert raw_problems(chain) == ["source 'toy': data/raw does not exist any more"]


def test_equal_manifests_are_shown_in_the_experiment_that_is_asked_about(toy: Any) -> None:
    for folder in ("another", "zebra"):
        shutil.copytree(toy.folder / "results/exp/pretraining", toy.folder / "results" / folder / "pretraining")
    index = ManifestIndex(toy.folder)
    digest = sha256_file(toy.manifest("exp/pretraining/elc_bert-s1"))
    for experiment in ("another", "exp", "zebra"):
        chain = follow(index, [digest], "here", f"results/{experiment}")
        assert chain.shown(chain.nodes[digest].path) == f"results/{experiment}/pretraining/elc_bert-s1/manifest.json"


def test_generated_raw_files_lead_to_their_generator_and_are_compared_with_it(toy: Any) -> None:
    folder = toy.folder / "resources/embedded"
    settings = {"stage": "generate_embedded_sources", "stage_version": 1, "documents": 3}
    with stage_run(folder / "manifest.json", settings) as run:
        write_text(folder / "toy/a.txt", "generated\n")
        run.add_output(folder / "toy/a.txt")
    source = toy.folder / "resources/sources/embedded_toy.json"
    register_source("embedded_toy", folder / "toy", source)
    chain = chain_of(toy, sha256_file(source))
    assert stages(chain) == ["source", "generate_embedded_sources"]
    assert generated_problems(chain) == []
    with stage_run(folder / "manifest.json", settings) as run:
        write_text(folder / "toy/a.txt", "generated otherwise\n")
        run.add_output(folder / "toy/a.txt")
    assert generated_problems(chain_of(toy, sha256_file(source))) == [
        "resources/sources/embedded_toy.json: 'a.txt' has another checksum than in resources/embedded/manifest.json"
    ]
    # A source may also be a single file.
    with stage_run(folder / "manifest.json", settings) as run:
        write_text(run.add_output(folder / "b.txt"), "generated\n")
    register_source("embedded_toy", folder / "b.txt", source)
    chain = chain_of(toy, sha256_file(source))
    assert stages(chain) == ["source", "generate_embedded_sources"] and generated_problems(chain) == []
    (folder / "manifest.json").unlink()
    assert generated_problems(chain_of(toy, sha256_file(source))) == [
        "resources/sources/embedded_toy.json: the manifest of the generated files is missing"
    ]


def test_folders_of_unfinished_runs_are_left_out_and_results_of_the_same_name_are_not(toy: Any) -> None:
    settings = {"stage": "convert_corpus", "stage_version": 2}
    found, left_out = (toy.stage(place, settings, {}) for place in ("corpora/settings", "settings/toy"))
    index = ManifestIndex(toy.folder)
    assert index.digest_of(found) == sha256_file(found) and index.digest_of(left_out) is None


def made(manifest: Path, inputs: dict[str, Path]) -> Path:
    with stage_run(manifest, {"stage": manifest.parent.name, "stage_version": 1}, inputs):
        pass
    return manifest


def test_the_chain_leads_through_an_imported_model_to_its_files_and_names_one_that_changed(tmp_path: Path) -> None:
    weights = tmp_path / "elsewhere" / "config.json"
    write_text(weights, "{}")
    initial = tmp_path / "elsewhere" / "imported" / "manifest.json"
    made(initial, {"config": weights})
    project = tmp_path / "project"
    run = project / "results" / "pretraining" / "manifest.json"
    made(run, {"initial_model": initial})
    digest = read_manifest(run).digest
    chain = follow(ManifestIndex(project), [digest], "the run")
    assert chain.problems == []
    assert [node.kind for node in chain.nodes.values()] == ["stage", "stage", "file"]
    weights.write_text("{} ")
    (problem,) = follow(ManifestIndex(project), [digest], "the run").problems
    assert "input 'config'" in problem

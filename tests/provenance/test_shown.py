"""The way from a number back to the raw data, on the terminal and on the page of provenance."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hatchery.analysis.summary_rows import row_anchor
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import stage_run
from hatchery.provenance.chain import ManifestIndex, follow
from hatchery.provenance.chain_text import tree_text
from hatchery.raw.registration import register_source
from hatchery.runner import run_stage
from hatchery.views import provenance_page
from hatchery.views.stages.write_provenance import write_provenance

MODELS = {"elc_bert": "zero", "ltg_bert": "none"}
Trace = Callable[..., subprocess.CompletedProcess[str]]


def test_a_cell_is_traced_to_raw_bytes(trace: Trace, toy: Any) -> None:
    result = trace("--model", "elc_bert", "--verify", "--verify-raw")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].endswith("row 1: elc_bert pairs binding accuracy_percent = 53.0000 (n = 1)")
    assert any("model: hidden_size 384, layer_weighting zero" in line for line in lines)
    assert "long_sequence" not in result.stdout
    assert any("folder" in line and "data/raw: 7 files, 77 bytes" in line for line in lines)
    assert any("licence: CC BY; terms: with attribution" in line for line in lines)
    assert sha256_file(toy.folder / "data/raw/text0.txt") in result.stdout
    assert any(line.endswith("and 2 more (--full lists them)") for line in lines)
    # The corpus and the evaluation read the source, which is described only once.
    assert sum("raw files 'toy'" in line for line in lines) == 2
    assert sum("(see above)" in line for line in lines) == 1


def test_full_shows_every_setting_output_and_raw_file(trace: Trace, toy: Any) -> None:
    result = trace("--row", "1", "--full")
    assert "long_sequence: null" in result.stdout
    assert "model.layer_weighting: zero" in result.stdout
    assert "measured lines: 1" in result.stdout
    for path in [*(toy.folder / "data/raw").iterdir(), toy.manifest("corpora/toy").with_name("data.txt")]:
        assert sha256_file(path) in result.stdout


def test_a_second_run_of_a_stage_tells_only_what_differs(trace: Trace, toy: Any) -> None:
    result = trace("--row", "3")
    numbers = "60.0000 ± 1.5000 (n = 2, 1 failed (61.5 without)) published 61.0000 in Paper Table 1: within"
    assert numbers in result.stdout
    assert result.stdout.count("hidden_size") == 1
    pairs = {sha256_file(toy.manifest(f"exp/minimal_pairs/{model}-s1/pairs"))[:12]: model for model in MODELS}
    first, second = (pairs[digest] for digest in sorted(pairs))
    assert result.stdout.count(f"settings as [{min(pairs)}]") == 1
    trained = sha256_file(toy.manifest(f"exp/pretraining/{first}-s1"))[:12]
    assert f"settings as [{trained}], but model.layer_weighting: {MODELS[second]}" in result.stdout


def test_the_first_outputs_of_a_stage_are_named_and_further_ones_counted(toy: Any) -> None:
    manifest = toy.manifest("corpora/many")
    for number, shown in ((5, " and 1 more (10 bytes)"), (4, " (8 bytes)")):
        with stage_run(manifest, {"stage": "convert_corpus", "stage_version": 2}) as run:
            for index in range(number):
                write_text(run.folder / f"{index}.txt", "ab")
                run.add_output(run.folder / f"{index}.txt")
        chain = follow(ManifestIndex(toy.folder), [sha256_file(manifest)], "here")
        assert f"wrote 0.txt, 1.txt, 2.txt, 3.txt{shown}" in tree_text("title", chain)


def test_json_holds_the_whole_chain(trace: Trace, toy: Any) -> None:
    value = json.loads(trace("--row", "1", "--json").stdout)
    assert value["row"]["model"] == "elc_bert"
    assert value["problems"] == []
    node = value["nodes"][value["manifests"][0]]
    depth = 1
    while node["kind"] == "stage":
        node = value["nodes"][node["inputs"].get("model") or next(iter(node["inputs"].values()))]
        depth += 1
    assert depth == 5
    assert node["files"][0] == {
        "path": "text0.txt",
        "bytes": 11,
        "sha256": sha256_file(toy.folder / "data/raw/text0.txt"),
    }


def test_what_manifests_say_steers_no_terminal(trace: Trace, toy: Any) -> None:
    settings = {"stage": "score_minimal_pairs", "stage_version": 2, "suite": "\x1b[2Jpairs\u202e\x9b"}
    model = toy.manifest("exp/pretraining/elc_bert-s1")
    toy.stage("exp/minimal_pairs/elc_bert-s1/pairs", settings, {"model": model})
    toy.write_summary()
    for flags, shown in ((["--full"], "\ufffd[2Jpairs\ufffd\ufffd"), (["--json"], "pairs\ufffd\ufffd")):
        output = trace("--row", "1", *flags).stdout
        assert shown in output
        assert not {"\x1b", "\u202e", "\x9b"} & set(output)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--model", "elc_bret"],
            "model: got 'elc_bret', expected a value of a row; did you mean 'elc_bert'? There are: elc_bert, ltg_bert",
        ),
        (["--row", "4"], "got row 4, expected 1 to 3"),
        (["--model", "ltg_bert"], "2 rows match; select one row by --row or --model, --suite, --task, --metric"),
        (
            ["--cell", "elc_bert/pairs/binding/accuracy_percent/5"],
            "expected model/suite/task/metric; the last values may be omitted",
        ),
    ],
)
def test_a_selection_that_is_not_one_row_is_one_line(trace: Trace, arguments: list[str], words: str) -> None:
    result = trace(*arguments)
    assert result.returncode == 1
    assert result.stderr.startswith("error: ") and result.stderr.endswith(f"{words}\n")
    assert result.stderr.count("\n") == 1
    # The output lists the rows to choose from.
    assert [line.split()[0] for line in result.stdout.splitlines()] == (["2", "3"] if "2 rows" in words else [])


def test_a_mismatch_is_shown_with_the_chain_and_is_status_1(trace: Trace, toy: Any) -> None:
    write_text(toy.folder / "data/raw/text3.txt", "raw text X\n")
    assert trace("--row", "1").returncode == 0
    result = trace("--row", "1", "--verify-raw")
    assert result.returncode == 1
    assert "convert_corpus" in result.stdout
    assert result.stderr.startswith("error: ")
    assert "'text3.txt': has the SHA-256" in result.stderr


def test_a_forged_number_or_one_that_nothing_vouches_for_is_refused_in_one_line(trace: Trace, toy: Any) -> None:
    write_text(toy.summary, toy.summary.read_text(encoding="utf-8").replace("53.0000", "99.0000"))
    for flags in ([], ["--verify", "--verify-raw"]):
        result = trace("--row", "1", *flags)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert result.stderr.startswith("error: results/exp/summary.csv: has the SHA-256 ")
    toy.summary.with_suffix(".sha256").unlink()
    result = trace("--row", "1")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert result.stderr.startswith("error: results/exp/summary.sha256: the checksums of summary.csv cannot be read")


def test_a_cell_is_found_by_its_words_as_by_options_and_later_words_may_be_left_out(trace: Trace) -> None:
    by_options = trace("--model", "elc_bert", "--suite", "pairs", "--task", "binding", "--metric", "accuracy_percent")
    assert by_options.returncode == 0
    assert "elc_bert pairs binding accuracy_percent = 53.0000" in by_options.stdout
    for cell in ("elc_bert/pairs/binding/accuracy_percent", "elc_bert", "elc_bert//binding"):
        assert trace("--cell", cell).stdout == by_options.stdout
    assert trace("--cell", "elc_bert", "--task", "binding").stdout == by_options.stdout


SETTINGS = {"stage": "write_provenance", "stage_version": 1, "experiment": "exp"}


def page(toy: Any) -> str:
    output = toy.folder / "results/exp/provenance.html"
    run_stage(
        write_provenance,
        SETTINGS,
        output,
        summary=toy.summary.with_suffix(".parquet"),
        project=toy.folder,
    )
    return output.read_text(encoding="utf-8")


def test_every_row_and_manifest_has_an_anchor_and_every_link_a_target(toy: Any) -> None:
    text = page(toy)
    anchors = re.findall(r'\bid="([^"]+)"', text)
    assert len(anchors) == len(set(anchors))
    assert row_anchor("ltg_bert", "pairs", "binding", "f1_percent") in anchors
    # Anchors: three rows, the pairs and pretraining of two models, tokens, corpus and source, and four sections.
    assert len(anchors) == 3 + 7 + 4
    links = re.findall(r'href="#([^"]+)"', text)
    assert set(links) <= set(anchors)
    assert not re.search(r'(?:src|href)="(?!#)', text)
    # The page shows raw files and their terms, but none of their content.
    assert text.count("raw text") == 0
    assert all(f">text{number}.txt</th>" in text for number in range(7))
    assert "licence: CC BY; terms: with attribution" in text


def digests_in(html: str) -> list[str]:
    """Return the digests of the linked manifests, in order."""
    return re.findall(r'href="#m-(\w+)"', html)


def test_a_row_links_to_its_manifests_and_a_manifest_to_its_inputs_and_readers(toy: Any) -> None:
    text = page(toy)
    places = ["exp/pretraining/elc_bert-s1", "exp/pretraining/ltg_bert-s1", "corpora/toy", "tokens/toy/toy"]
    elc, ltg, corpus, tokens = (sha256_file(toy.manifest(place))[:12] for place in places)
    pairs = [sha256_file(toy.manifest(f"exp/minimal_pairs/{model}_bert-s1/pairs"))[:12] for model in ("elc", "ltg")]
    row = text.partition(f'<tr id="{row_anchor("ltg_bert", "pairs", "binding", "f1_percent")}">')[2].partition("</tr>")[
        0
    ]
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row.replace("<wbr>", ""))
    names = ["ltg_bert", "pairs", "binding", "f1_percent"]
    assert cells[:-1] == [*names, "60.0000", "1.5000", "2", "1", "61.5000", "0"]
    assert digests_in(cells[-1]) == sorted(pairs)
    section = text.partition(f'<section id="m-{tokens}">')[2].partition("</section>")[0]
    read, read_by = section.partition("<p>read: ")[2].split("<p>read by: ")
    assert read.startswith("corpus: <a ") and digests_in(read) == [corpus] and set(digests_in(read_by)) == {elc, ltg}
    source = text.partition(f'<section id="m-{sha256_file(toy.source)[:12]}">')[2].partition("</section>")[0]
    assert set(digests_in(source)) == {corpus, *pairs}


def test_a_page_of_many_manifests_has_the_first_and_counts_the_others(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance_page, "MOST_STAGES", 2)
    monkeypatch.setattr(provenance_page, "MOST_FILES", 3)
    text = page(toy)
    # Two of six manifests of stages, and the raw source with three of its seven files.
    assert text.count('<section id="m-') == 3 and "4 more manifests are not on this page" in text
    assert set(digests_in(text)) <= set(re.findall(r'id="m-(\w+)"', text))
    assert [f">text{number}.txt</th>" in text for number in range(7)] == [True] * 3 + [False] * 4
    assert "and 4 more entries, which the manifest lists" in text and "files (7)" in text
    assert text.partition(">Times and versions</h2>")[2].count('<th scope="row">') == 2


def test_times_and_versions_are_in_their_columns(toy: Any) -> None:
    facts = {"started": "s", "wall_seconds": 1, "cpu_seconds": 2, "peak_memory_mib": 3, "python": "3.12"}
    facts |= {"code_revision": "r", "packages": {"torch": "9", "numpy": "2"}}
    path = toy.manifest("corpora/toy")
    write_text(path.with_name("provenance.json"), json.dumps(facts))
    rows = page(toy).partition(">Times and versions</h2>")[2].split("</tr>")
    (row,) = [row for row in rows if f"#m-{sha256_file(path)[:12]}" in row]
    assert re.findall(r"<td[^>]*>(.*?)</td>", row) == ["s", "1", "2", "3", "3.12", "r", "numpy 2, torch 9"]


def test_only_the_section_of_volatile_facts_changes_when_the_work_is_done_again(toy: Any) -> None:
    first = page(toy)
    for path in (toy.folder / "results").rglob("provenance.json"):
        write_text(path, '{"host": "another-machine", "started": "later", "packages": {"torch": "9"}}')
    second = page(toy)
    mark = ">Times and versions</h2>"
    assert first.split(mark)[0] == second.split(mark)[0]
    assert first.split(mark)[1] != second.split(mark)[1]
    assert ">later<" in second.split(mark)[1]


def test_the_page_names_no_host_no_home_and_no_folder_outside_the_project(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home/anna"
    monkeypatch.setenv("HOME", str(home))
    write_text(home / "private/letters/a.txt", "raw text")
    register_source("toy", home / "private/letters", toy.source)
    trained = toy.manifest("exp/pretraining/elc_bert-s1")
    settings = {"stage": "score_minimal_pairs", "stage_version": 2, "path": f"{home}/models", "other": f"{home}x"}
    toy.stage("exp/minimal_pairs/elc_bert-s1/pairs", settings, {"model": trained, "source": toy.source})
    toy.write_summary()
    for path in (toy.folder / "results").rglob("provenance.json"):
        write_text(path, '{"host": "annas-laptop", "started": "later"}')
    text = page(toy)
    assert "annas-laptop" not in text and "private" not in text and f"{home}/" not in text
    assert "folder .../letters: 1 file" in text and ">~/models<" in text and f">{home}x<" in text


def test_what_is_gone_is_named_on_the_page(toy: Any) -> None:
    toy.manifest("tokens/toy/toy").unlink()
    text = page(toy)
    assert "Missing or changed files" in text
    assert "input &#39;tokens&#39;: no file in results/ or resources/ has the digest" in text


def test_names_from_files_cannot_break_the_page(toy: Any) -> None:
    settings = {"stage": "score_minimal_pairs", "stage_version": 2, "suite": "<script>alert(1)</script>"}
    trained = toy.manifest("exp/pretraining/elc_bert-s1")
    toy.stage("exp/minimal_pairs/elc_bert-s1/pairs", settings, {"model": trained, "source": toy.source})
    toy.write_summary()
    text = page(toy)
    assert text.count("<script") == 1 and "<script>alert" not in text, "only the script of our pages"
    assert "&lt;script&gt;" in text

"""A sweep on a small corpus: outputs, bytes, refusals; the configured sweeps; the selection rule."""

import csv
import io
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.analysis.studies import analyses_of
from hatchery.artifacts.manifests import read_manifest
from hatchery.artifacts.yaml_files import read_yaml
from hatchery.errors import ConfigError, TokenizationError
from hatchery.experiment.kinds import FILES
from hatchery.experiment.project import Project
from hatchery.raw.registration import register_source
from hatchery.runner import run_stage
from hatchery.tokenization.selection.settings import CandidateType, SweepSettings
from hatchery.tokenization.selection.table import (
    PRETRAINED,
    Measures,
    best_type,
    chosen_rows,
    closest_size,
    read_published_selection,
)
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.typed import build, plain, stage_body, validated
from hatchery.views.stages.select_tokenizer import select_tokenizer
from hatchery.workflow.jobs import Jobs

BPE = {"name": "bpe", "definition": {"kind": "byte_bpe", "min_frequency": 0}, "sizes": [300, 340, 400]}
WORDPIECE = {"name": "wordpiece", "definition": {"kind": "wordpiece", "min_frequency": 0}, "sizes": [300, 400]}
SWEEP: dict[str, Any] = {
    "name": "small",
    "types": [
        {**BPE, "reference_ratio": 3.0, "published_as": "BPE"},
        {**WORDPIECE, "reference_ratio": 2.0},
    ],
    "sample_sequences": 50,
    "sequence_unit": "lines",
    "frequency_search": {"type": "bpe", "lowest": 270, "highest": 420, "step": 10, "least_frequency": 5},
}
PUBLISHED = """type,size,word_split_ratio,esms,frequency_at_95_percent,selected_within_type,final_choice,source,note
BPE,340,1.32,0.2604,,1,1,here,
BPE,pretrained,1.30,0.1547,,0,0,here,
"""


def sweep(folder: Path, corpus: Path, changes: dict[str, Any] | None = None, **inputs: Any) -> Path:
    settings = {"stage": "select_tokenizer", **SWEEP, **(changes or {})}
    run_stage(select_tokenizer, settings, folder / "manifest.json", corpus=corpus, **inputs)
    return folder


def rows_of(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((folder / "selection.csv").read_text(encoding="utf-8"))))


@pytest.fixture(scope="module")
def swept(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "published.csv").write_text(PUBLISHED)
    return sweep(folder / "out", corpus, published=folder / "published.csv")


def test_the_tables_name_every_candidate_and_choose_one(swept: Path) -> None:
    rows = rows_of(swept)
    assert [(row["type"], row["size"]) for row in rows] == [
        ("bpe", "300"),
        ("bpe", "340"),
        ("bpe", "400"),
        ("bpe", "pretrained"),
        ("wordpiece", "300"),
        ("wordpiece", "400"),
        ("wordpiece", "pretrained"),
    ]
    assert [row["is_reference"] for row in rows] == list("0001001")
    for name in ("bpe", "wordpiece"):
        chosen = [row for row in rows if row["type"] == name and row["selected_within_type"] == "1"]
        assert len(chosen) == 1
    final = [row for row in rows if row["final_choice"] == "1"]
    assert len(final) == 1 and final[0]["selected_within_type"] == "1"
    best = max(float(row["esms_published_code"]) for row in rows if row["selected_within_type"] == "1")
    assert float(final[0]["esms_published_code"]) == best
    bpe = [float(row["word_split_ratio"]) for row in rows[:3]]
    assert bpe == sorted(bpe, reverse=True)
    assert float(rows[0]["fertility"]) >= float(rows[2]["fertility"]) > 1


def test_published_values_stand_beside_ours(swept: Path) -> None:
    rows = rows_of(swept)
    assert [row["published_word_split_ratio"] for row in rows] == ["", "1.32", "", "1.30", "", "", ""]
    text = (swept / "selection.md").read_text(encoding="utf-8")
    assert "| 1.32 |" in text and "0.2604" in text
    assert "our own list, not the paper's" in text


def test_the_chosen_tokenizer_loads_and_is_the_one_training_makes(swept: Path, corpus: Path, tmp_path: Path) -> None:
    measures = read_manifest(swept / "manifest.json").measures
    assert load_tokenizer(swept / "tokenizer.json").vocabulary_size == measures["chosen_size"]
    definition = next(entry for entry in SWEEP["types"] if entry["name"] == measures["chosen_type"])["definition"]
    run_stage(
        train_tokenizer,
        {**definition, "vocabulary_size": measures["chosen_size"]},
        tmp_path / "manifest.json",
        corpus=[corpus],
    )
    assert (tmp_path / "tokenizer.json").read_bytes() == (swept / "tokenizer.json").read_bytes()


def test_the_text_says_how_many_sequences_and_words_were_measured(corpus: Path, tmp_path: Path) -> None:
    changes = {"types": [{**BPE, "sizes": [300], "reference_ratio": 3.0}], "sample_sequences": 10_000}
    folder = sweep(tmp_path / "all", corpus, {**changes, "frequency_search": None})
    texts = [text for path in corpus.parent.glob("*.parquet") for text in pl.read_parquet(path)["text"]]
    lines = [line for text in texts for line in text.split("\n") if line]
    expected = f"{len(lines):,} sequences with {sum(len(line.split()) for line in lines):,} space-separated words"
    assert expected in (folder / "selection.md").read_text(encoding="utf-8")


def test_the_search_is_told(swept: Path) -> None:
    probes = list(csv.DictReader(io.StringIO((swept / "frequency_search.csv").read_text())))
    largest = read_manifest(swept / "manifest.json").measures["largest_size_of_rule"]
    assert [int(row["size"]) for row in probes if row["largest"] == "1"] == ([] if largest is None else [largest])
    assert all((int(row["frequency_at_95_percent"]) >= 5) == (row["satisfies"] == "1") for row in probes)
    assert "Largest vocabulary of frequent entries" in (swept / "selection.md").read_text()


def test_two_processes_and_a_second_run_give_the_same_bytes(swept: Path, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "published.csv").write_text(PUBLISHED)
    again = sweep(tmp_path / "out", corpus, published=tmp_path / "published.csv", threads=2)
    manifest = read_manifest(again / "manifest.json")
    manifest.verify()
    assert (again / "manifest.json").read_bytes() == (swept / "manifest.json").read_bytes()
    assert len(manifest.files()) == len([path for path in again.rglob("*") if path.is_file()]) - 2
    assert not (again / ".parts").exists()


@pytest.mark.parametrize("killed_in", ["measuring", "drawing"])
def test_a_killed_sweep_keeps_its_tokenizers(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_in: str
) -> None:
    from hatchery.tokenization.selection import candidates
    from hatchery.tokenization.selection import sweep as sweeping
    from hatchery.views import tokenizer_sweep

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        place = (sweeping, "_measure") if killed_in == "measuring" else (tokenizer_sweep, "draw_tokenizer_sweep")
        patched.setattr(*place, killed)
        with pytest.raises(KeyboardInterrupt):
            sweep(tmp_path, corpus)
    assert not (tmp_path / "manifest.json").exists()

    def trained_again(*_: Any) -> dict[str, Any]:
        raise AssertionError("a finished tokenizer was trained again")

    monkeypatch.setattr(candidates, "train_part", trained_again)
    assert rows_of(sweep(tmp_path, corpus))


def test_a_reference_tokenizer_is_measured_and_decides(
    corpus: Path, tokenizer_manifests: dict[str, Path], tmp_path: Path
) -> None:
    register_source("ref", tokenizer_manifests["byte_bpe"].parent / "tokenizer.json", tmp_path / "ref.json")
    types = [{**BPE, "sizes": [300, 400], "definition": {**BPE["definition"], "individual_digits": False}}]  # type: ignore[dict-item]
    changes = {"types": types, "frequency_search": None}
    rows = rows_of(sweep(tmp_path / "out", corpus, changes, reference={"bpe": tmp_path / "ref.json"}))
    # The reference has 400 entries and the same kind, so it nearly equals the candidate of 400.
    assert [row["selected_within_type"] for row in rows] == ["0", "1", "0"]
    assert rows[2]["vocabulary_size"] == "400"
    assert float(rows[2]["word_split_ratio"]) == pytest.approx(float(rows[1]["word_split_ratio"]), abs=0.02)


def test_unigram_is_trained_in_every_size(corpus: Path, tmp_path: Path) -> None:
    definition = {"kind": "unigram", "special_tokens": "roberta", "pre_tokenizer": "metaspace", "min_frequency": 0}
    types = [{"name": "unigram", "definition": definition, "sizes": [120, 160], "reference_ratio": 2.0}]
    search = {"type": "unigram", "lowest": 120, "highest": 160, "step": 20, "least_frequency": 5}
    folder = sweep(tmp_path, corpus, {"types": types, "frequency_search": search})
    rows = rows_of(folder)
    assert [row["vocabulary_size"] for row in rows] == ["120", "160", ""]
    assert float(rows[0]["word_split_ratio"]) > float(rows[1]["word_split_ratio"])
    assert {path.name for path in (folder / "tokenizers").iterdir()} == {"unigram_120.json", "unigram_160.json"}
    assert (folder / "tokenizer_config.json").is_file()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"types": [{**BPE, "sizes": [400, 300]}]},
            "types.0.sizes: got [400, 300], expected different sizes in ascending order",
        ),
        ({"types": [BPE, BPE]}, "types: got the names bpe, bpe, expected each name only once"),
        ({"types": [BPE]}, "types.bpe: several sizes without a reference"),
        (
            {"frequency_search": {"type": "x", "lowest": 300, "highest": 400}},
            "frequency_search.type: got the tokenizer type 'x'",
        ),
        (
            {"frequency_search": {"type": "bpe", "lowest": 400, "highest": 300}},
            "frequency_search.lowest: got 400, expected at most highest (300)",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    changes: dict[str, Any], message: str, corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        sweep(tmp_path, corpus, changes)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "manifest.json").exists()


def test_a_size_beyond_the_corpus_is_refused(small: SimpleNamespace, tmp_path: Path) -> None:
    corpus = small.write_corpus(tmp_path / "corpus", {"train": ["a b c\nab ab"]})
    with pytest.raises(TokenizationError, match=r"too large|supports") as caught:
        sweep(tmp_path / "out", corpus, {"frequency_search": None})
    assert "\n" not in str(caught.value)


CONFIG = Path(__file__).parents[3] / "config"
SWEEPS = sorted(path.stem for path in (CONFIG / "tokenizer_sweeps").glob("*.yaml"))


@pytest.mark.parametrize("sweep", SWEEPS)
def test_the_stage_accepts_every_sweep(sweep: str) -> None:
    settings = stage_body(json.loads(Jobs(Project(CONFIG)).settings("select_tokenizer", sweep=sweep)))
    assert build(SweepSettings, settings).name == sweep


@pytest.mark.parametrize("sweep", SWEEPS)
def test_published_names_are_in_the_published_table(sweep: str) -> None:
    block = validated(FILES["tokenizer_sweep"], read_yaml(CONFIG / "tokenizer_sweeps" / f"{sweep}.yaml"), sweep)
    named = {entry.published_as for entry in block.types.values()} - {None}
    assert (block.published is None) == (not named)
    if named:
        table = read_published_selection(CONFIG / "published" / "tokenizers" / f"{block.published}.csv")
        assert named <= {name for name, _ in table}


def test_every_printed_tokenizer_is_tried_by_a_sweep() -> None:
    table = read_published_selection(CONFIG / "published" / "tokenizers" / "tokenizer_selection.csv")
    sweeps = [read_yaml(CONFIG / "tokenizer_sweeps" / f"{sweep}.yaml") for sweep in SWEEPS]
    types = [entry for sweep in sweeps for entry in sweep["types"].values() if "published_as" in entry]
    tried = {(entry["published_as"], str(size)) for entry in types for size in entry["sizes"]}
    assert {key for key in table if key[1] != "pretrained"} <= tried


def test_the_tokenizer_of_any_words_is_the_one_that_its_sweep_would_choose_with_the_printed_ratio() -> None:
    """Reduced vocabulary, Appendix C.2: 29,000 entries, ratio 1.53, ESMS 0.2339."""
    project, name = Project(CONFIG), "reduced_vocabulary_unconstrained"
    sweep, tokenizer = project.tokenizer_sweep(name), project.tokenizer(name)
    (entry,) = sweep.types.values()
    assert (entry.reference_ratio, tokenizer.vocabulary_size) == (1.53, 29_000)
    printed = read_published_selection(CONFIG / "published" / "tokenizers" / f"{sweep.published}.csv")
    row = printed[str(entry.published_as), "29000"]
    assert (row["word_split_ratio"], row["esms"], row["final_choice"]) == ("1.53", "0.2339", "1")
    own = read_yaml(CONFIG / "tokenizers" / f"{name}.yaml")
    assert {**plain(entry.definition), "vocabulary_size": 29_000, "corpus": sweep.corpus}.items() >= {
        key: value for key, value in own.items() if key != "description"
    }.items()
    study = analyses_of(project, "reduced_vocabulary")["tokenizers_unconstrained"]
    assert study.sweep == name


def test_the_references_of_table_6_can_be_measured_instead_of_taken_from_print(tmp_path: Path) -> None:
    """The rows "pre-trained": the tokenizer of an existing entry of `data` can replace each printed ratio."""
    shutil.copytree(CONFIG, tmp_path / "config")
    path = tmp_path / "config/tokenizer_sweeps/reduced_vocabulary.yaml"
    references = {
        "byte_bpe": ("1.32", "roberta_base_tokenizer"),
        "wordpiece": ("1.17", "bert_base_uncased_tokenizer"),
        "unigram": ("1.29", "t5_base_tokenizer"),
    }
    text = path.read_text(encoding="utf-8")
    for ratio, data in references.values():
        assert text.count(f"reference_ratio: {ratio}") == 1
        text = text.replace(f"reference_ratio: {ratio}", f"reference: {data}")
    path.write_text(text, encoding="utf-8")
    project = Project(tmp_path / "config")
    call = Jobs(project).call("select_tokenizer", sweep="reduced_vocabulary")
    expected = {name: f"resources/sources/{data}.json" for name, (_, data) in references.items()}
    assert call.arguments["reference"] == expected
    assert all(kind.reference_ratio is None for kind in project.tokenizer_sweep("reduced_vocabulary").types.values())


ratios_by_size = st.dictionaries(st.integers(300, 40000), st.floats(1.0, 3.0), min_size=1, max_size=8)


def test_the_rule_chooses_from_the_published_table_what_the_paper_chose(repository: Path) -> None:
    published = read_published_selection(repository / "config" / "published" / "tokenizers" / "tokenizer_selection.csv")
    types = ("BPE", "WordPiece", "SentencePiece")
    by_size, references = {}, {}
    for (name, size), printed in published.items():
        if name not in types:
            continue
        measures = Measures(float(printed["word_split_ratio"]), esms_published_code=float(printed["esms"]))
        if size == PRETRAINED:
            references[name] = measures
        else:
            by_size[name, int(size)] = measures
    settings = SweepSettings(
        name="table 6",
        types=tuple(
            CandidateType(
                name=name,
                definition={"kind": "byte_bpe", "min_frequency": 0},
                sizes=tuple(size for of, size in by_size if of == name),
                published_as=name,
            )
            for name in types
        ),
    )
    rows = chosen_rows(settings, by_size, references, dict.fromkeys(types, 30000))
    assert len(rows) == 12
    for row in rows:
        printed = published[row.type, row.size_name]
        assert str(int(row.selected_within_type)) == printed["selected_within_type"], row
        assert str(int(row.final_choice)) == printed["final_choice"], row


def test_a_tie_goes_to_the_smaller_size_after_rounding_only() -> None:
    ratios = {17000: 1.166, 16000: 1.174}
    assert closest_size(ratios, 1.168, decimals=2) == 16000
    assert closest_size(ratios, 1.168, decimals=None) == 17000
    assert closest_size({18000: 1.34, 20000: 1.30}, 1.32, decimals=2) == 18000


def test_equal_scores_go_to_the_first_type() -> None:
    assert best_type({"a": 0.1, "b": 0.3, "c": 0.3}) == "b"


@given(ratios_by_size, st.floats(1.0, 3.0))
def test_no_other_size_is_closer(ratios: dict[int, float], reference: float) -> None:
    chosen = closest_size(ratios, reference, None)
    assert all(abs(ratios[chosen] - reference) <= abs(ratio - reference) + 1e-9 for ratio in ratios.values())
    assert chosen == closest_size(dict(reversed(list(ratios.items()))), reference, None)

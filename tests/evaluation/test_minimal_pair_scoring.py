"""The stage that scores minimal pairs: its files and its checks."""

import json
import os
from dataclasses import replace

import forked
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from finetuning_cases import results
from stage_command import stage_command

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation import runtime
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.minimal_pairs.items import minimal_pair
from hatchery.evaluation.minimal_pairs.measurements import TENSOR_FLOAT, minimal_pair_rows
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel
from hatchery.evaluation.minimal_pairs.temperatures import GRID, best_temperature
from hatchery.evaluation.runtime import COMPILED_FROM_TOKENS, compile_where_it_pays_, prepare_device
from hatchery.evaluation.settings import ScoringSettings
from hatchery.evaluation.stages.score_minimal_pairs import score_minimal_pairs
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import build_language_model, initialise_
from hatchery.modeling.store import save_model
from hatchery.runner import run_stage
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.training import compilation

SETTINGS = {
    "stage": "score_minimal_pairs",
    "stage_version": 1,
    "suite": "mine",
    "format": "blimp",
    "files": "*.jsonl",
    "pairs_per_paradigm": None,
    "seed": 0,
    "scoring": "pll",
}
RUNTIME = {"tokens_per_batch": 64, "device": "cpu"}
PAIRS = [
    {"sentence_good": "The dogs sleep .", "sentence_bad": "The dogs sleeps .", "UID": "agreement", "pairID": "0"},
    {"sentence_good": "A cat chases dogs .", "sentence_bad": "A cat chase dogs .", "UID": "agreement", "pairID": "1"},
    {"sentence_good": "She likes cats .", "sentence_bad": "She likes cats .", "UID": "agreement", "pairID": "2"},
    {"sentence_good": "Sleep , [MASK] .", "sentence_bad": "Sleep , [SEP] .", "UID": "odd", "pairID": "0"},
]


def score(model, source, output, settings=SETTINGS, runtime=RUNTIME):
    run_stage(
        score_minimal_pairs, settings, output / "manifest.json", runtime=runtime, model=model, source=source.manifest
    )
    return {name: (output / name).read_bytes() for name in ("scores.parquet", "accuracy.csv", "manifest.json")}


def rows_of(folder):
    return {(row["paradigm"], row["pair_id"]): row for row in pq.read_table(folder / "scores.parquet").to_pylist()}


def test_a_suite_of_several_candidates_is_scored_like_one_of_pairs(model_manifest, make_source, tmp_path):
    lines = [
        "context,right,wrong,worse",
        "The old dogs,sleep .,sleeps .,cat .",
        "A cat,chases .,chase .,the .",
    ]
    source = make_source({"a.csv": "".join(f"{line}\n" for line in lines)})
    columns = {"good": "right", "bad": ["wrong", "worse"], "prefix": "context"}
    settings = {**SETTINGS, "format": "rows", "files": "*.csv", "columns": columns}
    score(model_manifest, source, tmp_path, settings)
    rows = pq.read_table(tmp_path / "scores.parquet").to_pylist()
    assert [len(row["scores"]) for row in rows] == [len(row["tokens"]) for row in rows] == [3, 3]
    assert all((row["outcome"] == "correct") == (row["scores"][0] > max(row["scores"][1:])) for row in rows)
    made = read_manifest(tmp_path / "manifest.json")
    found = minimal_pair_rows(Evaluated(made, made, "mine"))
    assert [row["blind_guess"] for row in found] == pytest.approx([100 / 3] * len(found))
    assert {row["settings"] for row in found} == {""}
    quick = replace(made, settings={**made.settings, "precision": "tf32"})
    told = {row["settings"] for row in minimal_pair_rows(Evaluated(quick, quick, "mine"))}
    assert told == {TENSOR_FLOAT}, "the page shows it"
    told = {"precision": "screened"}, {"rules": "BabyLM 2026", "tie_rule": "shared"}
    noted = replace(made, settings=made.settings | told[0], measures=made.measures | told[1])
    assert {row["settings"] for row in minimal_pair_rows(Evaluated(noted, noted, "mine"))} == {
        "BabyLM 2026; ties shared; clear decisions in bf16, all others in fp32"
    }


def test_the_best_temperature_is_told_beside_temperature_1_under_a_name_of_its_own(
    model_manifest, make_source, json_lines, tmp_path
):
    source = make_source({"pairs.jsonl": json_lines(PAIRS)})
    score(model_manifest, source, tmp_path / "plain")
    score(model_manifest, source, tmp_path / "out", {**SETTINGS, "temperatures": True})
    # The reported accuracies do not change.
    files = (tmp_path / name / "accuracy.csv" for name in ("out", "plain"))
    assert len({file.read_bytes() for file in files}) == 1
    good, plain = (pq.read_table(tmp_path / name / "scores.parquet")["score_good"] for name in ("out", "plain"))
    assert good.to_pylist() == pytest.approx(plain.to_pylist(), abs=1e-4)
    shares = [
        (float(row["temperature"]), float(row["accuracy"])) for row in results(tmp_path / "out", "temperatures.csv")
    ]
    made = read_manifest(tmp_path / "out" / "manifest.json")
    best = max(share for _, share in shares)
    assert len(shares) == 61 and made.measures["best_temperature"] == next(t for t, share in shares if share == best)
    found = {(row["task"], row["metric"]): row["value"] for row in minimal_pair_rows(Evaluated(made, made, "mine"))}
    assert found["paradigm_average", "best_temperature_accuracy_percent"] == pytest.approx(100 * best)
    at_one = dict(shares)[1.0]
    assert found["paradigm_average", "accuracy_percent"] == pytest.approx(100 * at_one)


@pytest.mark.parametrize(("form", "averages"), [("blimp", (2 / 3, 1 / 3)), ("entity_tracking", (3 / 4, 1 / 4))])
def test_the_first_of_the_best_temperatures_is_that_of_the_averages_of_its_suite(form, averages):
    """Paradigms 0 and 1 are one phenomenon, paradigm 2 another. 0 and 2 are right at 0.5 and 2.0, paradigm 1 at 1.0."""
    items = [minimal_pair(str(n), "ab"[n // 2], "0", "good", "bad") for n in range(3)]
    scores = np.zeros((3, 2, len(GRID)))
    scores[:, 1] = 1.0
    for temperature, right in ((0.5, (0, 2)), (2.0, (0, 2)), (1.0, (1,))):
        scores[list(right), 0, GRID.index(temperature)] = 2.0
    suite = ScoringSettings(suite="mine", format=form, edition=2023 if form == "blimp" else 2026)
    best = best_temperature(items, scores, suite)
    assert best.temperature == 0.5
    assert (dict(best.by_temperature)[0.5], dict(best.by_temperature)[1.0]) == pytest.approx(averages)
    assert next(row.accuracy for row in best.table if row.level == "suite") == pytest.approx(averages[0])


def test_means_of_tokens_decide_at_every_temperature(model_manifest, make_source, json_lines, tmp_path):
    """The bad texts are shorter, so that any model gives them higher sums."""
    shorter = ["A .", "The .", "Cat .", "Sleeps .", "Old .", "Likes .", "House .", "Near .", "."]
    pairs = [
        {
            "sentence_good": f"The old dogs near the house {place} sleep .",
            "sentence_bad": text,
            "UID": "a",
            "pairID": "0",
        }
        for place, text in enumerate(shorter)
    ]
    source = make_source({"pairs.jsonl": json_lines([{**pair, "pairID": str(n)} for n, pair in enumerate(pairs)])})
    found = {}
    for per_token in (False, True):
        settings = {**SETTINGS, "edition": 2026, "temperatures": True, "per_token": per_token}
        score(model_manifest, source, tmp_path / str(per_token), settings)
        (row,) = [row for row in results(tmp_path / str(per_token), "accuracy.csv") if row["level"] == "paradigm"]
        shares = {row["temperature"]: row["accuracy"] for row in results(tmp_path / str(per_token), "temperatures.csv")}
        found[per_token] = float(row["accuracy"]), float(shares["1.0"])
    assert found[False] == (0.0, 0.0)
    assert found[True][0] == found[True][1] > 0
    sums, means = (pq.read_table(tmp_path / name / "scores.parquet").to_pydict() for name in ("False", "True"))
    by_hand = [value / tokens for value, tokens in zip(sums["score_bad"], sums["tokens_bad"], strict=True)]
    assert means["score_bad"] == pytest.approx(by_hand) and sums["tokens_bad"][-1] == 1


def test_a_model_that_translates_is_refused(model_manifest, make_source, json_lines, tmp_path):
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    tokenizer = model_manifest.parent / "tokenizer.json"
    vocabulary = load_tokenizer(tokenizer).vocabulary_size
    model = build_language_model(model_config({"family": "encoder_decoder", **sizes, "vocab_size": vocabulary}))
    initialise_(model, seed=0)
    copy = tmp_path / "model"
    with stage_run(copy / "manifest.json", {"stage": "pretrain", "stage_version": 1}) as run:
        (copy / "tokenizer.json").write_bytes(tokenizer.read_bytes())
        for path in [*save_model(copy, model), copy / "tokenizer.json"]:
            run.add_output(path)
    source = make_source({"pairs.jsonl": json_lines(PAIRS)})
    with pytest.raises(EvaluationError, match="this model translates, expected a masked, causal or hybrid model"):
        score(copy / "manifest.json", source, tmp_path / "out")


def test_a_suite_is_scored_into_two_tables_that_agree(model_manifest, make_source, json_lines, tmp_path):
    source = make_source({"pairs.jsonl": json_lines(PAIRS)})
    score(model_manifest, source, tmp_path / "out")
    scores = rows_of(tmp_path / "out")
    assert len(scores) == 4 and scores["agreement", "2"]["outcome"] == "tie"
    for (paradigm, pair_id), row in scores.items():
        if (paradigm, pair_id) != ("agreement", "2"):
            assert row["outcome"] == ("correct" if row["score_good"] > row["score_bad"] else "wrong")
    table = {(row["level"], row["name"]): row for row in results(tmp_path / "out", "accuracy.csv")}
    assert set(table) == {
        *((level, name) for level in ("paradigm", "phenomenon") for name in ("agreement", "odd")),
        ("suite", "mine"),
        ("suite", "mine_by_phenomenon"),
    }
    row = table["paradigm", "agreement"]
    correct = sum(r["outcome"] == "correct" for (paradigm, _), r in scores.items() if paradigm == "agreement")
    assert (row["pairs"], row["correct"], row["ties"]) == ("3", str(correct), "1")
    assert float(row["accuracy"]) == correct / 3 and float(row["accuracy_ties_correct"]) == (correct + 1) / 3
    manifest = read_manifest(tmp_path / "out" / "manifest.json")
    manifest.verify()
    named = {"pairs": 4, "ties": 1, "identical_pairs": 1, "scoring": "pll", "model_kind": "hatchery"}
    assert named.items() <= manifest.measures.items() and manifest.measures["tie_rule"].startswith("strict")
    assert read_manifest(model_manifest).digest in manifest.inputs.values()
    # Each token of each distinct sentence is masked in a row of its own. Special tokens in a text are plain text.
    tokenizer = load_tokenizer(model_manifest.parent / "tokenizer.json")
    plain = sorted({pair[key] for pair in PAIRS[:3] for key in ("sentence_good", "sentence_bad")})
    lengths = dict(zip(plain, map(len, tokenizer.encode_sentences(plain)), strict=True))
    for pair in PAIRS[:3]:
        row = scores[pair["UID"], pair["pairID"]]
        assert row["tokens_good"] == lengths[pair["sentence_good"]]
        assert row["tokens_bad"] == lengths[pair["sentence_bad"]]
    odd = scores["odd", "0"]
    assert manifest.measures["masked_rows"] == sum(lengths.values()) + odd["tokens_good"] + odd["tokens_bad"]


def test_the_same_run_twice_gives_the_same_bytes(model_manifest, make_source, json_lines, tmp_path):
    source = make_source({"pairs.jsonl": json_lines(PAIRS)})
    assert score(model_manifest, source, tmp_path / "one") == score(model_manifest, source, tmp_path / "two")


def test_compiled_layers_give_the_same_scores(make_model_manifest, make_source, json_lines, tmp_path, compiled_graphs):
    model, source, found = make_model_manifest(layers=1), make_source({"pairs.jsonl": json_lines(PAIRS)}), []
    for choice in ("auto", "layers"):
        found.append(score(model, source, tmp_path / choice, runtime={"device": "cpu", "compile": choice}))
        made = json.loads((tmp_path / choice / "provenance.json").read_text())["compile"]
        assert made == ("layers" if choice == "layers" else "off")
    assert found[0] == found[1] and compiled_graphs


@pytest.mark.parametrize(
    ("tokens", "device", "compiles"),
    [(COMPILED_FROM_TOKENS, "cuda", True), (COMPILED_FROM_TOKENS - 1, "cuda", False), (1 << 40, "cpu", False)],
)
def test_auto_compiles_where_there_are_many_tokens_on_a_gpu_that_can(monkeypatch, tokens, device, compiles):
    monkeypatch.setattr(compilation, "_can_compile_for_gpu", lambda: True)
    compiled = []
    monkeypatch.setattr(runtime, "compile_layers_", lambda network, **options: compiled.append(network))
    model = object.__new__(HatcheryModel)
    model.device, model.network = torch.device(device), None
    compile_where_it_pays_(model, "auto", tokens)
    assert bool(compiled) is compiles


def test_neither_batch_size_nor_file_order_changes_a_decision(model_manifest, make_source, json_lines, tmp_path):
    score(model_manifest, make_source({"pairs.jsonl": json_lines(PAIRS)}), tmp_path / "one")
    reordered = make_source({"pairs.jsonl": json_lines(PAIRS[::-1])})
    score(model_manifest, reordered, tmp_path / "two", runtime={"tokens_per_batch": 1, "device": "cpu"})
    one, two = rows_of(tmp_path / "one"), rows_of(tmp_path / "two")
    assert one.keys() == two.keys()
    for key, row in one.items():
        assert row["outcome"] == two[key]["outcome"]
        assert row["score_good"] == pytest.approx(two[key]["score_good"], abs=1e-4)


def test_whole_files_are_units_with_prediction_files_of_babylm(model_manifest, make_source, json_lines, tmp_path):
    source = make_source(
        {f"filter-data/blimp_filtered/{name}.json": json_lines(PAIRS) for name in ("binding", "ellipsis")}
    )
    suite = {**SETTINGS, "files": "filter-data/blimp_filtered/*.json", "unit": "file", "leading_blank": True}
    score(model_manifest, source, tmp_path / "out", {**suite, "expected": {"paradigms": 2, "pairs": None}})
    scores = pq.read_table(tmp_path / "out" / "scores.parquet").to_pylist()
    assert [(row["paradigm"], row["phenomenon"], row["pair_id"]) for row in scores] == [
        (name, name, str(line)) for name in ("binding", "ellipsis") for line in (1, 2, 3, 4)
    ]
    lines = (tmp_path / "out" / "predictions" / "binding" / "predictions.txt").read_text().splitlines()
    assert lines[0] == "index\tprediction" and lines[3] == "2\tShe likes cats ."
    for row, pair, line in zip(scores[:4], PAIRS, lines[1:], strict=True):
        preferred = pair["sentence_bad" if row["outcome"] == "wrong" else "sentence_good"]
        assert line == f"{int(row['pair_id']) - 1}\t{preferred}"
    read_manifest(tmp_path / "out" / "manifest.json").verify()
    score(model_manifest, source, tmp_path / "sample", {**suite, "pairs_per_paradigm": 2})
    assert not (tmp_path / "sample" / "predictions").exists()
    with pytest.raises(EvaluationError, match=r"suite mine: got 2 paradigms or files with 8 pairs, expected 12"):
        score(model_manifest, source, tmp_path / "out", {**suite, "expected": {"paradigms": 12}})


def test_a_masked_model_is_refused_where_a_causal_one_is_needed(model_manifest, make_source, json_lines, tmp_path):
    source = make_source({"pairs.jsonl": json_lines(PAIRS)})
    with pytest.raises(ConfigError, match=r"'left_to_right' needs a causal language model, but this model is masked"):
        score(model_manifest, source, tmp_path / "out", {**SETTINGS, "scoring": "left_to_right"})
    score(model_manifest, source, tmp_path / "words", {**SETTINGS, "scoring": "pll_within_word_l2r"})
    score(model_manifest, source, tmp_path / "auto", {**SETTINGS, "scoring": "auto"})
    score(model_manifest, source, tmp_path / "pll")
    assert rows_of(tmp_path / "auto") == rows_of(tmp_path / "pll") != rows_of(tmp_path / "words")


def test_a_wrong_file_leaves_no_manifest(model_manifest, make_source, json_lines, tmp_path):
    score(model_manifest, make_source({"pairs.jsonl": json_lines(PAIRS)}), tmp_path / "out")
    with pytest.raises(EvaluationError, match=r"pairs.jsonl:1: the field 'sentence_bad' is missing"):
        score(model_manifest, make_source({"pairs.jsonl": '{"sentence_good": "a"}'}), tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_the_command_scores_and_names_a_mistake_in_one_line(
    repository, model_manifest, make_source, json_lines, tmp_path
):
    source = make_source({"pairs.jsonl": json_lines(PAIRS)})

    def run(settings):
        given = {"runtime": RUNTIME, "model": model_manifest, "source": source.manifest}
        command = stage_command("score_minimal_pairs", settings, tmp_path / "out" / "manifest.json", **given)
        return forked.run(command, cwd=repository, capture_output=True, text=True)

    assert run(SETTINGS).returncode == 0
    assert (tmp_path / "out" / "accuracy.csv").exists()
    wrong = run({**SETTINGS, "files": "*.xml"})
    assert wrong.returncode == 1
    (line,) = wrong.stderr.splitlines()
    assert line.startswith("error: ") and "no file matches '*.xml'" in line


def test_a_suite_s_precision_decides_how_products_are_computed(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for precision, products in (("tf32", "high"), ("fp32", "highest")):
        prepare_device("auto", precision=precision)
        assert torch.get_float32_matmul_precision() == products


def test_a_gpu_computes_deterministically_and_threads_are_those_of_the_settings(monkeypatch):
    threads, before = [], torch.get_deterministic_debug_mode()
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    # The first call makes monkeypatch remove the variable at the end, also if there is none now.
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    try:
        assert prepare_device("cpu", threads=3) == torch.device("cpu") and threads == [3]
        assert prepare_device("auto") == prepare_device("cuda") == torch.device("cuda") and threads == [3]
        # The mode 1 warns of operations without a deterministic algorithm.
        assert (torch.get_deterministic_debug_mode(), os.environ["CUBLAS_WORKSPACE_CONFIG"]) == (1, ":4096:8")
        assert not torch.utils.deterministic.fill_uninitialized_memory and not torch.backends.cudnn.allow_tf32
    finally:
        torch.set_deterministic_debug_mode(before)


def test_what_people_prefer_is_correlated_with_what_a_model_prefers(model_manifest, make_source, json_lines, tmp_path):
    texts = [(pair["sentence_good"], pair["sentence_bad"]) for pair in PAIRS[:2]] + [("She sleeps .", "The cats .")]
    rows = [{"sentences": "\t".join(pair), "ratio": share} for pair, share in zip(texts, (0.1, 0.5, 0.9), strict=True)]
    source = make_source({"wug_past.jsonl": json_lines(rows)})
    settings = {**SETTINGS, "format": "wug", "edition": 2025, "official": True}
    run_stage(
        score_minimal_pairs,
        settings,
        tmp_path / "manifest.json",
        runtime=RUNTIME,
        model=model_manifest,
        source=source.manifest,
    )
    made = read_manifest(tmp_path / "manifest.json")
    scores = pq.read_table(tmp_path / "scores.parquet").to_pylist()
    order = np.argsort([row["score_good"] - row["score_bad"] for row in scores]).argsort()
    [row] = minimal_pair_rows(Evaluated(made, made, "wug"))
    assert row["value"] == pytest.approx(100 * np.corrcoef(order, [0, 1, 2])[0, 1])
    assert (row["metric"], row["items"], row["settings"]) == (
        "spearman_percent",
        3,
        "BabyLM 2025 (babylm-eval 45fe2c1), slips included",
    )
    assert (row["task"], row["level"], row["blind_guess"]) == ("wug_past", "phenomenon", 0.0)
    assert {path.name for path in tmp_path.iterdir()} >= {"correlation.csv"}
    assert not (tmp_path / "accuracy.csv").exists() and not (tmp_path / "predictions.json").exists()

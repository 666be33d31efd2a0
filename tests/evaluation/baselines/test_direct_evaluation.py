"""`hatchery.evaluate` and `hatchery.surprisals` give the stages' numbers exactly, for every kind of model."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
import transformers
from baseline_cases import build, staged
from finetuning_cases import PROTOCOL, TASK, finetuned, sentences

import hatchery
from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.direct_evaluation import _suite_of
from hatchery.evaluation.direct.rows import COLUMNS
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.kinds import evaluations
from hatchery.evaluation.opening import architecture_in, open_model
from hatchery.evaluation.pretrained import OurModel
from hatchery.evaluation.scores import csv_of
from hatchery.evaluation.stages.measure_reading import measure_reading
from hatchery.evaluation.stages.measure_reading_times import measure_reading_times
from hatchery.evaluation.stages.measure_surprisal import measure_surprisal
from hatchery.evaluation.stages.score_minimal_pairs import score_minimal_pairs
from hatchery.evaluation.tasks.settings import FinetuneSettings
from hatchery.export.model_folder import write_model_folder
from hatchery.typed import build as build_settings

PAIRS = [
    ("The old dogs sleep .", "The old dogs sleeps .", "agreement"),
    ("A cat chases the dogs .", "A cat chase the dogs .", "agreement"),
    ("She likes old houses .", "She old likes houses .", "order"),
    ("The dogs near the house sleep .", "The dogs near sleep the house .", "order"),
]
TEXTS = ["The old dogs sleep .", "She likes a cat near the house ."]
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "babylm_2026"
MODELS = ("masked", "causal", "hybrid", "bert", "gpt2", "t5")


def require_same(found: Any, kind: str, manifest: Manifest, model: Path) -> None:
    """Check that facts, rows, tables and texts equal those of the job."""
    assert json.loads(json.dumps(found.facts)) == manifest.measures
    rows = evaluations()[kind].rows(Evaluated(manifest, read_manifest(model), found.name))
    columns = ["task", "level", "metric", "value", "items"]
    assert found.rows.select(columns).rows() == [tuple(row.get(column) for column in columns) for row in rows]
    written = {path.path.relative_to(manifest.folder).as_posix(): path.path for path in manifest.outputs}
    assert sorted([*found.tables, *found.texts]) == sorted(written)
    for name, table in found.tables.items():
        if name.endswith(".csv"):
            assert csv_of(table) == written[name].read_text()
        else:
            assert table.to_dicts() == pl.read_parquet(written[name]).to_dicts()
    assert all(written[name].read_text() == text for name, text in found.texts.items())


@pytest.mark.parametrize(
    ("name", "edition"), [*((name, 2023) for name in MODELS), ("hybrid", 2026), ("bert", 2026), ("gpt2", 2026)]
)
def test_pairs_have_the_numbers_of_the_stage(name, edition, made, make_source, json_lines, tmp_path):
    lines = [{"sentence_good": good, "sentence_bad": bad, "UID": uid} for good, bad, uid in PAIRS]
    source, model = make_source({"pairs.jsonl": json_lines(lines)}), made(name)
    settings = {"suite": "mine", "pairs_per_paradigm": 1, "edition": edition, "seed": 0}
    expected = staged(score_minimal_pairs, tmp_path / "out", model, settings, source=source.manifest)
    (tmp_path / "mine.yaml").write_text(f"data: x\nedition: {edition}\n")
    found = hatchery.evaluate(model.parent, tmp_path / "mine.yaml", source.root, device="cpu", pairs_per_paradigm=1)
    require_same(found, "minimal_pairs", expected, model)
    assert found.rows.columns == list(COLUMNS)
    assert "mine" in str(found) and "2 items, blind guess 50.00" in str(found)


def test_pairs_in_memory_have_the_scores_of_the_same_pairs_in_a_file(made, make_source, json_lines):
    lines = [{"sentence_good": good, "sentence_bad": bad, "UID": uid} for good, bad, uid in PAIRS]
    source = make_source({"pairs.jsonl": json_lines(lines)})
    scores = ["score_good", "score_bad", "outcome"]
    expected = hatchery.evaluate(made("masked"), "blimp", source.root, expected=None)
    frame = pl.DataFrame(lines)
    renamed = frame.rename({"sentence_good": "a", "sentence_bad": "b"})
    for pairs, settings in (
        (frame, {}),
        (lines, {}),
        ([pair[:2] for pair in PAIRS], {}),
        (renamed, {"columns": {"good": "a", "bad": "b"}}),
    ):
        found = hatchery.evaluate(made("masked"), pairs, **settings)
        assert found.tables["scores.parquet"].select(scores).equals(expected.tables["scores.parquet"].select(scores))
    assert set(hatchery.evaluate(made("masked"), frame).rows["task"]) >= {"agreement", "order"}
    three = hatchery.evaluate(made("causal"), [("The dog .", "A dog .", "Dog the .")])
    assert three.summary["blind_guess"].to_list()[0] == pytest.approx(100 / 3)


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_folder_and_a_folder_of_the_library_have_the_numbers_of_ours(name, made, stored, tmp_path):
    pairs = [pair[:2] for pair in PAIRS]
    expected = hatchery.evaluate(made(name), pairs).tables["scores.parquet"]
    folder = stored(name) if name not in ("masked", "causal", "hybrid") else tmp_path / "exported"
    if folder.name == "exported":
        folder.mkdir()
        opened = open_model(made(name))
        assert isinstance(opened, OurModel)
        write_model_folder(folder, opened.network, opened.use.kinds, made(name).with_name("tokenizer.json"))
        loaded = open_model(folder)
        assert isinstance(loaded, OurModel) and loaded.use == opened.use
        assert loaded.network.causal == (name == "causal")
    assert hatchery.evaluate(folder, pairs).tables["scores.parquet"].equals(expected)
    if name != "t5":
        assert hatchery.surprisals(folder, TEXTS).equals(hatchery.surprisals(made(name), TEXTS))
        assert hatchery.model(folder).scores(TEXTS).equals(hatchery.model(made(name)).scores(TEXTS))


def test_a_bound_of_a_model_that_saw_one_share_of_hidden_tokens_says_so(made):
    pairs = [pair[:2] for pair in PAIRS]
    found = hatchery.evaluate(made("hybrid"), pairs, scoring="diffusion")
    reason = (
        "the bound is loose: 'diffusion' masks 0 to 100 % of the tokens, but the model was trained with 15 % masked"
    )
    assert set(found.rows["settings"]) == {reason}
    assert set(hatchery.evaluate(made("hybrid"), pairs, scoring="pll").rows["settings"]) == {""}


@pytest.mark.parametrize(("name", "kind"), [("masked", "MaskedLM"), ("causal", "CausalLM"), ("hybrid", "MaskedLM")])
def test_an_exported_model_that_the_library_loaded_has_the_numbers_of_its_folder(name, kind, made, tmp_path):
    opened = open_model(made(name))
    write_model_folder(tmp_path, opened.network, opened.use.kinds, made(name).with_name("tokenizer.json"))
    network = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(tmp_path, trust_remote_code=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path, trust_remote_code=True)
    pairs, scores = [pair[:2] for pair in PAIRS], ["score_good", "score_bad"]
    found, expected = (
        hatchery.evaluate(model, pairs, **named).tables["scores.parquet"].select(scores).to_numpy()
        for model, named in ((network, {"tokenizer": tokenizer}), (tmp_path, {}))
    )
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_a_module_in_memory_has_the_numbers_of_its_folder_and_stays_as_it_was(name, made):
    tokenizer, network = build(name)
    network.train()
    tokenizer.backend_tokenizer.enable_truncation(2)
    torch.set_float32_matmul_precision("high")
    state = torch.random.get_rng_state()
    pairs = [pair[:2] for pair in PAIRS]
    found = hatchery.evaluate(network, pairs, tokenizer=tokenizer)
    assert found.tables["scores.parquet"].equals(hatchery.evaluate(made(name), pairs).tables["scores.parquet"])
    assert all(module.training for module in network.modules())
    assert tokenizer.backend_tokenizer.truncation is not None
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_module_of_ours_in_memory_has_the_numbers_of_its_folder(made):
    opened, pairs = open_model(made("masked")), [pair[:2] for pair in PAIRS]
    found = hatchery.evaluate(opened.network, pairs, tokenizer=opened.tokenizer)
    assert found.tables["scores.parquet"].equals(hatchery.evaluate(made("masked"), pairs).tables["scores.parquet"])


@pytest.mark.parametrize("name", ["masked", "causal", "bert", "gpt2"])
def test_surprisals_are_those_of_the_stage_and_a_table_keeps_its_columns_with_their_types(
    name, made, make_source, tmp_path
):
    frame = pl.DataFrame({"id": [7, 8], "sentence": TEXTS, "word": [[1], [2, 3]]})
    source = make_source({"texts.csv": frame.drop("word").write_csv()})
    settings = {"name": "mine", "column": "sentence"}
    expected = staged(measure_surprisal, tmp_path / "out", made(name), settings, source=source.manifest)
    words = pl.read_parquet(expected.file("surprisal.parquet"))
    found = hatchery.surprisals(made(name), frame, column="sentence")
    ours = ["sentence", "position", "word", "surprisal", "tokens", "unknown", "in_bytes"]
    assert found.columns == [*ours, "id", "own_sentence", "own_word"]
    assert found.select(ours).equals(words.select(ours))
    assert found.schema["id"] == pl.Int64 and found.schema["own_word"] == pl.List(pl.Int64)
    assert found["own_sentence"].to_list() == [TEXTS[index - 1] for index in found["sentence"]]
    assert hatchery.surprisals(made(name), source.root, column="sentence").equals(words)
    assert hatchery.surprisals(made(name), TEXTS).equals(words.select(ours))
    rows = pl.DataFrame([(i, w) for i, text in enumerate(TEXTS) for w in text.split()], schema=["i", "w"], orient="row")
    each = hatchery.surprisals(made(name), rows, column="w", text="i")
    assert each["surprisal"].to_list() == words["surprisal"].to_list() and each["i"].to_list() == rows["i"].to_list()


def test_words_in_memory_are_ordered_by_a_column_and_only_blank_cells_are_missing(made, capsys):
    cells = [("a", 3, "sleep"), ("b", 1, "NA"), ("a", 1, "The"), ("a", 2, "dogs"), ("b", 2, " ")]
    rows = pl.DataFrame(cells, schema=["i", "place", "w"], orient="row")
    found = hatchery.surprisals(made("gpt2"), rows, column="w", text="i", order="place")
    assert found["word"].to_list() == ["The", "dogs", "sleep", "NA"] and found["i"].to_list() == ["a", "a", "a", "b"]
    expected = hatchery.surprisals(made("gpt2"), ["The dogs sleep", "NA"])["surprisal"].to_list()
    assert found["surprisal"].to_list() == pytest.approx(expected, rel=1e-5)
    assert "note: 1 cell is missing (empty, ...) and not scored, the first in " in capsys.readouterr().err
    hatchery.surprisals(made("gpt2"), ["no\u2014yes"])
    assert "note: words have characters without a token in the model's vocabulary" in capsys.readouterr().err


def test_reading_times_have_the_numbers_of_the_stage(made, make_source, tmp_path):
    content = (GOLDEN / "data/full/reading/reading_data.csv").read_text(encoding="utf-8")
    source = make_source({"full_eval/reading/reading_data.csv": content})
    expected = staged(measure_reading, tmp_path / "out", made("gpt2"), {}, source=source.manifest)
    for data in (source.root, source.root / "full_eval/reading/reading_data.csv"):
        found = hatchery.evaluate(made("gpt2"), "reading", data)
        assert found.facts == expected.measures
        assert found.tables["scores.csv"].to_dicts() == pl.read_csv(expected.file("scores.csv")).to_dicts()
    # A hybrid model reads masks, unless the scoring method is from left to right.
    surprisals = {}
    for scoring, architecture in (("auto", "masked"), ("pll", "masked"), ("left_to_right", "causal")):
        out = staged(measure_reading, tmp_path / scoring, made("hybrid"), {"scoring": scoring}, source=source.manifest)
        found = hatchery.evaluate(made("hybrid"), "reading", source.root, scoring=scoring)
        assert found.facts["architecture"] == out.measures["architecture"] == architecture
        surprisals[scoring] = pl.read_parquet(out.file("words.parquet"))["surprisal_nats"].to_list()
        assert found.tables["words.parquet"]["surprisal_nats"].to_list() == surprisals[scoring]
    assert surprisals["auto"] == surprisals["pll"] != surprisals["left_to_right"]


@pytest.mark.parametrize(("scoring", "architecture"), [("auto", "masked"), ("left_to_right", "causal")])
def test_a_hybrid_model_scores_words_with_the_method_of_the_settings(
    scoring, architecture, made, make_source, tmp_path
):
    model, ways = made("hybrid"), {"auto": "pll", "left_to_right": "left_to_right"}
    words = [word for text in TEXTS for word in text.split()]
    rows = [(place, word, place**2 % 7) for place, word in enumerate(words, 1)]
    times = pl.DataFrame([("1", *row) for row in rows], schema=["item", "position", "word", "rt"], orient="row")
    source = make_source({"texts.txt": "\n".join(TEXTS) + "\n", "times.csv": times.write_csv()})
    asked = {"name": "mine", "files": "*.txt", "scoring": scoring}
    scored = staged(measure_surprisal, tmp_path / "words", model, asked, source=source.manifest)
    settings = {"files": "*.csv", "scoring": scoring, "participant": None, "random_effects": "none"}
    timed = staged(
        measure_reading_times, tmp_path / "times", model, {"name": "mine", **settings}, source=source.manifest
    )
    direct = hatchery.reading(model, times, **{key: settings[key] for key in settings if key != "files"})
    for facts in (scored.measures, timed.measures, direct.facts):
        assert (facts["architecture"], facts["scoring"]) == (architecture, ways[scoring])


@pytest.mark.parametrize("name", ["masked", "gpt2"])
def test_fine_tuning_has_the_numbers_of_the_stage(name, made, make_source, json_lines, tmp_path):
    rows = {"train.jsonl": json_lines(sentences(24, 0)), "validation.jsonl": json_lines(sentences(16, 1))}
    source, protocol = make_source(rows), {**PROTOCOL, "epochs": 1, "learning_rates": [1e-3]}
    told = {"stage": "finetune", "stage_version": 1, "task": TASK, "protocol": protocol}
    folder = finetuned(tmp_path / "out", told, made(name), {"agreement": source.manifest}, tmp_path / "runs")
    task = {key: value for key, value in TASK.items() if key != "name"}
    (tmp_path / "agreement.yaml").write_text(json.dumps({"data": "x", **task}))
    found = hatchery.evaluate(made(name), tmp_path / "agreement.yaml", source.root, protocol=protocol)
    require_same(found, "finetuning", read_manifest(folder / "manifest.json"), made(name))
    accuracy = found.rows.filter(metric="accuracy_percent")["value"]
    mean = found.summary.filter(metric="accuracy_percent").row(0, named=True)
    assert mean["value"] == pytest.approx(accuracy.mean()) and mean["low"] <= mean["value"] <= mean["high"]


def test_a_task_of_ours_is_known_by_its_name_with_a_protocol_of_ours_or_of_the_caller():
    for name, protocol in (("probe_pos", "ltg_bert_probing"), ("glue_rte", {"epochs": 2, "seeds": [1]})):
        kind, task, settings, _ = _suite_of(name, None, {"protocol": protocol})
        assert (kind, task) == ("finetuning", name) and build_settings(FinetuneSettings, settings).task.name == name


def test_every_mistake_is_one_line_that_says_what_to_do(made, stored, tmp_path):
    model, frame = made("masked"), pl.DataFrame({"s": ["a", None]})
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"]}')
    for ask, message in (
        (lambda: hatchery.surprisals(model, ["a", None]), "text 2: got None, expected a text"),
        (lambda: hatchery.surprisals(model, frame, column="s"), "row 2: s: got None, expected a text"),
        (lambda: hatchery.surprisals(model, frame, column="t"), "column: got 't', expected one of s"),
        (
            lambda: hatchery.surprisals(model, frame),
            "column: got none, expected the column that contains the texts, one of: s",
        ),
        (lambda: hatchery.evaluate(model, [("a", "b"), ("a", None)]), r"pair 2: got \('a', None\), expected 2 texts"),
        (
            lambda: hatchery.evaluate(model, [("a", "b"), "c"]),
            "pair 2: got 'c', expected 2 texts, the correct text first",
        ),
        (lambda: hatchery.evaluate(model, frame), "columns: got a table with s, expected good and bad, or sentence_g"),
        (
            lambda: hatchery.evaluate(model, "babylm_2026_comps"),
            "data: got none, expected the file or folder with the data of .babylm_2026_comps.",
        ),
        (lambda: hatchery.evaluate(model, "blimp", tmp_path / "no"), "no: data: no such file or folder"),
        (lambda: hatchery.evaluate(model, "blimp", tmp_path, files="*.x"), r"no file matches '\*\.x'"),
        (
            lambda: hatchery.evaluate(tmp_path / "no", PAIRS),
            "no: this folder contains no model; expected a folder such as",
        ),
        (
            lambda: hatchery.evaluate(tmp_path, PAIRS),
            "names BertModel, which does not determine the architecture; pass architecture=",
        ),
        (lambda: hatchery.evaluate(stored("gpt2"), PAIRS, architecture="masked"), "cannot be loaded as a masked"),
        (lambda: hatchery.evaluate(stored("gpt2"), PAIRS, architecture="mask"), "architecture: got 'mask'"),
        (lambda: hatchery.evaluate(torch.nn.Linear(1, 1), PAIRS), "tokenizer: got NoneType for your module Linear"),
    ):
        with pytest.raises(hatchery.HatcheryError, match=message) as raised:
            ask()
        assert "\n" not in str(raised.value), str(raised.value)


def test_the_class_of_a_checkpoint_tells_its_architecture():
    for name, expected in {
        "BertForMaskedLM": "masked",
        "BertForPreTraining": "masked",
        "GPT2LMHeadModel": "causal",
        "LlamaForCausalLM": "causal",
        "XLMWithLMHeadModel": "masked",
        "T5ForConditionalGeneration": "encoder_decoder",
    }.items():
        assert architecture_in({"architectures": [name]}, "x") == expected

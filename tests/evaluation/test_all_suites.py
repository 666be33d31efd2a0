"""Every suite of the papers runs on its generated miniature, from readers to tables; further tests of MSGS and HANS."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from finetuning_cases import finetuned, results

from demo.stages.generate_embedded_sources import generate_embedded_sources
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.finetuning.batches import Predicted, predict
from hatchery.evaluation.finetuning.encoding import encode_texts
from hatchery.evaluation.finetuning.measurements import finetuning_rows
from hatchery.evaluation.finetuning.scored_sets import accuracy_by_fact, failure, label_mapping
from hatchery.evaluation.metrics.scored import Scored, metric_called
from hatchery.evaluation.runtime import load_encoder
from hatchery.evaluation.stages.finetune import task_inputs
from hatchery.evaluation.stages.score_minimal_pairs import score_minimal_pairs
from hatchery.evaluation.tasks.checks import check_task
from hatchery.evaluation.tasks.example import Example
from hatchery.evaluation.tasks.settings import ProtocolSettings, TaskSettings, label_text
from hatchery.evaluation.tasks.task_rows import read_task
from hatchery.experiment.experiment_file import Finetuning
from hatchery.experiment.finetuning import resolve_protocol
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import source_of
from hatchery.experiment.written_blocks import WrittenBlocks
from hatchery.modeling.heads.registry import build_task_model
from hatchery.modeling.heads.task_model import HeadContext
from hatchery.raw.registration import register_source
from hatchery.raw.settings import EmbeddedSettings
from hatchery.runner import run_stage
from hatchery.typed import build, keys_of, plain
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import Outputs

EXPERIMENT = "demo_suites"
CONFIG = Project(Path(__file__).parents[2] / "config")
BLOCK = CONFIG.experiment(EXPERIMENT)
CORRELATIONS = ("mcc", "pearson", "spearman", "mean_of_pearson_and_spearman")
TASKS = sorted(BLOCK.finetuning.tasks)
EMBEDDED = [
    name
    for name in CONFIG.names("suite")
    # Because some scoring methods need another kind of model.
    if source_of(CONFIG.suite(name)).startswith("embedded_") and CONFIG.suite(name).scoring == "auto"
]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the source manifest of a generated folder for the workflow's path."""
    folder = tmp_path_factory.mktemp("embedded")
    settings = EmbeddedSettings(
        seed=0, documents=40, pairs_per_paradigm=4, examples_per_task=12, examples_per_suite_task=12
    )
    with stage_run(folder / "manifest.json", {"stage": "generate_embedded_sources"}) as run:
        generate_embedded_sources(settings, run)

    def registered(path: str) -> Path:
        name = Path(path).stem.removeprefix("embedded_")
        manifest = folder / f"{name}.source.json"
        if not manifest.exists():
            register_source(name, folder / name, manifest)
        return manifest

    return registered


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_learnt_scored_and_written_down(
    task: str, embedded: Callable[[str], Path], model_manifest: Path, tmp_path: Path
) -> None:
    settings: dict[str, Any] = json.loads(Jobs(CONFIG).settings("finetune", experiment=EXPERIMENT, task=task))
    settings["protocol"] |= {"epochs": 1, "seeds": [1], "max_length": 64}
    sources = {name: embedded(path) for name, path in task_inputs(Outputs(CONFIG), task)["source"].items()}
    output = finetuned(tmp_path / "out", settings, model_manifest, sources, tmp_path / "checkpoints")
    read_manifest(output / "manifest.json").verify()
    rows = results(output)
    sets = [name for name in settings["task"]["files"] if name != "train"]
    scored = dict.fromkeys(sets, settings["task"]["metrics"])
    scored |= {entry["name"]: entry["metrics"] for entry in settings["transfer"]}
    assert {(row["rows"], row["metric"]) for row in rows} == {
        (name, metric) for name, metrics in scored.items() for metric in metrics
    }
    for row in rows:
        low = -1.0 if row["metric"] in CORRELATIONS else 0.0
        assert row["failed"] != "nan" and low <= float(row["value"]) <= 1.0
    assert (output / "layer_weights.csv").exists() == (settings["task"]["head"]["kind"] == "span_classification")
    assert (output / "breakdown.csv").exists() == any(entry["facts"] for entry in settings["transfer"])


@pytest.mark.parametrize("suite", EMBEDDED)
def test_every_suite_of_pairs_is_scored(
    suite: str, embedded: Callable[[str], Path], model_manifest: Path, tmp_path: Path
) -> None:
    settings = json.loads(Jobs(CONFIG).settings("score_minimal_pairs", suite=suite))
    source = embedded(Jobs(CONFIG).call("score_minimal_pairs", suite=suite).arguments["source"])
    output = tmp_path / "manifest.json"
    run_stage(score_minimal_pairs, settings, output, runtime={"device": "cpu"}, model=model_manifest, source=source)
    rows = results(tmp_path, "accuracy.csv")
    assert {row["level"] for row in rows} == {"paradigm", "phenomenon", "suite"}
    assert all(0 <= float(row["accuracy"]) <= float(row["accuracy_ties_correct"]) <= 1 for row in rows)
    manifest = read_manifest(output)
    manifest.verify()
    predictions = tmp_path / "predictions.json"
    assert predictions.exists() == suite.startswith("demo_babylm_")
    if predictions.exists():
        assert manifest.measures["rules"].startswith("BabyLM 2026") and manifest.measures["precision"] == "fp32"
        assert manifest.file("predictions.json") == predictions
        by_paradigm = json.loads(predictions.read_text())
        assert sum(len(one["predictions"]) for one in by_paradigm.values()) == manifest.measures["pairs"]
        for paradigm, one in by_paradigm.items():
            assert [row["id"] for row in one["predictions"]] == [
                f"{paradigm}_{number}" for number in range(len(one["predictions"]))
            ]
            assert all(row.keys() == {"id", "pred"} and row["pred"].strip() for row in one["predictions"])


def test_fast_ewok_is_nothing_where_it_is_counted_as_by_the_collator_and_the_predictions_stay(
    embedded: Callable[[str], Path], model_manifest: Path, tmp_path: Path
) -> None:
    suite = "demo_babylm_fast_ewok"
    settings = json.loads(Jobs(CONFIG).settings("score_minimal_pairs", suite=suite))
    source = embedded(Jobs(CONFIG).call("score_minimal_pairs", suite=suite).arguments["source"])
    found = []
    for more in ({}, {"counted_by": "collator"}):
        output = tmp_path / str(len(found)) / "manifest.json"
        given = {"runtime": {"device": "cpu"}, "model": model_manifest, "source": source}
        run_stage(score_minimal_pairs, settings | more, output, **given)
        shares = [float(row["accuracy"]) for row in results(output.parent, "accuracy.csv")]
        found.append((max(shares), (output.parent / "predictions.json").read_bytes()))
        assert ("counted as by its collator" in read_manifest(output).measures["rules"]) == bool(more)
    assert found[0][0] > 0 == found[1][0] and found[0][1] == found[1][1]


OFFICIAL = ("boolq", "mnli", "mrpc", "multirc", "qqp", "rte", "wsc")


@pytest.mark.parametrize("name", OFFICIAL)
def test_the_fine_tuning_of_babylm_2026_predicts_as_its_server_wants_and_tells_its_settings(
    name: str, embedded: Callable[[str], Path], model_manifest: Path, tmp_path: Path
) -> None:
    task, source = f"demo_babylm_2026_{name}", embedded("embedded_babylm_evaluation")
    finetuning = Finetuning(protocol={"base": "babylm_2026", "epochs": 1, "batch_size": 4}, tasks={task: {}})
    protocol = keys_of(resolve_protocol(finetuning, task, CONFIG, "here"), only=ProtocolSettings)
    settings = {"stage": "finetune", "stage_version": 3, "task": CONFIG.task(task).settings(task), "protocol": protocol}
    given = json.loads(json.dumps(settings, default=plain))
    output = finetuned(tmp_path, given, model_manifest, {task: source}, tmp_path / "runs")
    manifest = read_manifest(output / "manifest.json")
    predictions = json.loads(manifest.file("predictions.json").read_text())[name]["predictions"]
    labels = pq.read_table(output / "predictions.parquet")["prediction"].to_pylist()
    names = list(map(label_text, CONFIG.task(task).settings(task).labels))
    assert [(row["id"], names[row["pred"]]) for row in predictions] == [
        (f"{name}_{number}", label) for number, label in enumerate(labels)
    ]
    [first, *_] = finetuning_rows(Evaluated(manifest, manifest, task))
    for part in (
        "rules of BabyLM 2026; 1 epochs in batches of 4; peak rate 3e-05; cosine to 0.1, warm-up 0.06",
        "decay 0.01 of all; no clipping; dropout 0.1; at most 512 tokens; last token; best on the scored rows",
    ):
        assert part in first["settings"]
    assert first["metric"] == ("f1_percent" if name in ("mrpc", "qqp") else "accuracy_percent")


@pytest.mark.parametrize("causal", [False, True])
def test_padding_in_front_changes_nothing_where_positions_are_relative(
    causal: bool, make_model_manifest: Callable[..., Path]
) -> None:
    encoder, tokenizer = load_encoder(make_model_manifest(causal))
    texts = ("The old dogs sleep .", "A cat chases the dogs near the house .", "She sleeps .")
    examples = [Example(((text,),), 0, where=f"a:{row}") for row, text in enumerate(texts)]
    options = {"pooling": "last_token", "initialisation": "pytorch", "layer_norm_eps": 1e-5}
    model = build_task_model(
        "sequence_classification", encoder, HeadContext(2, 0.1, 0, tokenizer.pad_id, True), options
    )
    behind, in_front = (
        predict(model, encode_texts(examples, tokenizer, 24, pads_in_front=way), torch.device("cpu"), 2026)
        for way in (False, True)
    )
    np.testing.assert_allclose(behind.scores, in_front.scores, atol=1e-6)


def test_the_protocol_of_babylm_2026_differs_by_task() -> None:
    finetuning = Finetuning(protocol={"base": "babylm_2026"}, tasks={f"babylm_2026_{name}": {} for name in OFFICIAL})
    found = {name: resolve_protocol(finetuning, f"babylm_2026_{name}", CONFIG, "here") for name in OFFICIAL}
    assert {name: one.batch_size for name, one in found.items() if one.batch_size != 32} == {"boolq": 16, "multirc": 16}
    assert {name: one.epochs for name, one in found.items() if one.epochs != 10} == {"wsc": 30}
    assert {name for name, one in found.items() if one.selection_metric == "f1"} == {"mrpc", "qqp"}


def test_the_miniature_has_a_task_for_every_suite_of_the_papers() -> None:
    suites = {CONFIG.task(task).suite for task in TASKS}
    assert suites == {"demo_babylm_glue", "demo_msgs", "demo_glue", "demo_probing"}
    msgs = {task.removeprefix("msgs_") for task in CONFIG.names("task") if task.startswith("msgs_")}
    names = (task.removeprefix("babylm_") for task in CONFIG.names("task") if task.startswith("babylm_"))
    babylm = {name for name in names if not name.startswith("2026_")}
    assert {f"demo_msgs_{name}" for name in msgs} | {f"demo_babylm_{name}" for name in babylm} <= set(TASKS)
    assert len(msgs) == len(babylm) == 11


AMBIGUOUS = "msgs_main_verb_lexical_content_the"
MNLI_LABELS = ("entailment", "neutral", "contradiction")
# Condition, linguistic and surface label of the six rows of a paradigm (docs/papers/babylm-evaluation.md, "MSGS").
PARADIGM = [
    ("training", 1, 1),
    ("training", 0, 0),
    ("test", 1, 0),
    ("test", 0, 1),
    ("control", 1, 1),
    ("control", 0, 0),
]
NOT_OF_A_STAGE = ("base", "variants", "description", "data")
HEURISTICS = ("lexical_overlap", "subsequence", "constituent")


@pytest.fixture
def read(repository, make_source):
    """Return a function that reads rows by name of set through a task of this repository; `changes` replace its
    keys."""

    written = WrittenBlocks(repository / "config")

    def task_of(name, **changes):
        keys = {**written.read("task", name), **changes, "name": name}
        task = build(TaskSettings, {key: value for key, value in keys.items() if key not in NOT_OF_A_STAGE})
        check_task(task)
        return task

    def read_rows(name, sets, as_text, **changes):
        task = task_of(name, **changes)
        files = {task.files[key]: as_text(rows) for key, rows in sets.items()}
        return task, read_task(make_source(files), task)

    return read_rows


def msgs_rows(conditions, paradigms=20):
    return [
        {
            "sentence": f"Paradigm {number} has row {index} with {linguistic} and {surface}.",
            "condition": condition,
            "linguistic_feature_label": linguistic,
            "surface_feature_label": surface,
        }
        for number in range(paradigms)
        for index, (condition, linguistic, surface) in enumerate(PARADIGM)
        if condition in conditions
    ]


def scored(examples, answer):
    """Return the scored rows as a metric reads them; `answer` predicts the label of an example's text."""
    kept = [example for example in examples if example.scored]
    labels = np.array([example.label for example in kept])
    predictions = np.array([answer(example.segments[0]) for example in kept])
    return Scored(labels, predictions, np.eye(2)[predictions], facts=[example.facts for example in kept])


def linguistic_oracle(text):
    return int(text.split()[-3])


def surface_oracle(text):
    return int(text.split()[-1].rstrip("."))


@pytest.fixture
def ambiguous(read, json_lines):
    sets = {"train": msgs_rows(("training",)), "validation": msgs_rows(("training", "test", "control"))}
    return lambda **changes: read(AMBIGUOUS, sets, json_lines, **changes)[1].scored["validation"]


@pytest.mark.parametrize(
    ("answer", "bias"),
    [(lambda text: 1, 0.0), (lambda text: 0, 0.0), (surface_oracle, -1.0), (linguistic_oracle, 1.0)],
)
def test_linguistic_bias_score_of_constant_surface_and_linguistic_answers(ambiguous, answer, bias):
    rows = scored(ambiguous(), answer)
    assert len(rows.labels) == 2 * 20
    assert metric_called("mcc")(rows) == pytest.approx(bias)


def test_without_the_row_filter_a_surface_oracle_shows_four_sixths(ambiguous):
    rows = scored(ambiguous(scored_rows={}), surface_oracle)
    assert len(rows.labels) == 6 * 20
    assert metric_called("accuracy")(rows) == pytest.approx(4 / 6)


def test_only_the_constant_answer_is_a_collapsed_msgs_run(ambiguous):
    rows = ambiguous()
    assert failure(scored(rows, lambda text: 1)) == "majority_class"
    assert failure(scored(rows, surface_oracle)) == failure(scored(rows, linguistic_oracle)) == ""


def test_surface_controls_read_the_surface_label(read, json_lines):
    def control(rows):
        return [{**row, "linguistic_feature_label": None} for row in rows]

    sets = {"train": control(msgs_rows(("training",))), "validation": control(msgs_rows(("training", "test")))}
    _, data = read("msgs_lexical_content_the_control", sets, json_lines)
    assert metric_called("mcc")(scored(data.scored["validation"], surface_oracle)) == pytest.approx(1.0)


def hans_table(rows_per_cell=4):
    lines = ["gold_label\tsentence1\tsentence2\tpairID\theuristic\tsubcase\ttemplate"]
    for heuristic in HEURISTICS:
        for label in ("entailment", "non-entailment"):
            for subcase in range(5):
                for row in range(rows_per_cell):
                    pair = f"The judge saw actor {row} .\tThe actor saw judge {row} ."
                    where = f"{heuristic}\t{heuristic}_{label}_{subcase}\ttemp{subcase}"
                    lines.append(f"{label}\t{pair}\tex{len(lines)}\t{where}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def hans(read):
    def make(name="hans"):
        task, data = read(name, {"validation": hans_table()}, str, expected_rows={})
        return task, data.scored["validation"]

    return make


def transferred(task, examples, scores):
    """Return the task's rows as a three-way model answers them that gives these scores to every row."""
    three_way = np.tile(np.array(scores, dtype=np.float32), (len(examples), 1))
    answers = label_mapping(task, MNLI_LABELS).apply(Predicted(three_way.argmax(axis=1), three_way))
    labels = np.array([example.label for example in examples])
    return Scored(labels, answers.predictions, answers.scores, facts=[example.facts for example in examples])


@pytest.mark.parametrize("name", ["hans", "hans_summed", "hans_as_published"])
def test_constant_entailment_gives_half_and_cells_of_all_and_nothing(hans, name):
    task, examples = hans(name)
    rows = transferred(task, examples, [5.0, 0.0, 0.0])
    assert metric_called("accuracy")(rows) == 0.5
    cells = {
        (row.value, row.label): (row.n, row.accuracy)
        for row in accuracy_by_fact(rows, ("heuristic",), task.label_names)
        if row.label
    }
    assert len(cells) == 6
    assert all(cells[heuristic, "entailment"] == (20, 1.0) for heuristic in HEURISTICS)
    assert all(cells[heuristic, "non-entailment"] == (20, 0.0) for heuristic in HEURISTICS)


def test_hans_is_broken_down_by_the_three_levels_of_its_scorer(hans):
    task, examples = hans()
    rows = accuracy_by_fact(transferred(task, examples, [5.0, 0.0, 0.0]), task.facts, task.label_names)
    overall = [row for row in rows if not row.label]
    assert [row.value for row in overall if row.fact == "heuristic"] == sorted(HEURISTICS)
    subcases = [row for row in overall if row.fact == "subcase"]
    assert len(subcases) == 30
    assert all(row.accuracy == float("non-entailment" not in row.value) for row in subcases)
    assert [row.value for row in overall if row.fact == "template"] == [f"temp{index}" for index in range(5)]
    assert {sum(row.n for row in overall if row.fact == fact) for fact in task.facts} == {len(examples)}


def test_a_uniform_distribution_separates_the_two_ways_to_merge(hans):
    answers = {}
    for name in ("hans", "hans_summed", "hans_as_published"):
        task, examples = hans(name)
        (answers[name],) = set(transferred(task, examples, [1.0, 1.0, 1.0]).predictions.tolist())
    # The three probabilities tie: argmax takes the first class, entailment. Summed, the merged label has two thirds.
    assert answers == {"hans": 0, "hans_summed": 1, "hans_as_published": 0}


def test_a_neutral_answer_separates_the_benchmark_s_mapping_from_the_published_script_s(hans):
    answers = {}
    for name in ("hans", "hans_as_published"):
        task, examples = hans(name)
        (answers[name],) = set(transferred(task, examples, [0.0, 9.0, 0.0]).predictions.tolist())
    assert answers == {"hans": 1, "hans_as_published": 0}

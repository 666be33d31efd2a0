"""Numbers that are not comparable are not ranked: in tables, differences and figures, for each kind of number."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from measured_experiment import curve
from summary_text import write_rows_of_summary

from hatchery.analysis.analyses import comparison
from hatchery.analysis.analyses.analysis import Study, tables_as_files
from hatchery.analysis.compute_optimal import points_of_runs, why_no_points
from hatchery.analysis.scores import Measure
from hatchery.analysis.settings import FigureSettings, SummarySettings
from hatchery.analysis.summary import Summary, summarised
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.evaluation.basis import differing
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.finetuning.measurements import finetuning_rows
from hatchery.evaluation.minimal_pairs.measurements import minimal_pair_rows
from hatchery.evaluation.perplexity.measurements import perplexity_rows
from hatchery.evaluation.reading_times.measurements import gain_rows
from hatchery.evaluation.stages.measure_acquisition import acquisition_rows
from hatchery.evaluation.stages.measure_reading import reading_rows
from hatchery.evaluation.stages.translate_tests import translation_rows
from hatchery.evaluation.surprisal.measurements import basis_of_words
from hatchery.experiment.seeded_run import SeededRun
from hatchery.typed import build, stage_body
from hatchery.views.figures import learning_curves, word_surprisals
from hatchery.views.summary_sections import sections
from hatchery.views.summary_text import markdown_summary, text_summary

OWN, COMMON = {"masking": "own"}, {"masking": "common"}
LOW, HIGH = {"kind": "subword", "mask_probability": 0.05}, {"kind": "span", "mask_probability": 0.4}
SEEDS = (1, 2)


def swept(experiment: Any, objectives: dict[str, dict[str, Any]], **settings: Any) -> Summary:
    """Return two seeds of a model per objective; perplexities on `test` are 2, 4, ... with small deviations."""
    for place, (model, objective) in enumerate(objectives.items(), start=1):
        for seed in SEEDS:
            run = experiment.add_model(model, seed, curve(float(place)), objective=objective)
            experiment.add_perplexity(run, {"test": (0.7 * place, 2.0 * place + 0.01 * seed, 0.5)}, settings=settings)
    told = build(SummarySettings, stage_body(experiment.summary_settings()))
    return summarised(told, experiment.measured(), {})


def best(summary: Summary, suite: str = "perplexity", task: str = "test", metric: str = "perplexity") -> set[str]:
    return summary.best(Measure("", suite, task, metric))


def test_perplexities_behind_masks_of_their_own_have_no_best_and_the_tables_say_why(experiment: Any) -> None:
    summary = swept(experiment, {"low": LOW, "high": HIGH}, **OWN)
    assert best(summary) == set() == best(summary, "pretraining", "development")
    (section,) = [each for each in sections(summary) if each.title.startswith("Perplexity")]
    assert "Not compared: test perplexity" in section.note
    assert "models predicted different tokens (40 % of spans; 5 % of subwords)" in section.note
    assert "`masking: common`" in section.note
    for text in (markdown_summary(summary), " ".join(text_summary(summary).split())):
        assert "(40 % of spans; 5 % of subwords)" in text


def test_perplexities_behind_common_masks_have_a_best_and_name_the_models_that_never_saw_such(experiment: Any) -> None:
    summary = swept(experiment, {"low": {**LOW, "mask_probability": 0.15}, "high": HIGH}, **COMMON)
    assert best(summary) == {"low"}
    (section,) = [each for each in sections(summary) if each.title.startswith("Perplexity")]
    assert "with masks other than the evaluation's: high (trained on 40 % of spans)" in section.note
    # A different kind of mask is enough for this note.
    models = {"subwords": {**LOW, "mask_probability": 0.15}, "spans": {**HIGH, "mask_probability": 0.15}}
    (section,) = [each for each in sections(swept(experiment, models, **COMMON)) if each.title.startswith("Perplexity")]
    assert "spans (trained on 15 % of spans)" in section.note
    # In training, each model was still evaluated with its own masks.
    assert best(summary, "pretraining", "development") == set()
    assert "Not compared: test" not in section.note


def test_models_of_one_objective_have_a_best_behind_their_own_masks(experiment: Any) -> None:
    summary = swept(experiment, {"small": LOW, "large": LOW}, **OWN)
    assert best(summary) == {"small"} == best(summary, "pretraining", "development")
    assert not summary.not_compared(Measure("", *row.selectors[1:]) for row in summary.rows)


def test_one_pretraining_seed_makes_no_best(experiment: Any) -> None:
    summary = swept(experiment, {"small": LOW, "large": LOW}, **OWN)
    one = [replace(row, seeds=1) if row.model == "small" else row for row in summary.rows]
    assert best(replace(summary, rows=one)) == set()
    # A model with one seed and a much lower number does not prevent a best model among the other two.
    one = [replace(row, seeds=1) if row.model == "large" else row for row in summary.rows]
    assert best(replace(summary, rows=one)) == {"small"}
    # A third model within noise of the best model can be best only if it has several seeds.
    for seeds, expected in ((2, {"small", "near"}), (1, set())):
        near = [replace(row, model="near", mean=2.02, seeds=seeds) for row in summary.rows if row.model == "small"]
        three = replace(summary, rows=[*summary.rows, *near], models=[*summary.models, "near"])
        assert best(three) == expected


def test_differences_of_numbers_that_do_not_compare_are_dashes_in_markdown_and_latex(
    experiment: Any, tmp_path: Path
) -> None:
    summary = swept(experiment, {"low": LOW, "high": HIGH}, **OWN)
    rows = [replace(row, model=f"mine/{row.model}", experiment="mine") for row in summary.rows]
    tables = {"summary": write_rows_of_summary(tmp_path, rows)}
    study = Study("all", tuple(SeededRun.from_seed(f"mine/{model}", 1) for model in ("low", "high")), tables=tables)
    found = comparison.ANALYSIS.run(comparison.ComparisonSettings(against="mine/low"), study)
    (row,) = [row for row in found.rows if row["suite"] == "perplexity"]
    assert (row["mean"], row["against_mean"]) == (pytest.approx(4.015), pytest.approx(2.015))
    assert (row["difference"], row["deviation"]) == (None, None)
    files = tables_as_files(found, "Side by side", "comparison", "all")
    line = next(line for line in files["table_01.tex"].splitlines() if "test perplexity" in line)
    assert line.rstrip("\\ ").endswith("& --") and "2.00" not in line
    assert "models predicted different tokens (40 % of spans; 5 % of subwords)" in files["tables.md"]
    assert "masking: common" in files["table_01.tex"]
    # With one seed each, a difference is only between these two trained models.
    assert found.tables[0].caption == "Differences of averages"
    alone = {"summary": write_rows_of_summary(tmp_path, [replace(row, seeds=1) for row in rows])}
    found = comparison.ANALYSIS.run(comparison.ComparisonSettings(against="mine/low"), replace(study, tables=alone))
    assert found.tables[0].caption == "Differences of averages, each between two trained models"
    # In these cases, only one side of one number has one seed.
    for seeds in ((1, 3), (3, 1)):
        of_model = {"mine/low": seeds[0], "mine/high": seeds[1]}
        some = [replace(row, seeds=of_model[row.model] if row.suite == "perplexity" else 2) for row in rows]
        apart = replace(study, tables={"summary": write_rows_of_summary(tmp_path, some)})
        found = comparison.ANALYSIS.run(comparison.ComparisonSettings(against="mine/low"), apart)
        (row,) = [row for row in found.rows if row["suite"] == "perplexity"]
        assert (row["against_seeds"], row["seeds"]) == seeds and len(found.rows) > 1
        assert found.tables[0].caption == "Differences of averages"


def evaluated(folder: Path, settings: Any, model: Any, inputs: Any, measures: Any, files: dict[str, str]) -> Evaluated:
    with stage_run(folder / "model/manifest.json", model) as run:
        pass
    texts = {}
    for name, text in inputs.items():
        with stage_run(folder / text / "manifest.json", {"text": text}) as run:
            texts[name] = run.folder / "manifest.json"
    with stage_run(folder / "made/manifest.json", settings, texts) as run:
        for name, text in files.items():
            (run.folder / name).write_text(text, encoding="utf-8")
            run.add_output(run.folder / name)
        run.measures.update(measures)
    made = read_manifest(folder / "made/manifest.json")
    return Evaluated(made, read_manifest(folder / "model/manifest.json"), "mine", text=lambda split: inputs["tokens"])


PAIRS = (
    minimal_pair_rows,
    {"suite": "mine", "seed": 0, "precision": "fp32"},
    {"objective": {"kind": "subword"}},
    {"source": "pairs"},
    {"scoring": "pll", "tie_rule": "strict", "architecture": "masked"},
    {
        "accuracy.csv": "level,name,pairs,correct,ties,accuracy,accuracy_ties_correct\n"
        "paradigm,p,100,60,0,0.6,0.6\nphenomenon,p,100,60,0,0.6,0.6\nsuite,mine,100,60,0,0.6,0.6\n"
    },
)
TASK = (
    finetuning_rows,
    {"task": {"name": "t", "suite": "glue", "metrics": ["accuracy"]}, "protocol": {"selection": "last"}},
    {},
    {"source t": "rows"},
    {"scored_validation": 100},
    {
        "results.csv": "rows,seed,learning_rate,metric,value,best_step,development_value,failed\n"
        "validation,12,0.001,accuracy,0.6,1,0.6,\n"
    },
)
HELD_OUT = (
    perplexity_rows,
    {"splits": ["test"], "sequence_length": 32, "masking": "common"},
    {"objective": {"kind": "subword"}},
    {"tokens": "corpus"},
    {},
    {
        "perplexity.csv": "split,sequences,labelled_tokens,loss_nats,perplexity,accuracy\n"
        "test,10,150,2.0,7.389056098930650,0.5\n"
    },
)
READING = (reading_rows, {}, {}, {"source": "words"}, {"words": 50}, {"scores.csv": "outcome,gain\nrt,0.1\n"})
TIMES = (
    gain_rows,
    {"name": "mine", "spillover": 2},
    {},
    {"source": "times"},
    {"scoring": "left_to_right", "scored_words": 9, "perplexity_of_words": 5.0},
    {"scores.csv": "response,rows,gain_nats,gain_deviation_nats\nrt,80,1.0,0.5\n"},
)
AGES = (acquisition_rows, {}, {}, {"source": "ages"}, {"aoa": 0.4, "words": 40, "edition": 2026}, {})
TRANSLATED = (
    translation_rows,
    {},
    {},
    {"corpus:one": "first", "corpus:two": "second"},
    {},
    {"scores.csv": "test,corpus,split,pairs,metric,score,signature\none,pairs,test,90,bleu,20.0,s\n"},
)
WORDS = (lambda told: [{"basis": basis_of_words(told, 7)}], {}, {}, {"source": "texts"}, {"scoring": "pll"}, {})


@pytest.mark.parametrize(
    ("kind", "settings", "model", "inputs", "measures", "aspects"),
    [
        (PAIRS, {}, {}, {}, {}, []),
        (PAIRS, {}, {}, {"source": "others"}, {}, ["text"]),
        (PAIRS, {"precision": "tf32"}, {}, {}, {}, ["precision"]),
        (PAIRS, {"pairs_per_paradigm": 100, "seed": 3}, {}, {}, {}, ["items"]),
        (PAIRS, {"per_token": True}, {}, {}, {}, ["rules"]),
        (PAIRS, {}, {}, {}, {"scoring": "pll_within_word_l2r"}, ["scoring"]),
        (PAIRS, {}, {}, {}, {"tie_rule": "shared"}, ["rules"]),
        (PAIRS, {}, {}, {}, {"rules": "BabyLM 2026"}, ["rules"]),
        # Models with their own scoring methods compare, as in papers, but not a hybrid model that is scored as causal.
        (PAIRS, {}, {"objective": {"task": "causal"}}, {}, {"scoring": "left_to_right"}, []),
        (PAIRS, {}, {"objective": {"task": "hybrid"}}, {}, {"scoring": "mntp"}, []),
        (PAIRS, {}, {"objective": {"task": "hybrid"}}, {}, {"scoring": "left_to_right"}, ["scoring"]),
        (PAIRS, {}, {"objective": {"task": "hybrid"}}, {}, {"scoring": "fused"}, ["scoring"]),
        (TASK, {}, {}, {}, {}, []),
        (TASK, {}, {}, {"source t": "others"}, {}, ["text"]),
        (TASK, {}, {}, {}, {"scored_validation": 99}, ["items"]),
        (TASK, {"protocol": {"selection": "scored"}}, {}, {}, {}, ["selection"]),
        (TASK, {"protocol": {"selection": "held_out"}}, {}, {}, {}, []),
        (HELD_OUT, {}, {}, {}, {}, []),
        (HELD_OUT, {"masking": "own"}, {}, {}, {}, ["asked"]),
        (HELD_OUT, {"mask_probability": 0.3}, {}, {}, {}, ["asked"]),
        (HELD_OUT, {"seed": 7}, {}, {}, {}, ["asked"]),
        (HELD_OUT, {"sequence_length": 64}, {}, {}, {}, ["window"]),
        (HELD_OUT, {"segments": "packed"}, {}, {}, {}, ["window"]),
        (HELD_OUT, {"sequences": 5}, {}, {}, {}, ["text"]),
        (HELD_OUT, {}, {}, {"tokens": "others"}, {}, ["text"]),
        (HELD_OUT, {}, {"objective": {"task": "causal"}}, {}, {}, ["asked", "window"]),
        (HELD_OUT, {}, {"objective": {"task": "hybrid"}}, {}, {}, ["asked"]),
        (READING, {}, {}, {"source": "others"}, {}, ["text"]),
        (READING, {}, {}, {}, {"words": 49}, ["items"]),
        (TIMES, {"name": "yours"}, {}, {}, {}, []),
        (TIMES, {"spillover": 1}, {}, {}, {}, ["rules"]),
        (TIMES, {}, {}, {"source": "others"}, {}, ["text"]),
        (TIMES, {}, {}, {}, {"scoring": "pll"}, ["scoring"]),
        (AGES, {}, {}, {"source": "others"}, {}, ["text"]),
        (AGES, {}, {}, {}, {"words": 39}, ["items"]),
        (AGES, {}, {}, {}, {"edition": 2025}, ["rules"]),
        (TRANSLATED, {}, {}, {"corpus:one": "others"}, {}, ["text"]),
        (TRANSLATED, {}, {}, {"corpus:two": "others"}, {}, []),
        (TRANSLATED, {"beams": {"test": "one", "sizes": [1, 4]}}, {}, {}, {}, ["selection"]),
        (TRANSLATED, {"beams": {"test": "two", "sizes": [1, 4]}}, {}, {}, {}, []),
        (WORDS, {}, {}, {"source": "others"}, {}, ["text"]),
        (WORDS, {}, {}, {}, {"scoring": "mntp"}, ["scoring"]),
    ],
)
def test_every_kind_of_number_says_what_it_compares_with(
    *, kind: Any, settings: Any, model: Any, inputs: Any, measures: Any, aspects: list[str], tmp_path: Path
) -> None:
    rows, *same = kind
    others = [{**one, **other} for one, other in zip(same, (settings, model, inputs, measures), strict=False)]
    found = [
        next(iter(rows(evaluated(tmp_path / name, *parts, same[-1]))))
        for name, parts in (("one", same[:-1]), ("other", others))
    ]
    assert list(differing(row["basis"] for row in found)) == aspects


def test_a_tokenizer_decides_what_held_out_numbers_per_token_compare_with_and_not_those_of_bytes_and_words(
    tmp_path: Path,
) -> None:
    rows, settings, model, inputs, measures, files = HELD_OUT
    words = {"words.csv": "split,words,loss_nats_per_word,word_perplexity\ntest,100,3.0,20.08553692318767\n"}
    found = []
    for name in ("one", "other"):
        one = evaluated(tmp_path / name, settings, model, inputs, measures, {**files, **words})
        with stage_run(tmp_path / name / "tokenizer/manifest.json", {"name": name}) as tokenizer:
            pass
        read = {"tokenizer": tokenizer.folder / "manifest.json"}
        with stage_run(tmp_path / name / "trained/manifest.json", model, read):
            pass
        trained = read_manifest(tmp_path / name / "trained/manifest.json")
        # Bits per byte use the bytes of the sentences that the model read, not the tokens per byte of our text.
        one = replace(one, model=trained, tokens_per_byte=lambda split: 9.0, n_bytes=lambda split: 750)
        found.append({row["metric"]: row for row in rows(one)})
    differ = {metric for metric in found[0] if differing(of[metric]["basis"] for of in found)}
    assert differ == {"loss_nats", "perplexity", "accuracy_percent"}
    assert found[0].keys() - differ == {"bits_per_byte", "word_perplexity"}
    # The loss is 2 nats per token, with 150 tokens in 750 bytes.
    assert found[0]["bits_per_byte"]["value"] == pytest.approx(2 / math.log(2) / 5)


def test_development_losses_that_do_not_compare_make_no_frontier_and_the_figure_says_so(experiment: Any) -> None:
    for name, objectives in (("apart", {"low": LOW, "high": HIGH}), ("alike", {"small": LOW, "large": LOW})):
        # The models of the second pass replace those of the first.
        experiment.runs, experiment.pretraining, experiment.perplexity = [], {}, {}
        summary = swept(experiment, objectives, **OWN)
        assert len(summary.models) == 2
        tables = experiment.tables()
        points = points_of_runs(tables["runs"], tables["curves"], "products")
        reason = "".join(why_no_points(tables["runs"]))
        figure = learning_curves.draw(build(FigureSettings, stage_body(experiment.figure_settings())), tables)
        titles = " ".join(axes.get_title(loc="right").replace("\n", " ") for axes in figure.axes)
        if name == "apart":
            assert not points and "Not compared: development loss, because models predicted" in reason
            assert "not comparable: models differ in asked" in titles
        else:
            # Two points per model, after the second and fourth step.
            assert len(points) == 4 and not reason and not titles.strip()


def test_surprisals_of_models_that_saw_other_words_have_panels_of_their_own(experiment: Any) -> None:
    for model, way in (("gpt", "left_to_right"), ("ltg", "pll"), ("elc", "pll")):
        run = experiment.add_model(model, 1, curve(1.0))
        experiment.add_surprisal(run, "mine", {"the": 1.0, "dog": 5.0}, scoring=way)
    figure = word_surprisals.draw(build(FigureSettings, stage_body(experiment.figure_settings())), experiment.tables())
    panels = {axes.get_title(loc="left"): len(axes.lines) for axes in figure.axes}
    assert panels == {"mine, left_to_right": 1, "mine, pll": 2}

"""Changing one value reruns exactly the stages that depend on it; a comment reruns nothing."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from projects import (
    CAUSAL,
    CAUSAL_EXPERIMENT,
    CAUSAL_FIGURES,
    EXPERIMENT,
    FIGURES,
    STUDY,
    STUDY_PAGE,
    TINY,
    changed,
    planned_rules,
)

pytestmark = pytest.mark.slow

EXPORT = {"export_model", "list_exported_models"}
SUMMARY = {"collect_measurements", "summarise", "write_provenance", "write_page", *EXPORT}
COST = {"write_cost", "write_page"}
# The tables of an experiment are written together, so all its figures follow from any new number.
FINETUNE = {"finetune", *FIGURES, *SUMMARY}
AFTER_PRETRAINING = {
    *("fill_sentences", "score_minimal_pairs", "analyse", "measure_perplexity", "finetune"),
    *(*FIGURES, *SUMMARY),
}
AFTER_TOKENS = {"pretrain", *AFTER_PRETRAINING}
AFTER_TOKENIZER = {"encode_corpus", *AFTER_TOKENS, *CAUSAL_FIGURES}
AFTER_CAUSAL_PERPLEXITY = {*CAUSAL_FIGURES, *SUMMARY}
AFTER_CAUSAL = {
    *("pretrain", "fill_sentences", "measure_perplexity"),
    *AFTER_CAUSAL_PERPLEXITY,
}
CARD = {"describe_corpus", "write_page"}
AFTER_CORPUS = {"train_tokenizer", *AFTER_TOKENIZER, *CARD}
AFTER_SELECTION = {"group_sequences", *CARD}
EVERY_CORPUS = {"build_vocabulary", "select_text", "group_sequences", "convert_corpus", "sample_corpus"}


@dataclass(frozen=True)
class Change:
    """One edit of one file and the rules that it must set off."""

    file: str
    old: str
    new: str
    expected: set[str]


CHANGES = {
    "nothing": Change(EXPERIMENT, "steps: 12", "steps: 12", set()),
    "a comment": Change(EXPERIMENT, "corpus: tiny", "# why\ncorpus: tiny  # because", set()),
    "key order": Change(EXPERIMENT, "corpus: tiny\ntokenizer: tiny", "tokenizer: tiny\ncorpus: tiny", set()),
    "a number written differently": Change(EXPERIMENT, "5.0e-4", "0.0005", set()),
    "a default written out": Change(EXPERIMENT, "steps: 12", "steps: 12\n  precision: auto", set()),
    "checkpoint interval": Change(
        "config/config.yaml", "checkpoint_interval_steps: 100", "checkpoint_interval_steps: 7", set()
    ),
    "threads": Change("config/config.yaml", "evaluation_threads: 1", "evaluation_threads: 2", set()),
    "nodes of the cluster": Change("config/config.yaml", "\n  nodes: 1", "\n  nodes: 2", COST),
    "partition of the cluster": Change("config/config.yaml", "\n  partition: null", "\n  partition: main", set()),
    "tasks of a fine-tuning job": Change(
        EXPERIMENT, "finetuning:", "finetuning:\n  tasks_per_job: 2", (FINETUNE - {"finetune"}) | {"finetune_tasks"}
    ),
    "another experiment": Change("config/experiments/strict.yaml", "steps: 15625", "steps: 15626", set()),
    "description": Change(EXPERIMENT, "As small as", "So small as", {"write_page", *EXPORT}),
    "figure width": Change(EXPERIMENT, "width_inches: 8", "width_inches: 7", {*FIGURES, "write_page"}),
    "version of a figure": Change(
        "scripts/hatchery/views/figures/phenomena.py",
        "    version=",
        "    version=1",
        {"draw_figure phenomena", "write_page"},
    ),
    "caption of a figure": Change(
        "scripts/hatchery/views/figures/phenomena.py",
        'caption="Accuracy on',
        'caption="The accuracy on',
        {"draw_figure phenomena", "write_page"},
    ),
    "fine-tuning rate": Change(EXPERIMENT, "learning_rates: [5.0e-4]", "learning_rates: [6.0e-4]", FINETUNE),
    "a fine-tuning seed removed": Change(EXPERIMENT, "seeds: [1, 2]", "seeds: [2]", {*FINETUNE, *COST}),
    "a named protocol": Change("config/protocols/ltg_bert_probing.yaml", "dropout: 0.25", "dropout: 0.2", FINETUNE),
    "description of a protocol": Change(
        "config/protocols/ltg_bert_probing.yaml", "description: >-", "description: >-\n  Once more.", set()
    ),
    "a task that another one is transferred to": Change("config/tasks/hans.yaml", "[heuristic, ", "[", FINETUNE),
    "a task of another experiment": Change("config/tasks/rte.yaml", "[accuracy, f1]", "[accuracy]", set()),
    "masks of the perplexity": Change(
        EXPERIMENT, "splits: [dev]", "splits: [dev], mask_probability: 0.2", {"measure_perplexity", *FIGURES, *SUMMARY}
    ),
    "bins of the frequency": Change(
        CAUSAL_EXPERIMENT, "nats: 1.0", "nats: 2.0", {"measure_perplexity", *AFTER_CAUSAL_PERPLEXITY}
    ),
    "the frequency no longer asked for": Change(
        CAUSAL_EXPERIMENT,
        ", frequency_bin_nats: 1.0",
        "",
        {"measure_perplexity", *SUMMARY, *CAUSAL_FIGURES} - {"draw_figure token_frequency"},
    ),
    "packing of a causal model": Change(
        CAUSAL_EXPERIMENT, "{task: causal}", "{task: causal, segments: documents}", {*AFTER_CAUSAL, *COST}
    ),
    "the objective of a causal model": Change(
        CAUSAL_EXPERIMENT, "  objective: {task: causal}\n", "", {*AFTER_CAUSAL, *COST}
    ),
    "pairs per paradigm": Change(
        "config/suites/tiny_pairs.yaml",
        "paradigm: 6",
        "paradigm: 5",
        {"score_minimal_pairs", "analyse", *FIGURES, *SUMMARY, *COST},
    ),
    "pretraining steps": Change(EXPERIMENT, "steps: 12", "steps: 13", {*AFTER_TOKENS, *COST}),
    "dropout of the model": Change(
        "config/models/ltg_tiny.yaml",
        "hidden_size: 16",
        "hidden_size: 16\nhidden_dropout_prob: 0.2",
        {*AFTER_TOKENS, *COST},
    ),
    "a run's change of its model": Change(
        EXPERIMENT, "{layer_weighting: zero}", "{layer_weighting: biased}", {*AFTER_TOKENS, *COST}
    ),
    "a run's change written in its model's file": Change(
        "config/models/roberta_tiny.yaml", "family: roberta", "family: roberta\nlayer_weighting: zero", set()
    ),
    "masking of one run": Change(EXPERIMENT, "kind: whole_word", "kind: subword", {*AFTER_TOKENS, *COST}),
    "start of the output bias": Change(EXPERIMENT, "kind: unigram", "kind: none", {*AFTER_TOKENS, *COST}),
    "two values swapped": Change(
        EXPERIMENT,
        "steps: 12\n  batch_size: 8",
        "steps: 8\n  batch_size: 12",
        {*AFTER_TOKENS, *COST},
    ),
    "a value equal to another's": Change(
        EXPERIMENT,
        "evaluation_interval_steps: 6",
        "evaluation_interval_steps: 12",
        {*AFTER_TOKENS, *COST},
    ),
    "vocabulary size": Change(
        "config/tokenizers/tiny.yaml",
        "vocabulary_size: 400",
        "vocabulary_size: 380",
        {"train_tokenizer", *AFTER_TOKENIZER, *COST},
    ),
    "special tokens": Change(
        "config/tokenizers/tiny.yaml",
        "kind: byte_bpe",
        "kind: byte_bpe\nspecial_tokens: bnc",
        {"train_tokenizer", *AFTER_TOKENIZER},
    ),
    "a sweep of tokenizers": Change("config/tokenizer_sweeps/demo.yaml", "corpus: demo", "corpus: tiny", set()),
    "shard size": Change(
        "config/corpora/tiny.yaml",
        "documents_per_shard: 20",
        "documents_per_shard: 10",
        {"convert_corpus", *AFTER_CORPUS},
    ),
    "seed of the embedded sources": Change(
        "config/config.yaml",
        "embedded: {",
        "embedded: {seed: 9, ",
        {"generate_embedded_sources", "register_source", *EVERY_CORPUS, *AFTER_CORPUS},
    ),
    "processes of a conversion": Change(
        "config/config.yaml", "device: auto", "device: auto\n  corpus_threads: 3", set()
    ),
    "description of a corpus": Change("config/corpora/tiny.yaml", "One written", "A written", {*CARD, *EXPORT}),
    "licence of a raw input": Change("config/config.yaml", "licence: ", "licence: by agreement, ", set()),
    "reading of the vocabulary": Change(
        "config/vocabularies/demo.yaml",
        "kind: transcripts",
        "kind: transcripts\nreading: as_published",
        {"build_vocabulary", "select_text", *AFTER_SELECTION},
    ),
    "minimum of a selection": Change(
        "config/selections/demo_c4_sentences.yaml",
        "level: sentences",
        "level: sentences\nminimum_counted_words: 4",
        {"select_text", *AFTER_SELECTION},
    ),
    "share of held-out sequences": Change(
        "config/corpora/demo_reduced.yaml", "test: 0.05", "test: 0.1", AFTER_SELECTION
    ),
    "size of a sample": Change(
        "config/corpora/demo_books_sample.yaml", "characters: 20000", "characters: 10000", {"sample_corpus", *CARD}
    ),
    "reader option of a sampled corpus": Change(
        "config/corpora/demo_books.yaml",
        "lines_per_document: 50",
        "lines_per_document: 40",
        {"convert_corpus", "sample_corpus", *CARD},
    ),
    "a docstring of the library": Change("scripts/hatchery/analysis/settings.py", '"""', '"""Another word. ', set()),
    "a script": Change("scripts/run.py", "import argparse", "# touched\nimport argparse", set()),
    "a new model": Change(
        EXPERIMENT,
        "  elc_bert:",
        "  second: {model: ltg_tiny, seeds: [7]}\n  elc_bert:",
        {*AFTER_TOKENS, *COST},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_one_change_reruns_exactly_the_stages_that_depend_on_it(
    name: str, finished_project: Path, tmp_path: Path
) -> None:
    change = CHANGES[name]
    path = finished_project / change.file
    with own_copy_of_code(finished_project, change.file), changed(path, change.old, change.new):
        assert set(planned_rules(finished_project, *TINY, *CAUSAL)) == change.expected


@contextmanager
def own_copy_of_code(project: Path, file: str) -> Iterator[None]:
    """Replace the link to the checkout's code by a copy while a test edits a file of it."""
    import shutil

    link = project / Path(file).parts[0]
    if not link.is_symlink():
        yield
        return
    target = link.readlink()
    link.unlink()
    shutil.copytree(target, link, ignore=shutil.ignore_patterns("__pycache__"))
    try:
        yield
    finally:
        shutil.rmtree(link)
        link.symlink_to(target)


def test_a_change_of_one_run_leaves_the_others_alone(finished_project: Path) -> None:
    run = "elc_bert: {model: elc_tiny}"
    with changed(finished_project / EXPERIMENT, run, run.replace("}", ", pretraining: {steps: 5}}")):
        planned = planned_rules(finished_project, *TINY)
    assert planned["pretrain"] == planned["score_minimal_pairs"] == planned["measure_perplexity"] == 1
    assert planned["finetune"] == 3


def test_a_copied_and_a_renamed_experiment_find_all_models_and_scores(finished_project: Path) -> None:
    copy = finished_project / "config/experiments/copied.yaml"
    copy.write_bytes((finished_project / EXPERIMENT).read_bytes())
    try:
        assert planned_rules(finished_project, "results/copied/summary.csv") == {
            "collect_measurements": 1,
            "summarise": 1,
        }
    finally:
        copy.unlink()


def test_a_model_can_be_asked_for_by_its_readable_name(finished_project: Path) -> None:
    target = "results/tiny/pretraining/ltg_bert-s42/manifest.json"
    assert planned_rules(finished_project, target) == {}
    with changed(finished_project / EXPERIMENT, "steps: 12", "steps: 13"):
        assert planned_rules(finished_project, target) == {"pretrain": 1, "show_result": 1}


def test_a_finished_study_has_nothing_to_do_and_tells_equal_models_apart(study: Path) -> None:
    assert planned_rules(study, STUDY_PAGE) == {}
    with (study / "results/side/summary.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["experiment"], row["model"].partition("/")[0]) for row in rows} == {("tiny",) * 2, ("second",) * 2}
    means = {(row["model"], row["suite"], row["task"], row["metric"]): row["mean"] for row in rows}
    assert all(means[f"second/{key[0].partition('/')[2]}", *key[1:]] == mean for key, mean in means.items())
    page = (study / STUDY_PAGE).read_text(encoding="utf-8")
    assert "Side by side" in page and "../tiny/index.html" in page and "second/elc_bert against tiny/elc_bert" in page


def test_an_analysis_setting_reruns_no_model_and_no_join(study: Path) -> None:
    with changed(study / STUDY, "comparison: {}", "comparison: {against: tiny/random}"):
        assert set(planned_rules(study, STUDY_PAGE)) == {"analyse", "write_page"}


def test_a_changed_model_of_one_experiment_reruns_that_model_and_the_views_alone(study: Path) -> None:
    run = "elc_bert: {model: elc_tiny}"
    with changed(study / EXPERIMENT, run, run.replace("}", ", pretraining: {steps: 5}}")):
        planned = planned_rules(study, STUDY_PAGE)
    assert planned["pretrain"] == planned["score_minimal_pairs"] == planned["measure_perplexity"] == 1
    assert planned["collect_measurements"] == planned["join_experiments"] == 1
    # The tests over pairs of the experiment, and the analyses of the study.
    assert planned["summarise"] == planned["analyse"] == 2
    assert all(planned[figure] == 2 for figure in FIGURES)

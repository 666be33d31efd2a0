"""Changing one value reruns exactly the stages that depend on it; a comment reruns nothing."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
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
    rows_of,
)

from hatchery.analysis.studies import analyses_of
from hatchery.experiment.project import Project

pytestmark = pytest.mark.slow

EXPORT = {"export_model", "list_exported_models"}
SUMMARY = {"collect_measurements", "summarise", "write_provenance", "write_page", *EXPORT}
COST = {"write_cost", "write_page"}
# The tables of an experiment are written together, so any new number redraws all of its figures.
FINETUNE = {"finetune", "analyse", *FIGURES, *SUMMARY}
AFTER_PRETRAINING = {
    *("fill_sentences", "score_minimal_pairs", "analyse", "measure_perplexity", "finetune"),
    *(*FIGURES, *SUMMARY),
}
AFTER_TOKENS = {"pretrain", *AFTER_PRETRAINING}
AFTER_TOKENIZER = {"encode_corpus", "measure_surprisal", "join_surprisals", *AFTER_TOKENS, *CAUSAL_FIGURES}
AFTER_CAUSAL_PERPLEXITY = {*CAUSAL_FIGURES, *SUMMARY}
AFTER_CAUSAL = {
    *("pretrain", "fill_sentences", "measure_perplexity", "measure_surprisal", "join_surprisals"),
    *AFTER_CAUSAL_PERPLEXITY,
}
CARD = {"describe_corpus", "write_page"}
AFTER_CORPUS = {"train_tokenizer", *AFTER_TOKENIZER, *CARD}
AFTER_SELECTION = {"group_sequences", *CARD}
EVERY_CORPUS = {"build_vocabulary", "select_text", "group_sequences", "convert_corpus", "sample_corpus"}


CONFIG, CORPUS, TOKENIZER = "config/config.yaml", "config/corpora/tiny.yaml", "config/tokenizers/tiny.yaml"
PHENOMENA = "scripts/hatchery/views/figures/phenomena.py"
# Each entry is one edit of one file (old and new text), and the rules that the edit must rerun.
CHANGES: dict[str, tuple[str, str, str, set[str]]] = {
    "nodes of the cluster": (CONFIG, "\n  nodes: 1", "\n  nodes: 2", COST),
    "tasks of a fine-tuning job": (
        EXPERIMENT,
        "finetuning:",
        "finetuning:\n  tasks_per_job: 2",
        (FINETUNE - {"finetune"}) | {"finetune_tasks"},
    ),
    "description": (EXPERIMENT, "As small as", "So small as", {"write_page", *EXPORT}),
    "figure width": (EXPERIMENT, "width_inches: 8", "width_inches: 7", {*FIGURES, "write_page"}),
    "version of a figure": (PHENOMENA, "    version=", "    version=1", {"draw_figure phenomena", "write_page"}),
    "caption of a figure": (
        PHENOMENA,
        'caption="Accuracy on',
        'caption="The accuracy on',
        {"draw_figure phenomena", "write_page"},
    ),
    "fine-tuning rate": (EXPERIMENT, "learning_rates: [5.0e-4]", "learning_rates: [6.0e-4]", FINETUNE),
    "gradients of a batch in parts": (
        EXPERIMENT,
        "learning_rates: [5.0e-4]",
        "gradient_accumulation: 2, learning_rates: [5.0e-4]",
        FINETUNE,
    ),
    "a fine-tuning seed removed": (EXPERIMENT, "seeds: [1, 2]", "seeds: [2]", FINETUNE),
    "a named protocol": ("config/protocols/ltg_bert_probing.yaml", "dropout: 0.25", "dropout: 0.2", FINETUNE),
    "a task that another one is transferred to": ("config/tasks/hans.yaml", "[heuristic, ", "[", FINETUNE),
    "masks of the perplexity": (
        EXPERIMENT,
        "splits: [dev]",
        "splits: [dev], mask_probability: 0.2",
        {"measure_perplexity", *FIGURES, *SUMMARY},
    ),
    "bins of the frequency": (
        CAUSAL_EXPERIMENT,
        "nats: 1.0",
        "nats: 2.0",
        {"measure_perplexity", *AFTER_CAUSAL_PERPLEXITY},
    ),
    "the frequency no longer asked for": (
        CAUSAL_EXPERIMENT,
        ", frequency_bin_nats: 1.0",
        "",
        {"measure_perplexity", *SUMMARY, *CAUSAL_FIGURES} - {"draw_figure token_frequency"},
    ),
    "packing of a causal model": (
        CAUSAL_EXPERIMENT,
        "{task: causal}",
        "{task: causal, segments: documents}",
        {*AFTER_CAUSAL, *COST},
    ),
    "the objective of a causal model": (CAUSAL_EXPERIMENT, "  objective: {task: causal}\n", "", {*AFTER_CAUSAL, *COST}),
    "pairs per paradigm": (
        "config/suites/tiny_pairs.yaml",
        "paradigm: 6",
        "paradigm: 5",
        {"score_minimal_pairs", "analyse", *FIGURES, *SUMMARY},
    ),
    "pretraining steps": (EXPERIMENT, "steps: 12", "steps: 13", {*AFTER_TOKENS, *COST}),
    "dropout of the model": (
        "config/models/ltg_tiny.yaml",
        "hidden_size: 16",
        "hidden_size: 16\nhidden_dropout_prob: 0.2",
        {*AFTER_TOKENS, *COST},
    ),
    "a run's change of its model": (
        EXPERIMENT,
        "{layer_weighting: zero}",
        "{layer_weighting: biased}",
        {*AFTER_TOKENS, *COST},
    ),
    "masking of one run": (EXPERIMENT, "kind: whole_word", "kind: subword", {*AFTER_TOKENS, *COST}),
    "start of the output bias": (EXPERIMENT, "kind: unigram", "kind: none", {*AFTER_TOKENS, *COST}),
    "two values swapped": (
        EXPERIMENT,
        "steps: 12\n  batch_size: 8",
        "steps: 8\n  batch_size: 12",
        {*AFTER_TOKENS, *COST},
    ),
    "a value equal to another's": (
        EXPERIMENT,
        "evaluation_interval_steps: 6",
        "evaluation_interval_steps: 12",
        {*AFTER_TOKENS, *COST},
    ),
    "vocabulary size": (
        TOKENIZER,
        "vocabulary_size: 400",
        "vocabulary_size: 380",
        {"train_tokenizer", *AFTER_TOKENIZER, *COST},
    ),
    "special tokens": (
        TOKENIZER,
        "kind: byte_bpe",
        "kind: byte_bpe\nspecial_tokens: bnc",
        {"train_tokenizer", *AFTER_TOKENIZER},
    ),
    "shard size": (CORPUS, "documents_per_shard: 20", "documents_per_shard: 10", {"convert_corpus", *AFTER_CORPUS}),
    "seed of the embedded sources": (
        CONFIG,
        "embedded: {",
        "embedded: {seed: 9, ",
        {"generate_embedded_sources", "register_source", *EVERY_CORPUS, *AFTER_CORPUS},
    ),
    "description of a corpus": (CORPUS, "One written", "A written", {*CARD, *EXPORT}),
    "reading of the vocabulary": (
        "config/vocabularies/demo.yaml",
        "kind: transcripts",
        "kind: transcripts\nreading: as_published",
        {"build_vocabulary", "select_text", *AFTER_SELECTION},
    ),
    "minimum of a selection": (
        "config/selections/demo_c4_sentences.yaml",
        "level: sentences",
        "level: sentences\nminimum_counted_words: 4",
        {"select_text", *AFTER_SELECTION},
    ),
    "share of held-out sequences": ("config/corpora/demo_reduced.yaml", "test: 0.05", "test: 0.1", AFTER_SELECTION),
    "size of a sample": (
        "config/corpora/demo_books_sample.yaml",
        "characters: 20000",
        "characters: 10000",
        {"sample_corpus", *CARD},
    ),
    "reader option of a sampled corpus": (
        "config/corpora/demo_books.yaml",
        "lines_per_document: 50",
        "lines_per_document: 40",
        {"convert_corpus", "sample_corpus", *CARD},
    ),
    "a new model": (
        EXPERIMENT,
        "  elc_bert:",
        "  second: {model: ltg_tiny, seeds: [7]}\n  elc_bert:",
        {*AFTER_TOKENS, *COST},
    ),
}


# Edits that no result depends on.
WITHOUT_EFFECT = {
    "comments and key order": (
        EXPERIMENT,
        "corpus: tiny\ntokenizer: tiny",
        "# why\ntokenizer: tiny  # because\ncorpus: tiny",
    ),
    "a number written differently": (EXPERIMENT, "5.0e-4", "0.0005"),
    "a default written out": (EXPERIMENT, "steps: 12", "steps: 12\n  precision: auto"),
    "checkpoint interval": (CONFIG, "checkpoint_interval_steps: 100", "checkpoint_interval_steps: 7"),
    "threads": (CONFIG, "evaluation_threads: 1", "evaluation_threads: 2"),
    "partition of the cluster": (CONFIG, "\n  partition: null", "\n  partition: main"),
    "another experiment": ("config/experiments/strict.yaml", "steps: 15625", "steps: 15626"),
    "description of a protocol": (
        "config/protocols/ltg_bert_probing.yaml",
        "description: >-",
        "description: >-\n  Once more.",
    ),
    "a task of another experiment": ("config/tasks/rte.yaml", "[accuracy, f1]", "[accuracy]"),
    "a run's change written in its model's file": (
        "config/models/roberta_tiny.yaml",
        "family: roberta",
        "family: roberta\nlayer_weighting: zero",
    ),
    "a sweep of tokenizers": ("config/tokenizer_sweeps/demo.yaml", "corpus: demo", "corpus: tiny"),
    "processes of a conversion": (CONFIG, "device: auto", "device: auto\n  corpus_threads: 3"),
    "licence of a raw input": (CONFIG, "licence: ", "licence: by agreement, "),
    "a docstring of the library": ("scripts/hatchery/analysis/settings.py", '"""', '"""Another word. '),
    "a script": ("scripts/run.py", "import argparse", "# touched\nimport argparse"),
    "a command": ("Snakefile", "2>&1", " 2>&1"),
}


def test_nothing_is_rerun_after_edits_that_no_result_depends_on(finished_project: Path) -> None:
    def planned(edits: Iterable[tuple[str, str, str]]) -> set[str]:
        with ExitStack() as stack:
            for file, old, new in edits:
                stack.enter_context(own_copy_of_code(finished_project, file))
                stack.enter_context(changed(finished_project / file, old, new))
            return set(planned_rules(finished_project, *TINY, *CAUSAL))

    # Plan all edits together. Only if this plan has jobs, plan each edit alone, so that the message names the edit.
    if together := planned(WITHOUT_EFFECT.values()):
        alone = {name: rules for name, edit in WITHOUT_EFFECT.items() if (rules := planned([edit]))}
        pytest.fail(f"all edits together rerun {together}; alone: {alone}")


@pytest.mark.parametrize("name", CHANGES)
def test_one_change_reruns_exactly_the_stages_that_depend_on_it(name: str, finished_project: Path) -> None:
    file, old, new, expected = CHANGES[name]
    with own_copy_of_code(finished_project, file), changed(finished_project / file, old, new):
        assert set(planned_rules(finished_project, *TINY, *CAUSAL)) == expected


@contextmanager
def own_copy_of_code(project: Path, file: str) -> Iterator[None]:
    """Replace the link to the checkout's code by a copy while a test edits a file of it."""
    link = project / Path(file).parts[0]
    if not link.is_symlink():
        yield
        return
    target = link.readlink()
    link.unlink()
    if target.is_dir():
        shutil.copytree(target, link, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(target, link)
    try:
        yield
    finally:
        shutil.rmtree(link) if target.is_dir() else link.unlink()
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
        # The page needs filled sentences, which belong to the shared models, too.
        assert "fill_sentences" not in planned_rules(finished_project, "results/copied/index.html")
    finally:
        copy.unlink()


def test_a_model_can_be_asked_for_by_its_readable_name(finished_project: Path) -> None:
    target = "results/tiny/pretraining/ltg_bert-s42/manifest.json"
    assert planned_rules(finished_project, target) == {}
    with changed(finished_project / EXPERIMENT, "steps: 12", "steps: 13"):
        assert planned_rules(finished_project, target) == {"pretrain": 1, "show_result": 1}


def test_a_finished_study_has_nothing_to_do_and_tells_equal_models_apart(study: Path) -> None:
    assert planned_rules(study, STUDY_PAGE) == {}
    rows = rows_of(study / "results/side/summary.csv")
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
    assert planned["summarise"] == 2
    # All analyses of the experiment and of the study read the pairs or rows that the model judged.
    project = Project(study / "config")
    assert planned["analyse"] == sum(len(analyses_of(project, name)) for name in ("tiny", "side"))
    assert all(planned[figure] == 2 for figure in FIGURES)

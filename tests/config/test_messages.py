"""Every mistake in a configuration file ends in one line: file, key, what was given, what is allowed, nearest match."""

import shutil
from pathlib import Path

import pytest

from hatchery.config.project import Project
from hatchery.errors import ConfigError


@pytest.fixture
def configuration(tmp_path: Path, repository: Path) -> Path:
    folder = tmp_path / "config"
    shutil.copytree(repository / "config", folder)
    return folder


def edit(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{name} no longer holds {old!r}: mend this test"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


DEMO = "experiments/demo.yaml"

MISTAKES = {
    "unknown key": (DEMO, "batch_size: 32", "batchsize: 32\n  batch_size: 32", "pretraining.batchsize: unknown key"),
    "nearest key": (DEMO, "sequence_length", "sequence_lenght", "did you mean 'sequence_length'?"),
    "wrong type": (DEMO, "steps: 1700", "steps: many", "pretraining.steps: got 'many', expected a whole number"),
    "a float where a whole number belongs": (DEMO, "steps: 1700", "steps: 7.5", "got 7.5, expected a whole number"),
    "out of range": (DEMO, "batch_size: 32", "batch_size: 0", "pretraining.batch_size: got 0, expected at least 1"),
    "missing key": (DEMO, "  steps: 1700\n", "", "pretraining.steps: the key is missing"),
    "unknown choice": (
        "tokenizers/demo.yaml",
        "kind: wordpiece",
        "kind: wordpice",
        "kind: got 'wordpice', allowed are: wordpiece, byte_bpe, unigram; did you mean 'wordpiece'?",
    ),
    "unknown corpus": (DEMO, "corpus: demo", "corpus: dem", "corpus: got 'dem', no such corpus"),
    "unknown tokenizer": (DEMO, "tokenizer: demo", "tokenizer: damo", "no such tokenizer; there are:"),
    "unknown model": (DEMO, "model: ltg_demo", "model: ltg_dema", "runs.random.model: got 'ltg_dema', no such model"),
    "unknown suite": (DEMO, "[demo_pairs]", "[demo_pair]", "minimal_pairs: got 'demo_pair', no such suite"),
    "unknown task": (DEMO, "demo_entailment: {}", "demo_entail: {}", "got 'demo_entail', no such task"),
    "unknown data": ("suites/blimp.yaml", "data: blimp", "data: blump", "data: got 'blump', not under `data`"),
    "duplicate key": (DEMO, "corpus: demo", "corpus: demo\ncorpus: demo", "the key 'corpus' occurs twice"),
    "not YAML": (DEMO, "runs:", "runs: [", "demo.yaml:"),
    "override of the wrong type": (DEMO, "{steps: 0}", "{steps: none}", "runs.random.pretraining.steps: got 'none'"),
    "heads do not divide": ("models/ltg_mini.yaml", "heads: 4", "heads: 3", "expected a divisor of hidden_size (128)"),
    "unknown family": (
        "models/ltg_mini.yaml",
        "hidden_size",
        "family: robrta\nhidden_size",
        "family: got 'robrta', allowed are: ltg, roberta; did you mean 'roberta'?",
    ),
    "a key of the other family": (
        "models/ltg_mini.yaml",
        "hidden_size",
        "embedding_size: 32\nhidden_size",
        "embedding_size: unknown key",
    ),
    "unknown change of a model": (
        DEMO,
        "{model: elc_demo}",
        "{model: elc_demo, model_changes: {layer_weightin: zero}}",
        "runs.elc_bert.model_changes: layer_weightin: unknown key",
    ),
    "a change to another family": (
        DEMO,
        "{model: elc_demo}",
        "{model: elc_demo, model_changes: {family: roberta}}",
        "runs.elc_bert.model_changes: family: a run cannot change it",
    ),
    "a change that does not fit the model": (
        DEMO,
        "{model: elc_demo}",
        "{model: elc_demo, model_changes: {num_attention_heads: 5}}",
        "num_attention_heads: got 5, expected a divisor of hidden_size (96)",
    ),
    "affine norms of the final model": (
        "models/ltg_mini.yaml",
        "hidden_size",
        "block_norm_affine: true\nhidden_size",
        "block_norm_affine: got True, expected null with normalisation normformer",
    ),
    "pairs of packed text": (
        DEMO,
        "{mask_probability: 0.4}",
        "{mask_probability: 0.4, segments: packed, sentence_pairs: order}",
        "objective.sentence_pairs: got 'order' with segments 'packed', expected none",
    ),
    "predicted padding of packed text": (
        DEMO,
        "{mask_probability: 0.4}",
        "{mask_probability: 0.4, segments: packed, padding_in_loss: true}",
        "objective.padding_in_loss: got true, expected false",
    ),
    "scale of a tied matrix": (
        DEMO,
        "  schedule: {warm",
        "  output_bias: {kind: unigram, weight_scale: frobenius}\n  schedule: {warm",
        "output_bias.weight_scale: got 'frobenius', expected own",
    ),
    "unknown start of the bias": (
        DEMO,
        "  schedule: {warm",
        "  output_bias: {kind: unigramm}\n  schedule: {warm",
        "output_bias.kind: got 'unigramm', allowed are: zero, unigram, none; did you mean 'unigram'?",
    ),
    "metric that the task lacks": (
        DEMO,
        "demo_acceptability: {}",
        "demo_acceptability: {selection_metric: f1}",
        "selection_metric: got 'f1', the metrics of this task are: accuracy, mcc",
    ),
    "two sources of one name": (
        "corpora/demo.yaml",
        "name: cbt,",
        "name: bnc,",
        "the name 'bnc' is given 2 times",
    ),
    "reader option": ("corpora/demo.yaml", "{corpus: cbt}", "{corpus: cbd}", "sources.3.options.corpus: got 'cbd'"),
    "unknown protocol": (
        "experiments/strict.yaml",
        "{base: elc_bert}",
        "{base: elc_bret}",
        "finetuning.protocol.base: got 'elc_bret', no such protocol; there are: babylm_official, elc_bert",
    ),
    "published row of no run": (
        "experiments/strict.yaml",
        "    elc_zero: elc_bert_base_zero",
        "    elc_zeros: elc_bert_base_zero",
        "published.rows: got 'elc_zeros', no such run; there are: ltg_bert, elc_biased, elc_zero, elc_normalized, "
        "elc_weighted_output; did you mean 'elc_zero'?",
    ),
    "a seed twice": (DEMO, "seeds: [12, 642, 369]", "seeds: [12, 12]", "finetuning.protocol.seeds"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line_that_names_file_key_and_what_is_allowed(
    mistake: str, configuration: Path
) -> None:
    name, old, new, expected = MISTAKES[mistake]
    edit(configuration, name, old, new)

    with pytest.raises(ConfigError) as caught:
        load_everything(configuration)

    lines = str(caught.value).splitlines()
    matching = [line for line in lines if expected in line]
    assert matching, f"expected {expected!r} in {lines}"
    assert all(line.startswith(str(configuration)) for line in lines), lines


def load_everything(folder: Path) -> None:
    project = Project(folder)
    for kind in ("corpus", "tokenizer", "model", "suite", "task", "experiment"):
        for name in project.names(kind):
            project.block(kind, name)


def test_every_shipped_file_is_valid(repository: Path) -> None:
    load_everything(repository / "config")


def test_an_unknown_experiment_names_the_nearest(repository: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'strict'"):
        Project(repository / "config").experiment("strcit")


def test_an_unknown_cell_names_those_that_exist(repository: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'ltg_bert-s42'"):
        Project(repository / "config").cell("demo", "ltg_bart-s42")


def test_a_reserved_experiment_name_is_refused(configuration: Path) -> None:
    shutil.copy(configuration / DEMO, configuration / "experiments/tokens.yaml")
    with pytest.raises(ConfigError, match="cannot be an experiment's name"):
        Project(configuration).experiment("tokens")


def test_a_broken_experiment_hurts_only_itself(configuration: Path) -> None:
    edit(configuration, DEMO, "steps: 1700", "steps: many")
    project = Project(configuration)
    assert project.experiment("strict")["corpus"] == "babylm_100M"
    with pytest.raises(ConfigError):
        project.experiment("demo")

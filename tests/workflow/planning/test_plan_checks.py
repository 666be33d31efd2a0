"""All mistakes of a plan are told at once, wherever they are, and before anything runs."""

import re
from pathlib import Path
from typing import get_args

import pytest

from hatchery.errors import ConfigError
from hatchery.evaluation.metrics import METRICS
from hatchery.evaluation.metrics.scored import metric_called
from hatchery.evaluation.tasks.settings import HeadKind
from hatchery.experiment.project import Project
from hatchery.modeling.heads.registry import HEADS
from hatchery.settings.problems import Problems
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.workflow.plan_checks import collect_problems

EXPERIMENT = """
corpus: {corpus}
tokenizer: mine
pretraining: {{steps: 10, batch_size: 4, sequence_length: 64}}
runs:
  ltg_bert: {{model: mine}}
finetuning: {{tasks: {{judged: {{}}}}}}
"""
CORPUS = "sources: [{name: a, data: my_text, reader: plain_text, options: {encoding: utf8ish}}]\n"
TOKENIZER = "corpus: mine\nkind: byte_bpe\nvocabulary_size: 400\nmin_frequency: 2\npre_tokenizer: metaspace\n"
MODEL = """
hidden_size: 32
intermediate_size: 32
num_hidden_layers: 1
num_attention_heads: 4
position_embedding: absolute
max_position_embeddings: 32
"""
TASK = """
data: my_text
format: rows
files: {{train: train.jsonl, validation: dev.jsonl}}
fields: [{field}]
labels: [good, bad]
metrics: [accuracy]
"""
ROWS = '{"sentence": "It rains.", "label": "good"}\n{"sentence": "Rains it.", "label": "bad"}\n'


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        kind, _, block = name.partition("__")
        (folder / kind / f"{block}.yaml").write_text(text, encoding="utf-8")


def give_data(configuration: Path, rows: str = ROWS) -> Path:
    data = configuration.parent / "data"
    data.mkdir()
    (data / "train.jsonl").write_text(rows, encoding="utf-8")
    (data / "dev.jsonl").write_text(ROWS, encoding="utf-8")
    path = configuration / "config.yaml"
    text = path.read_text(encoding="utf-8")
    assert "  my_text:\n    path: null" in text
    path.write_text(text.replace("  my_text:\n    path: null", f"  my_text:\n    path: {data}"), encoding="utf-8")
    return data


def problems(configuration: Path, experiment: str = "mine") -> list[str]:
    found = Problems()
    collect_problems(Project(configuration), [("experiment", experiment)], found)
    return found.lines


@pytest.mark.parametrize("experiment", ["demo", "strict", "bnc", "my_text"])
def test_what_is_shipped_has_no_problem(experiment: str, repository: Path) -> None:
    assert problems(repository / "config", experiment) == []


def test_mistakes_in_five_files_are_told_together(configuration: Path) -> None:
    give_data(configuration)
    write(
        configuration,
        experiments__mine=EXPERIMENT.format(corpus="mine"),
        corpora__mine=CORPUS,
        tokenizers__mine=TOKENIZER,
        models__mine=MODEL,
        tasks__judged=TASK.format(field="sentense"),
    )

    lines = problems(configuration)

    expected = [
        ("experiments/mine.yaml", "pretraining.sequence_length allows sequences of 64 tokens"),
        ("experiments/mine.yaml", "max_length of finetuning.tasks.judged allows sequences of 128 tokens"),
        ("corpora/mine.yaml", "there is no encoding of text called 'utf8ish'"),
        ("tokenizers/mine.yaml", "byte_bpe needs byte_level, got 'metaspace'"),
        ("tasks/judged.yaml", "train.jsonl:1: the field 'sentense' of the task 'judged' is missing"),
    ]
    for file, words in expected:
        assert [line for line in lines if line.startswith(f"{configuration / file}: ") and words in line], lines
    assert len(lines) == len(expected), lines


def test_all_names_that_an_experiment_gets_wrong_are_told_together(configuration: Path) -> None:
    write(configuration, experiments__mine=EXPERIMENT.format(corpus="demoo"))

    lines = problems(configuration)

    keys = [line.removeprefix(f"{configuration}/experiments/mine.yaml: ").partition(":")[0] for line in lines]
    assert keys == ["corpus", "tokenizer", "runs.ltg_bert.model", "finetuning.tasks"]
    assert "did you mean 'demo'?" in lines[0]


def test_a_label_that_the_task_does_not_list_is_told(configuration: Path) -> None:
    give_data(configuration, ROWS + '{"sentence": "Oh.", "label": "odd"}\n')
    write(
        configuration,
        experiments__mine=EXPERIMENT.format(corpus="demo")
        .replace("mine", "demo")
        .replace("{model: demo}", "{model: ltg_demo}"),
        tasks__judged=TASK.format(field="sentence"),
    )

    (line,) = problems(configuration)

    assert line.startswith(f"{configuration}/tasks/judged.yaml: train.jsonl:3: the label 'odd' in 'label' is unknown")


def test_a_circle_of_corpora_names_the_way(configuration: Path) -> None:
    sample = "sample: {{corpus: {}, characters: 100}}\n"
    write(configuration, corpora__one=sample.format("two"), corpora__two="sample: {corpus: demo, size_of: one}\n")
    found = Problems()

    collect_problems(Project(configuration), [("corpus", "one")], found)

    assert f"{configuration}/corpora/one.yaml: the corpus is made from itself: one -> two -> one" in found.lines[0]


def test_every_metric_that_is_marked_can_be_named_and_found() -> None:
    assert {"accuracy", "clean_micro_f1", "mean_of_pearson_and_spearman", "record_f1"} <= set(METRICS)
    assert [metric_called(name).__name__ for name in METRICS] == list(METRICS)


def test_the_heads_of_a_task_are_those_of_the_registry() -> None:
    assert set(get_args(HeadKind)) == set(HEADS)


def test_lamb_and_zero_stages_are_told_before_anything_runs(configuration: Path) -> None:
    path = configuration / "config.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("\ncompute:\n", "\ncompute:\n  zero_stage: 2\n", 1), "utf-8"
    )
    with pytest.raises(
        ConfigError, match=r"compute\.zero_stage: got 2, only 0 is possible: .* expected optimizer.name"
    ):
        Project(configuration).check("experiment", "demo")


def test_compute_that_whole_layers_and_batches_of_tokens_meet_is_told_before_anything_runs(configuration: Path) -> None:
    path = configuration / "config.yaml"
    before = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"\n  micro_batch_size: .*", "\n  micro_batch_size: 48", before), "utf-8")
    # A batch of translation has as many pairs as its tokens happen to be.
    Project(configuration).check("experiment", "natural_bias_mini")
    path.write_text(before.replace("\ncompute:\n", "\ncompute:\n  zero_stage: 3\n", 1), "utf-8")
    with pytest.raises(ConfigError, match=r"compute\.zero_stage: got 3, at most 2 is possible with translation"):
        Project(configuration).check("experiment", "natural_bias_mini")


def test_a_wrong_column_of_minimal_pairs_is_told_before_anything_runs(configuration: Path) -> None:
    data = give_data(configuration)
    (data / "pairs.csv").write_text("right,wrong\nIt rains.,Rains it.\n", encoding="utf-8")
    suite = "data: my_text\nformat: rows\nfiles: '*.csv'\ncolumns: {good: right, bad: worse}\n"
    write(configuration, suites__mine=suite)
    found = Problems()
    collect_problems(Project(configuration), [("suite", "mine")], found)
    assert found.lines == [
        f"{configuration}/suites/mine.yaml: pairs.csv:2: the field 'worse' is missing; the record has: right, wrong"
    ]


def test_a_tokenizer_that_would_end_every_translation_is_refused_with_its_file(
    configuration: Path, tmp_path: Path
) -> None:
    assert problems(configuration, "my_translations") == []
    file = configuration / "tokenizers/my_translations.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("special_tokens: roberta", "special_tokens: babylm"), encoding="utf-8")
    where = f"{configuration}/experiments/my_translations.yaml: tokenizer: 'my_translations' cannot translate; {file}:"
    ends = "the token [PAR], which would end every translation; expected the special tokens roberta"
    assert problems(configuration, "my_translations") == [f"{where} special_tokens: got 'babylm', with {ends}"]
    for special, expected in (("bnc", [f"{where} path: got '{tmp_path}/bnc.json', which has {ends}"]), ("roberta", [])):
        settings = TokenizerSettings(kind="byte_bpe", vocabulary_size=300, min_frequency=1, special_tokens=special)
        train(["It rains."], settings).save(str(tmp_path / f"{special}.json"))
        file.write_text(f"path: {tmp_path}/{special}.json\nvocabulary_size: 300\n", encoding="utf-8")
        assert problems(configuration, "my_translations") == expected

"""All mistakes of a plan are reported together, from all files, before anything runs."""

import re
import shutil
import sys
from pathlib import Path
from typing import get_args

import pytest

from hatchery.errors import ConfigError
from hatchery.evaluation.metrics import METRICS
from hatchery.evaluation.metrics.scored import metric_called
from hatchery.evaluation.tasks.settings import HeadKind
from hatchery.experiment.project import Project
from hatchery.modeling.heads.registry import HEADS
from hatchery.settings.fields import NAME
from hatchery.settings.problems import Problems
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.workflow.open_workflow import Request, read_request
from hatchery.workflow.plan_checks import collect_problems, requested_blocks, unknown_target
from hatchery.workflow.registry import WILDCARDS

PATTERNS = [
    "results/{experiment}/summary.csv",
    "results/{experiment}/index.html",
    "results/{experiment}/figures/{figure}.svg",
    "results/{experiment}/export/{run}/manifest.json",
    "results/corpora/{corpus}/manifest.json",
    "results/tokens/{corpus}/{tokenizer}/manifest.json",
    "results/tokenizer_sweeps/{sweep}/manifest.json",
    "results/settings/{digest}.json",
]

MISSPELT = {
    "results/demo/figures/phenomana.svg": "unknown figure 'phenomana'; did you mean 'phenomena'?",
    "sumarise": "did you mean 'summarise'?",
    "results/tokens/demo/demoo/manifest.json": "got 'demoo', no such tokenizer; did you mean 'demo'? There are:",
    "results/demo/sumary.csv": "results/<experiment>/summary.csv or index.html, with one of the experiments babylm_",
}


@pytest.mark.parametrize("target", MISSPELT)
def test_a_target_that_nothing_makes_names_the_nearest(target: str, repository: Path) -> None:
    message = unknown_target(target, PATTERNS, ["summarise", "all"], Project(repository / "config"))
    assert MISSPELT[target] in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("file", "target", "expected"),
    [
        ("my-exp.yaml", "my-exp", "rename the file to my_exp.yaml"),
        ("größe.yaml", "größe", "rename the file to grosse.yaml"),
        ("x.yml", "x", "expected the ending .yaml; rename the file to x.yaml"),
        ("x" * 151 + ".yaml", "x" * 151, f"rename the file to {'x' * 150}.yaml"),
    ],
)
def test_a_file_with_a_wrong_name_is_told_to_be_renamed(
    file: str, target: str, expected: str, configuration: Path
) -> None:
    shutil.copy(configuration / "experiments/demo.yaml", configuration / "experiments" / file)
    message = unknown_target(f"results/{target}/summary.csv", PATTERNS, [], Project(configuration))
    assert message.startswith(f"{configuration / 'experiments' / file}: expected ")
    assert expected in message


def test_a_block_with_a_wrong_name_is_told_where_it_is_named(configuration: Path) -> None:
    shutil.copy(configuration / "corpora/demo.yaml", configuration / "corpora/my-corpus.yaml")
    path = configuration / "experiments/demo.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("corpus: demo", "corpus: my-corpus"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"my-corpus\.yaml: expected a name of .*; rename the file to my_corpus"):
        Project(configuration).check("experiment", "demo")


@pytest.mark.parametrize(
    ("target", "blocks"),
    [
        ("demo/summary.csv", [("experiment", "demo")]),
        ("tokens/bnc/bnc/manifest.json", [("corpus", "bnc"), ("tokenizer", "bnc")]),
        ("tokenizer_sweeps/demo/manifest.json", [("tokenizer_sweep", "demo")]),
        ("settings/0123456789abcdef.json", []),
        ("models/ltg-0123.json", []),
    ],
)
def test_a_target_that_is_made_leads_to_its_blocks(
    target: str, blocks: list[tuple[str, str]], repository: Path
) -> None:
    patterns = [*PATTERNS, "results/models/{model}.json"]
    assert requested_blocks(f"results/{target}", patterns, Project(repository / "config")) == blocks


def test_the_names_of_blocks_are_those_that_the_rules_take() -> None:
    assert {WILDCARDS[kind] for kind in ("experiment", "corpus", "tokenizer", "sweep")} == {NAME}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-n", "results/demo/summary.csv"], Request(("results/demo/summary.csv",), "local", True)),
        (["--cores", "2", "--report", "report.html", "--", "a", "b"], Request(("a", "b"), "local", False)),
        (["--profile", "slurm", "a"], Request(("a",), "slurm", False, 5)),
        (["--config", "x=1", "--until", "pretrain", "-c1"], Request((), "local", False)),
        (["--unlock", "a"], None),
    ],
)
def test_targets_are_told_from_the_values_of_options(
    words: list[str], expected: Request | None, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    assert read_request(["/somewhere/bin/snakemake", *words]) == expected
    assert read_request(["/lib/snakemake/__main__.py", *words]) == expected
    assert read_request([sys.executable, *words]) is None


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
        ("corpora/mine.yaml", "got 'utf8ish', expected a text encoding"),
        (
            "tokenizers/mine.yaml",
            "pre_tokenizer: got 'metaspace', expected byte_level or gpt_bert, because the kind byte_bpe",
        ),
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


def test_a_circle_of_corpora_names_the_way(configuration: Path) -> None:
    sample = "sample: {{corpus: {}, characters: 100}}\n"
    write(configuration, corpora__one=sample.format("two"), corpora__two="sample: {corpus: demo, size_of: one}\n")
    found = Problems()

    collect_problems(Project(configuration), [("corpus", "one")], found)

    assert f"{configuration}/corpora/one.yaml: the corpus is made from itself: one -> two -> one" in found.lines[0]


def test_every_metric_that_is_marked_can_be_named_and_found_and_the_heads_are_those_of_the_registry() -> None:
    assert {"accuracy", "clean_micro_f1", "mean_of_pearson_and_spearman", "record_f1"} <= set(METRICS)
    assert [metric_called(name).__name__ for name in METRICS] == list(METRICS)
    assert set(get_args(HeadKind)) == set(HEADS)


def test_compute_that_cannot_be_is_told_before_anything_runs(configuration: Path) -> None:
    path = configuration / "config.yaml"
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace("\ncompute:\n", "\ncompute:\n  zero_stage: 2\n", 1), "utf-8")
    lamb = r"compute\.zero_stage: got 2, expected 0 with optimizer\.name lamb: .*; use adamw"
    with pytest.raises(ConfigError, match=lamb):
        Project(configuration).check("experiment", "demo")
    path.write_text(before.replace("\ncompute:\n", "\ncompute:\n  zero_stage: 3\n", 1), "utf-8")
    with pytest.raises(
        ConfigError, match=r"compute\.zero_stage: got 3, expected at most 2 with the objective translation, because"
    ):
        Project(configuration).check("experiment", "natural_bias_mini")
    # The number of pairs in a translation batch depends on their tokens, so any micro-batch size is accepted.
    path.write_text(re.sub(r"\n  micro_batch_size: .*", "\n  micro_batch_size: 48", before), "utf-8")
    Project(configuration).check("experiment", "natural_bias_mini")


def test_a_wrong_column_of_minimal_pairs_is_told_before_anything_runs(configuration: Path) -> None:
    data = give_data(configuration)
    (data / "pairs.csv").write_text("right,wrong\nIt rains.,Rains it.\nNA,NA\n", encoding="utf-8")
    texts = "surprisal: {pairs: {data: my_text, files: '*.csv', column: right}}"
    suite = "data: my_text\nformat: rows\nfiles: '*.csv'\ncolumns: {good: right, bad: worse}\n"
    write(
        configuration,
        suites__mine=suite,
        suites__broken="data: my_text\nformat: csv\n",
        experiments__mine=f"base: demo\nminimal_pairs: [broken, mine]\n{texts}\n",
        experiments__other="base: mine\nminimal_pairs: [mine]\n",
        studies__both="experiments: [mine, other]\n",
    )
    found = Problems()
    notes = collect_problems(Project(configuration), [("study", "both")], found)
    wrong = f"{configuration}/suites/mine.yaml: pairs.csv:2: the field 'worse' is missing; the record has: right, wrong"
    assert [line for line in found.lines if "mine.yaml: pairs" in line] == [wrong], "once, beside a broken suite"
    assert any(line.startswith(f"{configuration}/suites/broken.yaml: format: got 'csv'") for line in found.lines)
    assert [re.sub("missing.*", "", note) for note in notes] == [
        f"{configuration}/experiments/{name}.yaml: surprisal.pairs: 1 cell is " for name in ("mine", "other")
    ]


def test_wrong_files_of_people_are_told_before_anything_runs(configuration: Path) -> None:
    data = give_data(configuration)
    (data / "times.csv").write_text("item,word\nIt,rains\n", encoding="utf-8")
    (data / "children.csv").write_text("word,16\ndog,0.5\n", encoding="utf-8")
    (data / "contexts.json").write_text('{"dog": ["a"]}', encoding="utf-8")
    acquired = "{data: my_text, children: children.csv, contexts: contexts.json}"
    entry = f"base: demo\nreading: {{data: my_text, files: '*.csv'}}\nacquisition: {acquired}\n"
    write(configuration, experiments__mine=entry)

    def told() -> list[str]:
        return [
            line
            for line in problems(configuration)
            if re.search(r"mine\.yaml: (reading|acquisition): (/|contexts|times)", line)
        ]

    words, contexts = told()
    assert words.startswith(f"{configuration}/experiments/mine.yaml: reading: {data}: expected one file that matches")
    assert contexts.startswith(f"{configuration}/experiments/mine.yaml: acquisition: contexts.json: expected ")
    write(configuration, experiments__mine=entry.replace("'*.csv'", "times.csv").replace("children.csv", "times.csv"))
    words, children = told()
    assert "reading: times.csv:2: the field 'Subtlex_log10' is missing; the record has: item, word" in words
    assert "acquisition: times.csv:2: no column has an age in months" in children


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

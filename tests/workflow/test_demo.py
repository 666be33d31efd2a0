"""The demo means something: minimal pairs go from chance to far above it, and pretraining helps fine-tuning."""

from pathlib import Path

import pytest
from projects import LINKED, rows_of, snakemake

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> list[dict[str, str]]:
    folder = tmp_path_factory.mktemp("demo")
    for name in (*LINKED, "config"):
        (folder / name).symlink_to((repository / name).resolve())
    result = snakemake(folder, "--cores", "2", "results/demo/summary.csv", timeout=1800)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return rows_of(folder / "results/demo/summary.csv")


def mean(rows: list[dict[str, str]], model: str, suite: str, task: str) -> float:
    values = [
        float(row["mean"])
        for row in rows
        if (row["model"], row["suite"], row["task"], row["metric"]) == (model, suite, task, "accuracy_percent")
    ]
    assert len(values) == 1, (model, suite, task, values)
    return values[0]


@pytest.mark.parametrize("model", ["ltg_bert", "elc_bert"])
def test_pretrained_models_know_the_grammar_and_the_untrained_one_guesses(
    model: str, demo: list[dict[str, str]]
) -> None:
    assert mean(demo, model, "demo_pairs", "paradigm_average") >= 80
    assert 40 <= mean(demo, "random", "demo_pairs", "paradigm_average") <= 60


@pytest.mark.parametrize("model", ["ltg_bert", "elc_bert"])
@pytest.mark.parametrize("task", ["demo_acceptability", "demo_entailment"])
def test_pretraining_beats_random_initialisation_after_finetuning(
    model: str, task: str, demo: list[dict[str, str]]
) -> None:
    assert mean(demo, model, "demo", task) > mean(demo, "random", "demo", task) + 3

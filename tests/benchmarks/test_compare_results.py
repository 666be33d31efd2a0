"""Results of a GPU beside those of a CPU: perplexities and minimal pairs have limits, and nothing may be missing."""

from pathlib import Path

from benchmarks.compare_results import compared, means

PERPLEXITY = ("ltg_bert", "pretraining", "development", "perplexity")
PAIRS = ("ltg_bert", "demo_pairs", "binding", "accuracy_percent")
TASK = ("ltg_bert", "demo", "demo_entailment", "f1_percent")


def test_perplexities_may_differ_by_a_percent_and_pairs_by_a_point_and_tasks_are_shown() -> None:
    on_cpu = {PERPLEXITY: 10.0, PAIRS: 80.0, TASK: 60.0}
    lines, within = compared(on_cpu, {PERPLEXITY: 10.09, PAIRS: 79.1, TASK: 70.0})
    assert within and [line.split(" | ")[6] for line in lines[2:]] == ["+0.90 %", "-0.90", "+10.00"]
    for key, value in ((PERPLEXITY, 10.2), (PAIRS, 81.5)):
        lines, within = compared(on_cpu, {**on_cpu, key: value})
        assert not within and sum("beyond" in line for line in lines) == 1


def test_a_missing_value_is_told(tmp_path: Path) -> None:
    summary = tmp_path / "summary.csv"
    summary.write_text("model,suite,task,metric,mean\n" + ",".join(PAIRS) + ",80.5\n" + ",".join(TASK) + ",\n")
    on_cpu = means(summary)
    assert on_cpu == {PAIRS: 80.5}
    lines, within = compared(on_cpu, {})
    assert not within and lines[-1].endswith("missing |")

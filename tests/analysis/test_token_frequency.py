"""Log-probability by frequency: from the table of a run to the rows of an experiment and the points of the figure."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from hatchery.analysis.measurements import perplexity_measurements
from hatchery.analysis.summary import SUMMARISED_LEVELS
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.views.figures.token_frequency import points

PERPLEXITY = (
    "split,sequences,labelled_tokens,loss_nats,perplexity,accuracy,pseudo_perplexity\ndev,5,50,1.0,2.718,0.5,\n"
)
FREQUENCY = """split,lowest,tokens,metric,value,standard_error
dev,,50,frequency_slope,0.8,0.01
dev,-7.5,50,log_frequency_nats,-7.2,0.02
dev,-7.5,50,log_probability_nats,-6.5,0.1
"""


def test_bins_and_slopes_are_measurements_and_slopes_alone_are_summarised(tmp_path: Path) -> None:
    with stage_run(tmp_path / "manifest.json", {"stage": "measure_perplexity"}) as run:
        for name, text in (("perplexity.csv", PERPLEXITY), ("frequency.csv", FREQUENCY)):
            (tmp_path / name).write_text(text)
            run.add_output(tmp_path / name)
    found = perplexity_measurements({}, read_manifest(tmp_path / "manifest.json"))
    rows = {(row["task"], row["metric"]): SimpleNamespace(**row) for row in found}
    slope, mean = rows["dev", "frequency_slope"], rows["dev_from_-7.5", "log_probability_nats"]
    assert (slope.value, slope.sampling_deviation, slope.items, slope.kind) == (0.8, 0.01, 50, "perplexity")
    assert (mean.value, mean.sampling_deviation, mean.level) == (-6.5, 0.1, "bin")
    assert slope.level in SUMMARISED_LEVELS and mean.level not in SUMMARISED_LEVELS


def test_a_point_is_the_mean_over_seeds_and_a_bin_of_few_tokens_has_none() -> None:
    def of_bin(model: str, task: str, x: float, values: tuple[float, float], tokens: int = 20) -> list[tuple]:
        metrics = ("log_frequency_nats", "log_probability_nats", "log_probability_without_bias_nats")
        return [(model, task, metric, value, tokens, 0.5) for metric, value in zip(metrics, (x, *values), strict=True)]

    rows = [
        *of_bin("zero", "dev_from_-3", -2.5, (-1.0, -2.0)),
        *of_bin("zero", "dev_from_-12", -11.5, (-9.0, -8.0)),
        *of_bin("zero", "dev_from_-12", -11.5, (-7.0, -4.0)),
        *of_bin("zero", "dev_from_-13", -12.5, (-9.0, -8.0), tokens=19),
        *of_bin("unigram", "test_from_-3", -2.5, (-1.0, -5.0)),
    ]
    found = points(rows)
    # The standard error over seeds where there are several, else that over tokens.
    assert found["dev", "log_probability_nats", "zero"] == [
        (-11.5, -8.0, pytest.approx(1.0)),
        (-2.5, -1.0, 0.5),
    ]
    assert found["dev", "log_probability_without_bias_nats", "zero"][0] == (-11.5, -6.0, pytest.approx(2.0))
    assert found["test", "log_probability_without_bias_nats", "unigram"] == [(-2.5, -5.0, 0.5)]
    assert len(found) == 4

"""Section of a summary for held-out text."""

from hatchery.analysis.scores import Measure
from hatchery.analysis.settings import OTHER
from hatchery.analysis.summary import Summary
from hatchery.evaluation.evaluation import Evaluation
from hatchery.evaluation.perplexity.measurements import PERPLEXITY_SUITE
from hatchery.evaluation.perplexity.rows import HELD_OUT_METRICS, LOG_PROBABILITY, SLOPES, WITHOUT_BIAS
from hatchery.training.objectives import OBJECTIVES
from hatchery.views.summary_sections import Section, objectives_of


def sections(summary: Summary, kind: str, evaluation: Evaluation) -> list[Section]:
    """Return one section with the scores on all splits of held-out text."""
    named = [(metric.label, name) for name, metric in HELD_OUT_METRICS.items() if metric.label]
    shown = (
        # List percentages after metrics with other units.
        *sorted(named, key=lambda pair: HELD_OUT_METRICS[pair[1]].percent),
        ("slope by log-frequency", SLOPES[LOG_PROBABILITY]),
        ("slope without bias", SLOPES[WITHOUT_BIAS]),
    )
    measures = [
        Measure(f"{split} {label}", PERPLEXITY_SUITE, split, metric)
        for split in _splits(summary)
        for label, metric in shown
    ]
    asked = list(dict.fromkeys(map(_what_is_predicted, objectives_of(summary))))
    if len(asked) > 1:
        asked.append("Scores of models with different objectives are not comparable.")
    if any(row.metric in SLOPES.values() for row in summary.rows):
        asked.append(
            "The slopes are regression slopes of the log-probability of correct tokens on the logarithm of their "
            "frequency in the training text, for predictions of the whole model and for predictions without the "
            "output bias."
        )
    if summary.trained_otherwise:
        own = summary.trained_otherwise
        models = ", ".join(f"{summary.label(model)} ({own[model]})" for model in summary.models if model in own)
        asked.append(
            f"Models that were trained with masks other than the evaluation's: {models}. The perplexities of "
            "these models may be high because of the masks alone."
        )
    return [Section(evaluation.title, " ".join(asked), measures)]


def _splits(summary: Summary) -> list[str]:
    return sorted({row.task for row in summary.rows if row.suite == PERPLEXITY_SUITE})


def _what_is_predicted(task: str) -> str:
    if not task.startswith(OTHER):
        return OBJECTIVES[task][0].asked_for
    return (
        "Imported models are evaluated in the same way, but predict the tokens of their own tokenizers; only their "
        "perplexity per word is comparable."
    )

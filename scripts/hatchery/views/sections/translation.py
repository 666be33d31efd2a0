"""Section of a summary for translated test sets."""

from hatchery.analysis.measurements import PRETRAINING_SUITE
from hatchery.analysis.scores import SHOWN_METRICS, Measure
from hatchery.analysis.summary import Summary
from hatchery.evaluation.evaluation import Evaluation
from hatchery.evaluation.translation_settings import TRANSLATION_SUITE
from hatchery.rendering.escaping import readable
from hatchery.translation.metrics import METRICS
from hatchery.views.summary_sections import Section


def sections(summary: Summary, kind: str, evaluation: Evaluation) -> list[Section]:
    """Return a section with the scores of each test set, followed by the scores of development text during training."""
    tests = sorted({row.task for row in summary.rows if row.suite == TRANSLATION_SUITE})
    measures = [
        Measure(f"{readable(test)} {SHOWN_METRICS[metric]}", TRANSLATION_SUITE, test, metric)
        for test in tests
        for metric in METRICS
    ]
    training = {(row.task, row.metric) for row in summary.rows if row.suite == PRETRAINING_SUITE}
    for kind, label in (("best", "highest {metric} of {task}"), ("alc", "area of {metric}, {task}")):
        measures += [
            Measure(
                label.format(metric=SHOWN_METRICS[metric], task=readable(task)),
                *(PRETRAINING_SUITE, task, f"{kind}_{metric}"),
            )
            for metric in METRICS
            for task in sorted(task for task, name in training if name == f"{kind}_{metric}")
        ]
    return [Section(evaluation.title, evaluation.note, measures)]

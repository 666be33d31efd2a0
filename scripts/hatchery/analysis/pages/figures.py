"""The figures of an experiment on its page, each with the caption that its name stands for."""

from pathlib import Path

from markupsafe import Markup

from hatchery.analysis.figures.published_marks import PUBLISHED_LABEL
from hatchery.analysis.figures.run_dots import FAILED_LABEL
from hatchery.rendering.svg import embedded_figure, read_text
from hatchery.storage.verified import vouched

CAPTIONS = {
    "learning_curves": "Loss of masked language modelling per labelled token against the tokens seen: training loss, "
    "and development loss on sequences with fixed masks.",
    "layer_weights": "Learned layer weights: the share with which each layer reads the outputs of the layers before "
    "it, times the number of those outputs, so that 1 is the even share; the plain model adds all with weight 1.",
    "phenomena": "Accuracy on minimal pairs by phenomenon, their average below; the dashed line at 50 % is chance.",
    "task_scores": "Scores of the fine-tuned tasks: means and deviations over runs, single runs as small marks; the "
    "dashed line is the score of always answering the most frequent label.",
    "bias_violins": "Linguistic Bias Score of every run on the ambiguous tasks of MSGS: +1 follows the linguistic "
    "feature, -1 the surface feature.",
    "feature_dots": "Linguistic Bias Score by pair of features, one dot per run.",
    "layer_contributions": "Weights of the layers in the probes, in percent: means over runs.",
}
# Said only of a drawing whose legend says it, too.
MARKS = {PUBLISHED_LABEL: "Open diamonds are published values.", FAILED_LABEL: "Hollow marks are failed runs."}


def figure_of(path: Path) -> Markup:
    """The figure with the caption that its name stands for, and a sentence for every mark that it has.

    Raises ManifestError when it was altered.
    """
    name = path.stem.replace("_", " ")
    drawing = read_text(vouched(path))
    # Matplotlib writes every text of a drawing, whose letters are paths, into a comment beside it.
    marks = [sentence for label, sentence in MARKS.items() if f"<!-- {label} -->" in drawing]
    return embedded_figure(path, " ".join([CAPTIONS.get(path.stem, name.capitalize() + "."), *marks]))

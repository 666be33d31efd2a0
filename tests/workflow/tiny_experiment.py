"""The tiny experiment in a project folder, a study of it and a copy of it, and changes of their files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EXPERIMENT, CAUSAL_EXPERIMENT = "config/experiments/tiny.yaml", "config/experiments/tiny_causal.yaml"
FIGURES = {
    "draw_figure learning_curves",
    "draw_figure layer_weights",
    "draw_figure phenomena",
    "draw_figure task_scores",
    "draw_figure layer_contributions",
}
CAUSAL_FIGURES = {
    "draw_figure learning_curves",
    "draw_figure layer_weights",
    "draw_figure output_divergences",
    "draw_figure bias_drift",
    "draw_figure token_frequency",
}

COPY = "config/experiments/second.yaml"
STUDY = "config/studies/side.yaml"
PAGE = "results/side/index.html"
TEXT = "description: Side by side.\nexperiments: [tiny, second]\nanalyses:\n  comparison: {}\n"


@contextmanager
def changed(path: Path, old: str, new: str) -> Iterator[None]:
    before = path.read_bytes()
    text = before.decode("utf-8")
    assert old in text, f"{path} no longer holds {old!r}: mend this test"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(before)
